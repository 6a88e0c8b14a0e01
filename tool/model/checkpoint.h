/* The tensors of a model, found through the headers of one or more safetensors files or of a sharded index.
 * Holds no tensor data and knows nothing of layers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CHECKPOINT_H
#define FP8R_CHECKPOINT_H

#include <stddef.h>

#include "model/safetensors.h"
#include "model/tensor.h"
#include "tool_error.h"

struct fp8r_checkpoint_file {
    char *path;
    struct fp8r_safetensors header;
};

struct fp8r_checkpoint_tensor {
    const struct fp8r_tensor *tensor;
    const char *path; /* the file that holds it */
};

/* The tensors sorted by name, each name once. Zero-initialise before open. */
struct fp8r_checkpoint {
    struct fp8r_checkpoint_file *files;
    size_t file_count, file_capacity;
    struct fp8r_checkpoint_tensor *tensors;
    size_t count, capacity;
};

/* Reads the headers behind each path: a name ending in .json is a sharded index, whose tensors are those of
 * its weight_map and whose files lie beside it; anything else is a safetensors file. A tensor in two files is
 * BAD_DATA. On failure the checkpoint is left empty. */
int fp8r_checkpoint_open(const char *const *paths, size_t path_count, struct fp8r_checkpoint *checkpoint,
                         struct fp8r_tool_error *error);

/* The tensor of that name, or NULL. */
const struct fp8r_checkpoint_tensor *fp8r_checkpoint_find(const struct fp8r_checkpoint *checkpoint,
                                                          const char *name);

void fp8r_checkpoint_fini(struct fp8r_checkpoint *checkpoint);

#endif
