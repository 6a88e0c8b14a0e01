/* Loads one linear weight of a checkpoint, with its scale, into memory ready to be b of a product. Knows the
 * naming of scales; quantising a wide weight is the caller's part.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_WEIGHTS_H
#define FP8R_WEIGHTS_H

#include <stdint.h>

#include "tool_error.h"

/* The weight is [N,K], row-major: as b [K,N] its row stride is 1 and its column stride K. */
struct fp8r_weights {
    int32_t dtype; /* FP8R_DTYPE_E4M3, or _BF16, _FP16, _FP32: to be quantised, one scale a row */
    int64_t n, k;
    void *data;          /* 256-byte aligned */
    float *scale;        /* multiplies; scale_count values, exact widenings of what is stored */
    int64_t scale_count; /* 0: none stored (e4m3 then means scale 1), 1: the whole tensor, n: a row each */
};

/* Loads "FILE:TENSOR": FILE a safetensors file or a sharded index, TENSOR a full tensor name or the name of a
 * module without its ".weight". Writes *weights only on success; fini frees it. Exit codes: USAGE for a text
 * without ':' or a tensor that is not there, BAD_DATA for anything in the file that cannot be multiplied by
 * (block scales are named as such), INTERNAL when memory runs out. */
int fp8r_weights_load(const char *file_and_tensor, struct fp8r_weights *weights,
                      struct fp8r_tool_error *error);

void fp8r_weights_fini(struct fp8r_weights *weights);

#endif
