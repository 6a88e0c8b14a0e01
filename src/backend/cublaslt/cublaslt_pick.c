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
    [FP8R_CUBLASLT_T64x8_C1x1_O1] = {0.922, 0.956, 1.003, -0.081, 0.012, 0.005},
    [FP8R_CUBLASLT_T64x8_C1x1_O3] = {0.987, 0.995, 1.001, -0.014, -0.001, -0.012},
    [FP8R_CUBLASLT_T64x32_C4x1_O5] = {0.983, 1.000, 1.006, -0.031, -0.009, -0.064},
    [FP8R_CUBLASLT_T64x32_C4x1_O7] = {1.015, 1.005, 1.003, -0.011, -0.004, -0.025},
    [FP8R_CUBLASLT_T64x64_C1x1_O1] = {0.985, 0.991, 0.997, 0.016, -0.064, 0.051},
    [FP8R_CUBLASLT_T64x64_C1x1_O4] = {1.023, 1.010, 0.998, 0.024, -0.014, 0.005},
    [FP8R_CUBLASLT_T64x64_C4x1_O3] = {0.978, 1.037, 0.994, 0.020, 0.034, -0.048},
    [FP8R_CUBLASLT_T96x64_C1x1_O0] = {0.969, 0.970, 0.997, 0.054, -0.024, 0.039},
    [FP8R_CUBLASLT_T96x64_C4x1_O0] = {0.989, 0.987, 1.001, 0.032, 0.026, -0.005},
    [FP8R_CUBLASLT_T112x64_C1x1_O4] = {0.995, 1.010, 0.996, 0.037, 0.011, 0.014},
    [FP8R_CUBLASLT_T128x32_C1x1_O3] = {1.014, 1.008, 0.999, 0.009, 0.016, 0.017},
    [FP8R_CUBLASLT_T128x32_C1x1_O5] = {0.952, 0.983, 1.002, -0.005, 0.014, 0.008},
    [FP8R_CUBLASLT_T128x32_C1x1_O7] = {1.012, 1.009, 0.999, 0.015, 0.018, 0.015},
    [FP8R_CUBLASLT_T256x32_C1x1_O5] = {0.974, 1.005, 1.002, -0.006, 0.069, -0.023},
    [FP8R_CUBLASLT_T256x32_C1x1_O7] = {1.018, 1.012, 1.001, 0.002, 0.028, -0.001},
    [FP8R_CUBLASLT_T128x64_C1x1_O1] = {0.979, 0.972, 1.005, -0.095, -0.035, 0.101},
    [FP8R_CUBLASLT_T128x64_C2x1_O4] = {1.000, 1.009, 0.994, 0.039, -0.001, 0.009},
    [FP8R_CUBLASLT_T128x64_C1x2_O3] = {1.015, 1.001, 1.004, -0.053, -0.060, -0.009},
    [FP8R_CUBLASLT_T256x64_C1x1_O4] = {0.946, 0.990, 0.994, 0.036, -0.012, 0.037},
    [FP8R_CUBLASLT_T256x64_C1x1_O6] = {1.023, 1.016, 1.000, 0.013, 0.030, 0.007},
    [FP8R_CUBLASLT_T96x128_C1x1_O4] = {1.017, 1.014, 0.996, 0.033, -0.004, 0.010},
    [FP8R_CUBLASLT_T96x128_C2x1_O0] = {1.014, 1.001, 1.002, -0.012, -0.083, 0.014},
    [FP8R_CUBLASLT_T96x128_C4x2_O2] = {1.005, 0.997, 1.005, -0.008, 0.051, -0.009},
    [FP8R_CUBLASLT_T112x128_C1x1_O0] = {1.017, 1.004, 0.999, 0.013, -0.028, 0.008},
    [FP8R_CUBLASLT_T112x128_C1x1_O2] = {1.022, 1.006, 0.999, 0.012, -0.037, 0.010},
    [FP8R_CUBLASLT_T112x128_C2x1_O0] = {0.999, 0.983, 1.006, -0.010, -0.074, -0.001},
    [FP8R_CUBLASLT_T128x128_C1x1_O2] = {1.012, 0.999, 1.000, -0.003, -0.043, 0.011},
    [FP8R_CUBLASLT_T128x128_C1x2_O2] = {1.018, 1.013, 0.981, 0.031, -0.149, -0.051},
    [FP8R_CUBLASLT_T128x128_C2x1_O1] = {0.998, 0.985, 1.004, -0.002, -0.080, -0.058},
    [FP8R_CUBLASLT_T128x96_C4x1_O5] = {0.962, 0.989, 1.000, -0.022, 0.065, 0.038},
    [FP8R_CUBLASLT_T128x96_C4x2_O7] = {1.082, 1.033, 1.004, -0.001, 0.013, 0.026},
    [FP8R_CUBLASLT_T128x128_C1x4_O3] = {0.999, 0.995, 1.002, -0.032, -0.039, 0.058},
    [FP8R_CUBLASLT_T128x128_C2x2_O5] = {1.010, 1.009, 1.000, 0.009, 0.033, -0.007},
    [FP8R_CUBLASLT_T128x128_C4x1_O1] = {0.964, 0.944, 1.003, 0.006, 0.040, -0.028},
    [FP8R_CUBLASLT_T128x128_C4x2_O5] = {1.011, 1.007, 1.002, -0.004, 0.055, -0.011},
    [FP8R_CUBLASLT_T128x192_C4x1_O5] = {1.074, 1.053, 1.000, 0.029, 0.037, -0.003},
    [FP8R_CUBLASLT_T192x128_C1x2_O7] = {1.036, 0.998, 1.008, -0.030, -0.070, -0.001},
};

bool fp8r_cublaslt_is_modelled(const fp8r_problem *problem)
{
    return fp8r_cublaslt_is_row_wise(problem) && problem->accumulation != FP8R_ACCUMULATE_PRECISE;
}

/* Steps of 8, 16 and 64 that double with m from 8192 on. */
int64_t fp8r_cublaslt_bracket_end(int64_t m)
{
    int64_t step = m <= 32 ? 8 : m <= 256 ? 16 : 64;
    while (step < (m + 127) / 128 && m > 1024)
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
    return problem->k % 64 == 0 ? 0.268 : problem->k % 32 == 0 ? 0.598 : 1.0;
}

/* How the tiles of a problem come to the multiprocessors. */
struct spread {
    double m;          /* with the rows of the bracket */
    double full_waves; /* of the device: with a tile for everybody */
    double left;       /* share of a full wave's tiles that the last one has, where it is not full */
    double reach;      /* share of the multiprocessors that a full wave gives work */
    double mean_rows, mean_columns; /* of the tiles: what is there */
};

static struct spread spread_of(const struct tile *tile, const fp8r_problem *problem, int64_t sm_count)
{
    const int64_t m = fp8r_cublaslt_bracket_end(problem->m);
    const int cluster = tile->cluster_rows * tile->cluster_columns;
    const int64_t resident = resident_clusters(sm_count, cluster);
    const int64_t clusters = fp8r_size_blocks(problem->n, tile->rows * tile->cluster_rows) *
                             fp8r_size_blocks(m, tile->columns * tile->cluster_columns) * problem->batch;
    return (struct spread){.m = (double)m,
                           .full_waves = (double)(clusters / resident),
                           .left = (double)(clusters % resident) / (double)resident,
                           .reach = (double)(resident * cluster) / (double)sm_count,
                           .mean_rows = (double)problem->n / (double)fp8r_size_blocks(problem->n, tile->rows),
                           .mean_columns = (double)m / (double)fp8r_size_blocks(m, tile->columns)};
}

/* A tile's walk over K takes as long as the longest of what goes on at the same time, and a little longer
 * where others are nearly as long. busy: share of the multiprocessors that have work. The L2 gives hardly
 * less to few of them than to all where it is asked for lines in parts. */
static double walk_us(const struct tile *tile, const fp8r_problem *problem, const struct spread *it,
                      double busy)
{
    const double sm_operations = 8192e3, k = (double)problem->k, area = tile->rows * tile->columns;
    const double shared_rows = 1.0 - 1.0 / tile->cluster_columns,
                 shared_columns = 1.0 - 1.0 / tile->cluster_rows;
    const double lines = it->mean_rows / tile->cluster_columns + it->mean_columns / tile->cluster_rows;
    const double off = off_lines(problem), crowd = pow(busy, fmax(1.0 - 0.43 * off, 0.1));
    const double times[] = {
        2.0 * area * k / (1.14 * (1.0 + 1.18 * (1.0 - busy)) * sm_operations),
        (tile->rows * (1.0 - 0.158 * shared_rows) + tile->columns * (1.0 - 0.158 * shared_columns)) * k /
            128e3,
        (0.0134 + 0.18 * busy) * (double)fp8r_size_blocks(problem->k, 128),
        crowd * lines * k / 138.2e3 * (1.0 + 1.75 * off),
    };
    double sum = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        sum += times[i] * times[i] * times[i] * times[i];
    return sqrt(sqrt(sum));
}

/* All waves: the tiles' walks, starts and ends. The last one, where it is not full, goes on while others end,
 * and has more of the device for itself. */
static double waves_us(const struct tile *tile, const struct factor *factor, const fp8r_problem *problem,
                       const struct spread *it)
{
    const double ends = factor->ends * (0.334 + (double)(tile->rows * tile->columns) / 11.92e3);
    const double full = factor->walk * walk_us(tile, problem, it, it->reach) + ends;
    if (!(it->left > 0)) return it->full_waves * full;
    const double last = factor->walk * walk_us(tile, problem, it, it->left * it->reach) + ends;
    return it->full_waves * full + last * (it->full_waves > 0 ? 1.0 - 0.0727 * (1.0 - it->left) : 1.0);
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
    const struct spread it = spread_of(tile, problem, device->sm_count > 0 ? device->sm_count : 132);
    const double n = (double)problem->n, k = (double)problem->k, m = it.m;
    const double body = waves_us(tile, factor, problem, &it);
    const double memory =
        (double)problem->batch * (n * k + m * k + 2.0 * 0.779 * m * n) / (0.824 * bandwidth);
    return factor->times * grown(factor, m, n, k) *
           (1.68 + cbrt(body * body * body + memory * memory * memory));
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
