/* What each configuration is expected to take, from a few rates of the device, and the least of them. A model for
 * problems that nobody measured; it calls nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <stddef.h>

#include "backend/sm90/shapes.h"

/* Rates a microsecond, fitted to an H200 (bench/results). L2 is what all multiprocessors together take from it. */
struct rates {
    double memory_bytes, l2_bytes, sm_operations;
    int sm_count;
};

static struct rates rates_of(const fp8r_device_facts *device)
{
    const double bandwidth_gbs = device->bandwidth_gbs > 0 ? (double)device->bandwidth_gbs : 4800.0;
    const int sm_count = device->sm_count > 0 ? device->sm_count : 132;
    return (struct rates){.memory_bytes = bandwidth_gbs * 1e3 * 0.95,
                          .l2_bytes = 5.5e6 * sm_count / 132,
                          .sm_operations = 8192.0 * 1500.0,
                          .sm_count = sm_count};
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static int64_t divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* Bytes that must come from memory or go there, once. */
static double memory_bytes(const fp8r_problem *problem)
{
    const double batch = (double)problem->batch, m = (double)problem->m, n = (double)problem->n, k = (double)problem->k;
    return batch * (n * k + m * k + 2.0 * m * n);
}

static double skinny_us(const struct rates *rates, const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const bool promote = problem->accumulation == FP8R_ACCUMULATE_PRECISE;
    const int tokens = fp8r_sm90_skinny_tokens(problem->m, config->share_n, promote);
    const int cluster = config->split * config->share_n, segments = config->split * config->inner;
    /* Clusters stay inside a group of 16 to 18 multiprocessors. */
    const int64_t clusters = (cluster > 2 ? rates->sm_count / 16 * 16 : rates->sm_count) * config->cut / cluster;
    int64_t tiles = clusters * config->share_n / problem->batch, waves = 1;
    if (tiles < 1)
        tiles = 1;
    int64_t rows = divide_up(divide_up(problem->n, tiles), 4) * 4;
    const int64_t widest = 256 / config->inner;
    if (rows > widest) {
        waves = divide_up(rows, widest);
        rows = divide_up(divide_up(rows, waves), 4) * 4;
    }
    if (rows < 16)
        rows = 16;
    const int64_t blocks = divide_up(problem->n, rows) * config->split * problem->batch;
    const double k = (double)problem->k / config->split;
    /* Absent rows of a 64-row tile are multiplied as well. */
    const double operations = 2.0 * (double)(divide_up(rows, 64) * 64) * (tokens < 32 ? 32 : tokens) * k;
    const double taken = (double)blocks * k * ((double)rows + (double)tokens / config->share_n);
    const double busy = larger(memory_bytes(problem) / rates->memory_bytes, taken / rates->l2_bytes);
    const double multiply = operations / rates->sm_operations * (double)divide_up(blocks, rates->sm_count);
    const double exchange = (config->split > 1 ? 0.6 : 0.1) + (segments > 1 ? (double)rows * tokens * 4 / 60e3 : 0.0);
    return 2.0 + larger(busy, multiply) + exchange + 0.3 * (double)(waves - 1) + (config->share_n > 1 ? 0.3 : 0.0);
}

static double wide_us(const struct rates *rates, const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const int64_t rows = config->groups * config->tiles * 64, columns = config->columns;
    const int cluster = config->split * config->share_m * config->share_n;
    const int64_t resident = (cluster > 2 ? rates->sm_count / 16 * 16 : rates->sm_count / cluster * cluster) / cluster;
    const int64_t tiles = divide_up(problem->m, rows * config->share_m) *
                          divide_up(problem->n, columns * config->share_n) * problem->batch;
    const int64_t waves = divide_up(tiles, resident);
    const double k = (double)problem->k / config->split;
    /* Narrow tiles are held up by the operands' way out of shared memory. */
    const double efficiency = rows * columns >= 128 * 192 ? 0.97 : rows * columns >= 128 * 128 ? 0.90 : 0.75;
    const double multiply = 2.0 * (double)(rows * columns) * k / (rates->sm_operations * efficiency);
    const double taken = (double)(tiles * cluster) * k *
                         ((double)rows / config->share_n + (double)columns / config->share_m);
    const double busy = larger(memory_bytes(problem) / rates->memory_bytes, taken / (rates->l2_bytes * 1.2));
    const double finish = 0.5 + (config->split > 1 ? 1.5 : 0.0);
    return 3.0 + larger(busy, (double)waves * (multiply + finish));
}

int fp8r_sm90_pick(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    const struct rates rates = rates_of(device);
    const bool invariant = problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT;
    const int split = fp8r_sm90_invariant_split(problem->n, problem->k);
    double best_us = 0;
    int best = -1;
    for (int i = 0; i < fp8r_sm90_config_count; ++i) {
        const struct fp8r_sm90_config *config = &fp8r_sm90_configs[i];
        fp8r_reason reason;
        if (!fp8r_sm90_supports(device, problem, i, &reason))
            continue;
        const int segments = fp8r_sm90_segments(config, problem);
        if (invariant && (segments > 1 ? segments : config->split * config->inner) != split)
            continue;
        const double us = config->family == FP8R_SM90_SKINNY ? skinny_us(&rates, config, problem)
                                                             : wide_us(&rates, config, problem);
        if (best < 0 || us < best_us) {
            best_us = us;
            best = i;
        }
    }
    return best;
}
