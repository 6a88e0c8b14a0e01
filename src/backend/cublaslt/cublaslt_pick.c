/* A model that ranks a few configurations for row-wise scales, where the library's own heuristic knows
 * 128x128 tiles only: waves of tiles over the multiprocessors, or the time memory takes. On an H200, over 99
 * problems (eleven shapes of weights, M = 1 to 4096) its choice is 2.1 % slower than the fastest algorithm of
 * all, 20 % at worst; the heuristic's is 27 % slower, 103 % at worst
 * (bench/results/cublaslt-survey-2026-11-29-h200.jsonl, to which its constants are fitted).
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_pick.h"

#include "base/sizes.h"

static const struct {
    int config;
    int rows, columns; /* of a tile: along n, along m */
} candidates[] = {
    {FP8R_CUBLASLT_T64x8_C1x1_O1, 64, 8},       {FP8R_CUBLASLT_T128x32_C1x1_O5, 128, 32},
    {FP8R_CUBLASLT_T256x32_C1x1_O7, 256, 32},   {FP8R_CUBLASLT_T96x64_C1x1_O0, 96, 64},
    {FP8R_CUBLASLT_T128x64_C2x1_O4, 128, 64},   {FP8R_CUBLASLT_T96x128_C2x1_O0, 96, 128},
    {FP8R_CUBLASLT_T112x128_C1x1_O0, 112, 128}, {FP8R_CUBLASLT_T128x128_C2x1_O1, 128, 128},
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

static double expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int64_t m, int rows,
                          int columns)
{
    const double tensor_ops_us = 8192.0 * 1450.0 * 0.7; /* of one multiprocessor */
    const double load_bytes_us = 80e3, memory_bytes_us = 4.2e6, tile_us = 3.0;
    int64_t sm_count = device->sm_count > 0 ? device->sm_count : 132;
    double waves =
        (double)fp8r_size_blocks(fp8r_size_blocks(problem->n, rows) * fp8r_size_blocks(m, columns), sm_count);
    double n = (double)problem->n, k = (double)problem->k;
    double multiply = 2.0 * rows * columns * k / tensor_ops_us, load = (rows + columns) * k / load_bytes_us;
    double busy = waves * ((multiply > load ? multiply : load) + tile_us);
    double memory = (n * k + (double)m * k + 2.0 * (double)m * n) / memory_bytes_us;
    return busy > memory ? busy : memory;
}

int fp8r_cublaslt_best(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    int64_t m = fp8r_cublaslt_bracket_end(problem->m);
    int best = 0;
    double best_us = 0;
    for (int i = 0; i < (int)(sizeof candidates / sizeof *candidates); i++) {
        double us = expected_us(device, problem, m, candidates[i].rows, candidates[i].columns);
        if (i == 0 || us < best_us) {
            best = i;
            best_us = us;
        }
    }
    return candidates[best].config;
}
