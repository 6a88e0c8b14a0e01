/* What a product's kernels are told: operands, how each is loaded, sizes in tiles. Plain data, filled by the
 * host. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_ARGS_H
#define FP8R_CUDA_ARGS_H

#include <stdbool.h>
#include <stdint.h>

/* K is walked in blocks of this many elements, in ascending order, by every configuration. */
#define FP8R_CUDA_BLOCK_K 64

/* How a block of an operand comes into shared memory, the fastest first. */
enum fp8r_cuda_load {
    FP8R_CUDA_LOAD_16,        /* K contiguous, rows aligned to 16 bytes */
    FP8R_CUDA_LOAD_4,         /* K contiguous, rows aligned to 4 bytes */
    FP8R_CUDA_LOAD_ROWS,      /* rows contiguous, aligned to 4 bytes: transposed on the way */
    FP8R_CUDA_LOAD_BYTES,     /* any strides; neighbouring threads take neighbours along K */
    FP8R_CUDA_LOAD_BYTES_ROWS /* any strides; neighbouring threads take neighbouring rows */
};

/* a: rows are those of out; b: rows are out's columns. Strides in bytes, which are elements. */
struct fp8r_cuda_operand {
    const uint8_t *data;
    int64_t batch_stride, row_stride, k_stride;
    int32_t load, reserved;
};

/* One fp32 value (bias: of its type) a row or column; strides in elements. data NULL: absent. */
struct fp8r_cuda_line {
    const void *data;
    int64_t batch_stride, stride;
};

struct fp8r_cuda_args {
    int64_t m, n, k;
    int64_t tiles_m, tiles_n, tiles; /* tiles: of all batch items */
    struct fp8r_cuda_operand a, b;
    struct fp8r_cuda_line scale_a, scale_b, bias;
    void *out;
    int64_t out_batch_stride, out_row_stride, out_col_stride; /* elements */
    int32_t out_dtype, bias_dtype;
    int32_t a_is_e5m2;
    int32_t out_vectors; /* out's rows are contiguous and start at multiples of 16 bytes */
};

#endif
