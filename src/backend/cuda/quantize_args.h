/* What the quantising kernels are told, and where the host finds them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_QUANTIZE_ARGS_H
#define FP8R_CUDA_QUANTIZE_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of a batch; strides in elements, 0 where an extent is 1. */
struct fp8r_cuda_place {
    void *data;
    int64_t batch_stride, row_stride, col_stride;
};

/* What the kernels that take whole rows do. */
enum fp8r_cuda_quantize_step {
    FP8R_CUDA_QUANTIZE_ALL,    /* scales of rows, and codes */
    FP8R_CUDA_QUANTIZE_GATHER, /* scales = amax of their groups, no less than they are */
    FP8R_CUDA_QUANTIZE_ENCODE  /* codes, by the scales that are there */
};

struct fp8r_cuda_quantize_args {
    int64_t batch, rows, cols;
    struct fp8r_cuda_place in, out, scale; /* scale.data NULL: 1 */
    int64_t scale_batch, scale_rows, scale_cols;
    int64_t row_tiles, col_tiles; /* of the kernels that work in tiles */
    int32_t in_dtype, out_dtype;
    int32_t step;        /* of those that take rows */
    int32_t row_threads; /* that share a row: all of a block, or a warp */
    int32_t is_ahead;    /* of those that take rows: what follows is released before the wait */
};

/* Rows and columns of a tile: a thread a column. */
enum { FP8R_CUDA_QUANTIZE_ROWS = 32, FP8R_CUDA_QUANTIZE_COLS = 256 };

/* Elements a thread takes at once; how often, of a row that it keeps in registers; most threads of a block.
 */
enum {
    FP8R_CUDA_QUANTIZE_VECTOR = 8,
    FP8R_CUDA_QUANTIZE_SHORT = 4,
    FP8R_CUDA_QUANTIZE_LONG = 8,
    FP8R_CUDA_QUANTIZE_THREADS = 512
};

enum fp8r_cuda_quantize_kernel {
    /* Rows of 16-bit elements, contiguous, codes as far from 8 bytes' alignment as elements are from 16
       bytes'. */
    FP8R_CUDA_QUANTIZE_BF16_SHORT,
    FP8R_CUDA_QUANTIZE_BF16_LONG,
    FP8R_CUDA_QUANTIZE_FP16_SHORT,
    FP8R_CUDA_QUANTIZE_FP16_LONG,
    FP8R_CUDA_QUANTIZE_ANY,     /* rows of any strides and type */
    FP8R_CUDA_QUANTIZE_RESET,   /* scales = 0; a thread a scale */
    FP8R_CUDA_QUANTIZE_FINISH,  /* amax to scale; a thread a scale */
    FP8R_CUDA_QUANTIZE_COLUMNS, /* scales of columns = amax; in tiles */
    FP8R_CUDA_QUANTIZE_CODES,   /* by scales of columns; in tiles */
    FP8R_CUDA_QUANTIZE_VALUES,  /* dequantise; in tiles */
    FP8R_CUDA_QUANTIZE_KERNELS
};

const void *fp8r_cuda_quantize_kernel(enum fp8r_cuda_quantize_kernel kernel);

#ifdef __cplusplus
}
#endif
#endif
