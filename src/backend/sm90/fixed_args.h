/* Between the sm90 files: arguments that a plan fixes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_FIXED_ARGS_H
#define FP8R_SM90_FIXED_ARGS_H

#include "backend/sm90/sm90.h"

struct fp8r_sm90_divisor fp8r_sm90_divisor_of(int64_t d);

/* All arguments of one of the plan's shapes that depend neither on M nor on addresses, for the plan's own strides. */
void fp8r_sm90_fix_args(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                        struct fp8r_sm90_args *args);

/* Those that depend on the batch stride of b. */
void fp8r_sm90_fix_weights(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                           const fp8r_problem *problem, struct fp8r_sm90_args *args);

#endif
