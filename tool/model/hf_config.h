/* Reads the fields of a Hugging Face config.json that fix a transformer's linear layers, and lists those
 * layers as products for a tensor-parallel degree. Knows field names and layer layouts; knows nothing of
 * weights or backends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_HF_CONFIG_H
#define FP8R_HF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "projection.h"
#include "tool_error.h"

/* Every count lies in 1..2^31-1, so products of two fit 64 bits; kv_heads divides heads. */
struct fp8r_hf_config {
    char model_type[32];
    int64_t hidden, intermediate, heads, kv_heads, head_dim, layers;
};

/* Parses config.json text; origin names it in errors. Writes *config only on success. Exit codes: BAD_DATA
 * with the field and what it should be, INTERNAL when memory runs out. */
int fp8r_hf_config_parse(const char *text, size_t text_bytes, const char *origin,
                         struct fp8r_hf_config *config, struct fp8r_tool_error *error);

/* The same from a file of at most 16 MiB. */
int fp8r_hf_config_read(const char *path, struct fp8r_hf_config *config, struct fp8r_tool_error *error);

/* Appends one rank's projections at tensor-parallel degree tp: fused qkv_proj, o_proj, gate_up_proj,
 * down_proj, or with fused false q, k, v, o, gate, up, down. Column-parallel layers share out N, row-parallel
 * ones K; key and value heads are replicated when there are fewer of them than ranks. A degree that does not
 * divide is a USAGE error and appends nothing; so is tp < 1. */
int fp8r_hf_config_projections(const struct fp8r_hf_config *config, int64_t tp, bool fused,
                               struct fp8r_projection_list *list, struct fp8r_tool_error *error);

#endif
