/* The index of a sharded checkpoint (model.safetensors.index.json): which file holds which tensor. Knows the
 * map only; whether the files agree with it is the checkpoint's business.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SHARD_INDEX_H
#define FP8R_SHARD_INDEX_H

#include <stddef.h>

#include "tool_error.h"

struct fp8r_shard_entry {
    const char *file, *tensor; /* file is a plain name beside the index, never a path */
};

/* Entries sorted by file, then tensor. */
struct fp8r_shard_index {
    struct fp8r_shard_entry *entries;
    size_t count;
    char *text; /* what the entries point into */
};

/* Parses index text; origin names it in errors. Writes *index only on success; fini frees it. */
int fp8r_shard_index_parse(const char *text, size_t text_bytes, const char *origin,
                           struct fp8r_shard_index *index, struct fp8r_tool_error *error);

void fp8r_shard_index_fini(struct fp8r_shard_index *index);

#endif
