/* How a product is cut for the blas backend, and where its pieces lie in the workspace. Sizes only; touches no data.
 * The cuts depend on the problem alone, never on the number of threads: a library may sum a piece of another shape in
 * another order, and bits must not depend on threads.
 *
 * A block is up to ROWS rows (of one batch item, or all rows of several small ones) by COLS columns. For each DEPTH
 * of k its part of a is decoded once for all tasks; a task then decodes WIDTH columns of b, DEPTH_B of k at a time, and
 * adds the product to its part of c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_BLAS_TILING_H
#define FP8R_BACKEND_BLAS_TILING_H

#include <fp8route/backend.h>

enum {
    /* a's block 16 MiB, c's 16 MiB: within a last-level cache. */
    FP8R_BLAS_ROWS = 1024,
    FP8R_BLAS_COLS = 4096,
    FP8R_BLAS_DEPTH = 4096,
    /* A decoded panel of b is at most half a MiB: it stays in a core's level 2 until sgemm has packed it. */
    FP8R_BLAS_DEPTH_B = 512,
    FP8R_BLAS_WIDTH_MIN = 64,
    FP8R_BLAS_WIDTH_MAX = 256,
    FP8R_BLAS_TILE_ROWS_MIN = 64,
    FP8R_BLAS_TILE_ROWS_MAX = 512, /* decoding b for each tile anew then costs a few per cent of its product */
    FP8R_BLAS_TASKS = 32 /* as many as a common machine has cores; more make narrow panels, each of which packs a anew */
};

struct fp8r_blas_tiling {
    int64_t slots;                      /* tasks at a time */
    int64_t rows, cols, depth, depth_b; /* of a block, at most */
    int64_t width;                      /* columns of a panel of b */
    int64_t scales_at, a_at, b_at, columns_at, c_at, bytes; /* workspace, in bytes */
};

/* For problem->m rows and `threads` threads. No part of the workspace is smaller for a larger m. */
void fp8r_blas_tiling_init(struct fp8r_blas_tiling *tiling, const fp8r_problem *problem, int32_t threads);

/* Into how many parts to cut the rows of a block of `panels` panels, so that there is work for many threads. */
int64_t fp8r_blas_row_parts(int64_t panels, int64_t rows);

#endif
