/* A model that ranks the configurations for row-wise scales, where the library's own heuristic knows 128x128 tiles only:
 * waves of tiles over the multiprocessors, or the time memory takes, times a factor of the configuration's own. Fitted
 * to times taken on an H200: over 416 problems, of families and drawn at random, its choice is 3.1 % slower than the
 * fastest of them, 68 % at worst; the heuristic's is 27 % slower
 * (bench/results/cublaslt-survey-2026-11-29-h200.jsonl). SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_pick.h"

#include "base/sizes.h"

static const struct tile {
    int rows, columns, cluster_rows, cluster_columns; /* a tile's along n and m; tiles of a cluster */
} tiles[FP8R_CUBLASLT_CONFIGS] = {
    {0},
#define FP8R_CUBLASLT_CONFIG(rows, columns, cluster_rows, cluster_columns, option)                           \
    {rows, columns, cluster_rows, cluster_columns},
#include "backend/cublaslt/cublaslt_configs.inc"
#undef FP8R_CUBLASLT_CONFIG
};

/* What a configuration takes as a multiple of what the formulas say; 0: it is not ranked. */
static const double factors[FP8R_CUBLASLT_CONFIGS] = {
    [FP8R_CUBLASLT_T112x128_C1x1_O0] = 0.941,
    [FP8R_CUBLASLT_T112x128_C1x1_O2] = 0.940,
    [FP8R_CUBLASLT_T112x128_C2x1_O0] = 0.848,
    [FP8R_CUBLASLT_T112x64_C1x1_O4] = 0.993,
    [FP8R_CUBLASLT_T128x128_C1x1_O2] = 0.937,
    [FP8R_CUBLASLT_T128x128_C1x2_O2] = 0.829,
    [FP8R_CUBLASLT_T128x128_C2x1_O1] = 0.873,
    [FP8R_CUBLASLT_T128x32_C1x1_O3] = 1.121,
    [FP8R_CUBLASLT_T128x32_C1x1_O5] = 0.995,
    [FP8R_CUBLASLT_T128x32_C1x1_O7] = 1.101,
    [FP8R_CUBLASLT_T128x64_C1x1_O1] = 0.985,
    [FP8R_CUBLASLT_T128x64_C1x2_O3] = 1.018,
    [FP8R_CUBLASLT_T128x64_C2x1_O4] = 0.953,
    [FP8R_CUBLASLT_T256x32_C1x1_O5] = 0.981,
    [FP8R_CUBLASLT_T256x32_C1x1_O7] = 1.021,
    [FP8R_CUBLASLT_T256x64_C1x1_O4] = 0.922,
    [FP8R_CUBLASLT_T256x64_C1x1_O6] = 1.002,
    [FP8R_CUBLASLT_T64x32_C4x1_O5] = 1.094,
    [FP8R_CUBLASLT_T64x32_C4x1_O7] = 1.188,
    [FP8R_CUBLASLT_T64x64_C1x1_O1] = 1.114,
    [FP8R_CUBLASLT_T64x64_C1x1_O4] = 1.111,
    [FP8R_CUBLASLT_T64x64_C4x1_O3] = 1.062,
    [FP8R_CUBLASLT_T64x8_C1x1_O1] = 1.108,
    [FP8R_CUBLASLT_T64x8_C1x1_O3] = 1.189,
    [FP8R_CUBLASLT_T96x128_C1x1_O4] = 0.974,
    [FP8R_CUBLASLT_T96x128_C2x1_O0] = 0.854,
    [FP8R_CUBLASLT_T96x128_C4x2_O2] = 0.931,
    [FP8R_CUBLASLT_T96x64_C1x1_O0] = 0.974,
    [FP8R_CUBLASLT_T96x64_C4x1_O0] = 1.040,
};

bool fp8r_cublaslt_is_modelled(const fp8r_problem *problem)
{
    return fp8r_cublaslt_is_row_wise(problem) && problem->accumulation != FP8R_ACCUMULATE_PRECISE;
}

/* The widths of the narrow tiles, then steps of 64 and 128 that double with m from 8192 on. */
int64_t fp8r_cublaslt_bracket_end(int64_t m)
{
    if (m <= 32) return m <= 8 ? 8 : 32;
    int64_t step = m <= 1024 ? 64 : 128;
    while (step < (m + 63) / 64 && m > 1024)
        step *= 2;
    return fp8r_size_blocks(m, step) * step;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

/* Clusters of more than two stay inside a group of 16 to 18 multiprocessors. */
static int64_t resident_clusters(const fp8r_device_facts *device, int cluster)
{
    int64_t sm_count = device->sm_count > 0 ? device->sm_count : 132;
    return fp8r_size_max(1, (cluster > 2 ? sm_count / 16 * 16 : sm_count) / cluster);
}

double fp8r_cublaslt_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    const struct tile *tile = &tiles[config];
    if (!(factors[config] > 0)) return 0;
    const double sm_operations = 8192e3, bandwidth = device->bandwidth_gbs > 0 ? (double)device->bandwidth_gbs * 1e3 : 4.917e6;
    const int64_t last = fp8r_cublaslt_bracket_end(problem->m);
    const double n = (double)problem->n, k = (double)problem->k, m = (double)last, area = tile->rows * tile->columns;
    const int64_t clusters = fp8r_size_blocks(problem->n, tile->rows * tile->cluster_rows) *
                             fp8r_size_blocks(last, tile->columns * tile->cluster_columns) * problem->batch;
    const double waves = (double)fp8r_size_blocks(
        clusters, resident_clusters(device, tile->cluster_rows * tile->cluster_columns));
    const double multiply = 2.0 * area * k / (1.23 * sm_operations), latency = k / 128 * 0.0219;
    /* Rows that do not begin at multiples of a line of the caches hold everything up. */
    const double load = problem->k % 128 != 0 ? (tile->rows + tile->columns) * k / 79.53e3 : 0;
    const double body = waves * (larger(larger(multiply, load), latency) + 0.104 + area / 49.42e3);
    const double memory = (double)problem->batch * (n * k + m * k + 2.0 * 2.07 * m * n) / (1.14 * bandwidth);
    return factors[config] * (2.12 + larger(body, memory) + 0.507 * smaller(body, memory));
}

int fp8r_cublaslt_best(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    int best = FP8R_CUBLASLT_HEURISTIC;
    double best_us = 0;
    for (int i = 0; i < FP8R_CUBLASLT_CONFIGS; i++) {
        double us = fp8r_cublaslt_expected_us(device, problem, i);
        if (us > 0 && (best == FP8R_CUBLASLT_HEURISTIC || us < best_us)) {
            best = i;
            best_us = us;
        }
    }
    return best;
}
