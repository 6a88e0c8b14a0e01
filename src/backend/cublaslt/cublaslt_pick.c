/* A model that ranks the configurations for row-wise scales, where the library's own heuristic knows 128x128
 * tiles only: waves of tiles over the multiprocessors, each as long as what it waits for, or the time memory
 * takes; what a configuration takes as a multiple of that is fitted to times taken on an H200
 * (docs/worklog.md). SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_pick.h"

#include <math.h>

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

/* What a configuration takes as multiples of what the formulas say: all, its walk over K, a tile's start and
 * end (0: it is not ranked); by how much the whole grows with K, M, N (times 2 to the power of each, every 4
 * octaves). */
static const struct factor {
    double times, walk, ends, by_k, by_m, by_n;
} factors[FP8R_CUBLASLT_CONFIGS] = {
    [FP8R_CUBLASLT_T64x8_C1x1_O1] = {0.918, 0.961, 0.999, -0.021, -0.016, 0.066},
    [FP8R_CUBLASLT_T64x8_C1x1_O3] = {1.007, 1.001, 1.000, -0.006, -0.005, -0.002},
    [FP8R_CUBLASLT_T64x32_C4x1_O5] = {1.033, 1.029, 1.001, -0.008, 0.033, -0.037},
    [FP8R_CUBLASLT_T64x32_C4x1_O7] = {1.075, 1.025, 1.001, 0.000, 0.007, -0.024},
    [FP8R_CUBLASLT_T64x64_C1x1_O1] = {0.984, 0.966, 1.001, -0.022, -0.053, -0.009},
    [FP8R_CUBLASLT_T64x64_C1x1_O4] = {1.036, 1.008, 1.001, 0.001, -0.012, 0.003},
    [FP8R_CUBLASLT_T64x64_C4x1_O3] = {1.044, 1.027, 0.998, 0.053, 0.047, 0.008},
    [FP8R_CUBLASLT_T96x64_C1x1_O0] = {0.951, 0.999, 1.003, -0.006, -0.028, 0.033},
    [FP8R_CUBLASLT_T96x64_C4x1_O0] = {1.054, 1.020, 1.001, 0.006, 0.028, 0.008},
    [FP8R_CUBLASLT_T112x64_C1x1_O4] = {1.014, 1.015, 0.999, 0.024, 0.005, 0.015},
    [FP8R_CUBLASLT_T128x32_C1x1_O3] = {1.017, 1.004, 1.000, -0.001, -0.003, 0.004},
    [FP8R_CUBLASLT_T128x32_C1x1_O5] = {0.937, 0.981, 1.002, -0.035, -0.019, -0.008},
    [FP8R_CUBLASLT_T128x32_C1x1_O7] = {1.015, 1.004, 1.000, 0.001, -0.002, 0.003},
    [FP8R_CUBLASLT_T256x32_C1x1_O5] = {0.948, 1.001, 1.001, -0.028, 0.025, -0.034},
    [FP8R_CUBLASLT_T256x32_C1x1_O7] = {1.009, 1.003, 1.000, 0.000, 0.003, 0.002},
    [FP8R_CUBLASLT_T128x64_C1x1_O1] = {0.979, 0.958, 1.003, -0.037, 0.016, -0.007},
    [FP8R_CUBLASLT_T128x64_C2x1_O4] = {1.036, 1.016, 1.000, 0.013, 0.014, 0.012},
    [FP8R_CUBLASLT_T128x64_C1x2_O3] = {1.040, 1.017, 1.001, -0.002, 0.011, -0.006},
    [FP8R_CUBLASLT_T256x64_C1x1_O4] = {0.935, 1.002, 0.995, 0.035, 0.036, 0.031},
    [FP8R_CUBLASLT_T256x64_C1x1_O6] = {1.029, 1.015, 1.000, 0.006, 0.026, 0.008},
    [FP8R_CUBLASLT_T96x128_C1x1_O4] = {1.022, 1.011, 1.000, 0.011, 0.021, -0.003},
    [FP8R_CUBLASLT_T96x128_C2x1_O0] = {0.987, 1.010, 1.003, -0.011, -0.031, -0.037},
    [FP8R_CUBLASLT_T96x128_C4x2_O2] = {1.018, 1.015, 0.999, 0.002, 0.090, 0.070},
    [FP8R_CUBLASLT_T112x128_C1x1_O0] = {0.980, 0.985, 1.000, 0.003, 0.006, -0.015},
    [FP8R_CUBLASLT_T112x128_C1x1_O2] = {1.009, 1.002, 1.000, 0.010, -0.053, 0.055},
    [FP8R_CUBLASLT_T112x128_C2x1_O0] = {1.003, 0.988, 1.003, -0.017, -0.071, -0.035},
    [FP8R_CUBLASLT_T128x128_C1x1_O2] = {1.005, 1.001, 0.999, 0.008, -0.028, 0.000},
    [FP8R_CUBLASLT_T128x128_C1x2_O2] = {1.011, 0.977, 1.005, 0.045, -0.085, -0.057},
    [FP8R_CUBLASLT_T128x128_C2x1_O1] = {1.009, 0.983, 1.001, -0.028, -0.062, -0.055},
};

bool fp8r_cublaslt_is_modelled(const fp8r_problem *problem)
{
    return fp8r_cublaslt_is_row_wise(problem) && problem->accumulation != FP8R_ACCUMULATE_PRECISE;
}

/* Steps of 8, 16, 64 and 128 that double with m from 8192 on. */
int64_t fp8r_cublaslt_bracket_end(int64_t m)
{
    int64_t step = m <= 32 ? 8 : m <= 256 ? 16 : m <= 1024 ? 64 : 128;
    while (step < (m + 63) / 64 && m > 1024)
        step *= 2;
    return fp8r_size_blocks(m, step) * step;
}

/* Clusters of more than two stay inside a group of 16 to 18 multiprocessors. */
static int64_t resident_clusters(int64_t sm_count, int cluster)
{
    return fp8r_size_max(1, (cluster > 2 ? sm_count / 16 * 16 : sm_count) / cluster);
}

/* Rows that do not begin at multiples of a line of the caches take more of them: 0 to 1, by how far from it
 * they are. */
static double off_lines(const fp8r_problem *problem)
{
    if (problem->k % 128 == 0) return 0;
    return problem->k % 64 == 0 ? 0.392 : problem->k % 32 == 0 ? 0.526 : 1.0;
}

/* A tile's walk over K takes as long as the longest of what goes on at the same time, and a little longer
 * where others are nearly as long. busy: share of the multiprocessors that have work. */
static double walk_us(const struct tile *tile, const fp8r_problem *problem, double busy)
{
    const double sm_operations = 8192e3, k = (double)problem->k, area = tile->rows * tile->columns;
    const double shared_rows = 1.0 - 1.0 / tile->cluster_columns,
                 shared_columns = 1.0 - 1.0 / tile->cluster_rows;
    const double lines =
        (double)tile->rows / tile->cluster_columns + (double)tile->columns / tile->cluster_rows;
    const double times[] = {
        2.0 * area * k / (1.2 * (1.0 + 0.265 * (1.0 - busy)) * sm_operations),
        (tile->rows * (1.0 - 0.256 * shared_rows) + tile->columns * (1.0 - 0.256 * shared_columns)) * k /
            126.7e3,
        (0.0405 + 0.0842 * busy) * (double)fp8r_size_blocks(problem->k, 128),
        busy * lines * k / 126.9e3 * (1.0 + 1.62 * off_lines(problem)),
    };
    double sum = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        sum += times[i] * times[i] * times[i] * times[i];
    return sqrt(sqrt(sum));
}

static double grown(const struct factor *factor, double m, double n, double k)
{
    return exp2(
        (factor->by_k * log2(k / 4096.0) + factor->by_m * log2(m / 128.0) + factor->by_n * log2(n / 4096.0)) /
        4.0);
}

double fp8r_cublaslt_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    const struct tile *tile = &tiles[config];
    const struct factor *factor = &factors[config];
    if (!(factor->times > 0)) return 0;
    const double bandwidth = device->bandwidth_gbs > 0 ? (double)device->bandwidth_gbs * 1e3 : 4.917e6;
    const int64_t last = fp8r_cublaslt_bracket_end(problem->m);
    const int64_t sm_count = device->sm_count > 0 ? device->sm_count : 132;
    const double n = (double)problem->n, k = (double)problem->k, m = (double)last;
    const int cluster = tile->cluster_rows * tile->cluster_columns;
    const int64_t clusters = fp8r_size_blocks(problem->n, tile->rows * tile->cluster_rows) *
                             fp8r_size_blocks(last, tile->columns * tile->cluster_columns) * problem->batch;
    const int64_t resident = resident_clusters(sm_count, cluster),
                  waves = fp8r_size_blocks(clusters, resident);
    const double busy = (double)(fp8r_size_min(clusters, resident) * cluster) / (double)sm_count;
    /* The last wave counts for less where it is not full. */
    const double taken =
        waves > 1 ? (double)waves - 0.091 * ((double)waves - (double)clusters / (double)resident) : 1.0;
    const double ends = 0.136 + (double)(tile->rows * tile->columns) / 26.66e3;
    const double body = taken * (factor->walk * walk_us(tile, problem, busy) + factor->ends * ends);
    const double memory = (double)problem->batch * (n * k + m * k + 2.0 * 1.74 * m * n) / (0.921 * bandwidth);
    return factor->times * grown(factor, m, n, k) *
           (1.65 + cbrt(body * body * body + memory * memory * memory));
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
