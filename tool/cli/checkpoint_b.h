/* A checkpoint's tensor as b of a product: checked against the problem, quantised where it is wide.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CHECKPOINT_B_H
#define FP8R_CHECKPOINT_B_H

#include <fp8route/fp8route.h>

#include "measure/inputs.h"
#include "model/weights.h"
#include "tool_error.h"

/* Gives the product the weights' layout and kind of scale. Exit codes: USAGE where problem and tensor
 * disagree. */
int fp8r_checkpoint_b_shape(const struct fp8r_weights *weights, fp8r_matmul *matmul,
                            struct fp8r_tool_error *error);

/* Puts codes and scales into operands of that shape. */
int fp8r_checkpoint_b_fill(fp8r_context *context, const struct fp8r_weights *weights,
                           struct fp8r_inputs *inputs, struct fp8r_tool_error *error);

#endif
