/* The sizes of the blas backend's pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/blas/blas_tiling.h"

#include "base/sizes.h"

static int64_t limited_product(int64_t a, int64_t b, int64_t limit)
{
    int64_t product;
    return fp8r_size_mul(a, b, &product) ? fp8r_size_min(product, limit) : limit;
}

static int64_t panel_width(const fp8r_problem *problem)
{
    int64_t all = limited_product(problem->batch, problem->n, INT64_MAX / 2);
    int64_t width = fp8r_size_round_up(fp8r_size_blocks(all, FP8R_BLAS_TASKS), 16);
    width = fp8r_size_min(fp8r_size_max(width, FP8R_BLAS_WIDTH_MIN), FP8R_BLAS_WIDTH_MAX);
    return fp8r_size_min(width, problem->n);
}

static int64_t floats(int64_t a, int64_t b)
{
    return fp8r_size_round_up(a * b * (int64_t)sizeof(float), 256);
}

void fp8r_blas_tiling_init(struct fp8r_blas_tiling *tiling, const fp8r_problem *problem, int32_t threads)
{
    struct fp8r_blas_tiling t = {.slots = fp8r_size_max(threads, 1)};
    t.rows = limited_product(problem->batch, problem->m, FP8R_BLAS_ROWS);
    t.cols = fp8r_size_min(problem->n, FP8R_BLAS_COLS);
    t.depth = fp8r_size_min(problem->k, FP8R_BLAS_DEPTH);
    t.depth_b = fp8r_size_min(problem->k, FP8R_BLAS_DEPTH_B);
    t.width = panel_width(problem);
    t.a_at = t.scales_at + floats(t.rows, 1);
    t.b_at = t.a_at + floats(t.rows, t.depth);
    t.columns_at = t.b_at + t.slots * floats(t.width, t.depth_b);
    t.c_at = t.columns_at + t.slots * floats(t.width, 2);
    t.bytes = t.c_at + floats(t.rows, t.cols);
    *tiling = t;
}

int64_t fp8r_blas_row_parts(int64_t panels, int64_t rows)
{
    int64_t wanted = fp8r_size_max(fp8r_size_blocks(FP8R_BLAS_TASKS, panels),
                                   fp8r_size_blocks(rows, FP8R_BLAS_TILE_ROWS_MAX));
    return fp8r_size_max(fp8r_size_min(wanted, rows / FP8R_BLAS_TILE_ROWS_MIN), 1);
}
