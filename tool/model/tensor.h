/* One tensor as a checkpoint header describes it, and the element types the safetensors format knows. Facts
 * only: no file, no data.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TENSOR_H
#define FP8R_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fp8r_tensor_dtype {
    FP8R_TENSOR_F8_E4M3,
    FP8R_TENSOR_F8_E5M2,
    FP8R_TENSOR_BF16,
    FP8R_TENSOR_F16,
    FP8R_TENSOR_F32,
    FP8R_TENSOR_F64,
    FP8R_TENSOR_OTHER_DTYPE /* the format's remaining types are listed by name but never multiplied */
};

/* What the format says about an element type. */
struct fp8r_tensor_type {
    const char *name;
    enum fp8r_tensor_dtype dtype;
    uint32_t bits;
};

enum fp8r_tensor_role {
    FP8R_TENSOR_LINEAR,    /* 2-D floating "*.weight": [N,K], one row an output feature */
    FP8R_TENSOR_EMBEDDING, /* 2-D "*.weight" that is looked up, not multiplied */
    FP8R_TENSOR_NORM,
    FP8R_TENSOR_OTHER /* biases, scales, packed or stacked weights */
};

struct fp8r_tensor {
    const char *name;
    const struct fp8r_tensor_type *type;
    const int64_t *shape; /* rank extents, each >= 0; their product fits 64 bits */
    size_t rank;
    uint64_t begin_bytes, end_bytes; /* the data's range in the file, counted from the file's first byte */
};

/* The type of that name ("F8_E4M3"), or NULL. */
const struct fp8r_tensor_type *fp8r_tensor_type_find(const char *name);

/* The bytes of a tensor of this type and shape; false where it passes 63 bits or is no whole number of bytes.
 */
bool fp8r_tensor_size(const struct fp8r_tensor_type *type, const int64_t *shape, size_t rank,
                      uint64_t *bytes);

enum fp8r_tensor_role fp8r_tensor_role(const struct fp8r_tensor *tensor);

/* "linear", "embedding", "norm" or "other". */
const char *fp8r_tensor_role_name(enum fp8r_tensor_role role);

/* Writes "[4096,14336]" ("[]" for a scalar), cut short with "..." where size is not enough; returns text. */
const char *fp8r_tensor_shape_format(const struct fp8r_tensor *tensor, char *text, size_t size);

#endif
