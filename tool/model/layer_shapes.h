/* The linear layers of a checkpoint, exactly as stored: equal layers of one name pattern are one entry with a
 * count. Knows layer naming conventions; needs no config.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_LAYER_SHAPES_H
#define FP8R_LAYER_SHAPES_H

#include <stdint.h>

#include "model/checkpoint.h"
#include "model/projection.h"
#include "tool_error.h"

/* Appends the 2-D "*.weight" tensors of the checkpoint with numbers in their names replaced by '*', embedding
 * tables marked. Above tp 1, layers whose names say how they are shared out (q_proj: rows; o_proj: columns;
 * ...) are listed with one rank's share and the others whole; a share that does not divide is a USAGE error.
 * Headers do not tell the number of key and value heads, so replicating them needs the config. On failure
 * nothing is appended. */
int fp8r_layer_shapes_list(const struct fp8r_checkpoint *checkpoint, int64_t tp,
                           struct fp8r_projection_list *list, struct fp8r_tool_error *error);

#endif
