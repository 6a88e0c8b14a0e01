/* A list of linear layers: name, N, K and how often each occurs in the model. Filled from a config.json or
 * from checkpoint headers, read by the shapes verb and by the tuner; knows nothing of where the shapes came
 * from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROJECTION_H
#define FP8R_PROJECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool_error.h"

struct fp8r_projection {
    const char *name; /* "qkv_proj", "model.layers.*.mlp.down_proj"; in a list: owned by it */
    const char *type; /* how the weight is stored, "F8_E4M3"; NULL where only a config is known; a literal */
    int64_t tp;       /* the tensor-parallel degree that n and k are for */
    int64_t n, k;     /* one rank's share: out = a [M,K] times b [K,N] */
    int64_t count;    /* occurrences in the model: layers, times experts where each has its own weight */
    bool is_lookup;   /* an embedding table: listed, but rows are looked up and nothing is multiplied */
};

/* Zero-initialise before first use. */
struct fp8r_projection_list {
    struct fp8r_projection *items;
    size_t count, capacity;
};

/* Appends a copy, name included. On failure the list is unchanged. */
int fp8r_projection_list_add(struct fp8r_projection_list *list, const struct fp8r_projection *projection,
                             struct fp8r_tool_error *error);

/* Drops everything past the first count projections. */
void fp8r_projection_list_truncate(struct fp8r_projection_list *list, size_t count);

/* Appends the distinct N and K of the list's products, in its order, each named "NxK" as the problem grammar
 * writes a family; count is how many layers share it. On failure families is unchanged. */
int fp8r_projection_list_families(const struct fp8r_projection_list *list,
                                  struct fp8r_projection_list *families, struct fp8r_tool_error *error);

/* Frees what the list holds and leaves it empty. */
void fp8r_projection_list_fini(struct fp8r_projection_list *list);

#endif
