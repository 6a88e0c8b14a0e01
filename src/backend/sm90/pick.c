/* What each configuration is expected to take, from a few rates of the device, and the least of them. A model
 * for problems that nobody measured; it calls nothing. Its constants are fitted to sweeps on an H200: over 187
 * problems of eleven families the choice costs 1.6 % more than the best one measured, 21 % at worst.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <stddef.h>

#include "backend/sm90/limits.h"
#include "backend/sm90/shapes.h"

/* Rates a microsecond. */
struct rates {
    double memory_bytes;  /* from device memory, all together */
    double sm_operations; /* of one multiprocessor's tensor cores, at the clock that power leaves */
    int sm_count;
};

static struct rates rates_of(const fp8r_device_facts *device)
{
    const double bandwidth_gbs = device->bandwidth_gbs > 0 ? (double)device->bandwidth_gbs : 4800.0;
    return (struct rates){.memory_bytes = bandwidth_gbs * 1e3 * 0.885,
                          .sm_operations = 8192.0 * 1450.0,
                          .sm_count = device->sm_count > 0 ? device->sm_count : 132};
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static int64_t divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* Clusters of more than two stay inside a group of 16 to 18 multiprocessors. */
static int usable_sms(const struct rates *rates, int cluster)
{
    return cluster > 2 ? rates->sm_count / 16 * 16 : rates->sm_count / cluster * cluster;
}

/* Bytes that must come from memory or go there, once. */
static double memory_bytes(const fp8r_problem *problem)
{
    const double batch = (double)problem->batch, m = (double)problem->m, n = (double)problem->n,
                 k = (double)problem->k;
    return batch * (n * k + m * k + 2.0 * m * n);
}

/* Start and end of a skinny kernel. Blocks that leave room for the next kernel's hide part of it, as long as
 * what they then hold is most of their work. */
static double skinny_fixed_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                              const fp8r_problem *problem, int tokens)
{
    const double weights = (double)problem->batch * (double)problem->n * (double)problem->k / rates->sm_count;
    if (config->room < 2 * config->cut) return 1.8;
    return config->split == 2 && tokens <= 16 && weights <= 160e3 ? 1.34 : 2.73;
}

static double skinny_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                        const fp8r_problem *problem)
{
    const bool promote = problem->accumulation == FP8R_ACCUMULATE_PRECISE;
    const int tokens = fp8r_sm90_skinny_tokens(problem->m, promote), segments = config->split * config->inner;
    const int clusters = usable_sms(rates, config->split) * config->cut / config->split;
    struct fp8r_sm90_shape shape;
    const int waves = fp8r_sm90_cut_skinny(config, problem, tokens, clusters, &shape);
    if (waves == 0) return 1e30;
    const int64_t blocks = divide_up(problem->n, shape.rows) * config->split * problem->batch;
    const int64_t k_blocks = divide_up(problem->k, FP8R_SM90_BLOCK_K),
                  each_sm = divide_up(blocks, rates->sm_count);
    const double k = (double)problem->k / config->split;
    const double partial_bytes = 4.0 * shape.rows * tokens;
    /* Absent rows of a 64-row tile are multiplied as well, and few tokens cost as much as 32. */
    const double multiply = 2.0 * (double)(divide_up(shape.rows, 64) * 64) * (tokens < 32 ? 32 : tokens) * k /
                            rates->sm_operations * (double)each_sm;
    const double taken = (double)each_sm * k * (shape.rows + tokens) / 60.7e3;
    const double chain =
        0.203 * (double)k_blocks / segments * waves; /* a consumer's blocks one after the other */
    const double busy =
        larger(larger(memory_bytes(problem) / rates->memory_bytes, taken), larger(multiply, chain));
    const double across =
        config->split > 1 ? 0.57 + partial_bytes * (config->split - 1) / config->split / 8.9e3 : 0.0;
    const double inside = config->inner > 1 ? 0.33 + partial_bytes * config->inner / 57e3 : 0.0;
    const int64_t units = divide_up(shape.rows, 16) * divide_up(tokens, 8);
    const double store = 0.1 * (double)divide_up(units, divide_up(shape.rows, 64) * 4 * segments) * waves;
    return skinny_fixed_us(rates, config, problem, tokens) + busy + across + inside + store +
           0.4 * (waves - 1) + (k_blocks % segments ? 0.4 : 0.0);
}

static double wide_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                      const fp8r_problem *problem)
{
    const int64_t rows = config->groups * config->tiles * 64, columns = config->columns;
    const int cluster = config->split * config->share_m * config->share_n;
    const int64_t resident = usable_sms(rates, cluster) / cluster;
    const int64_t tiles = divide_up(problem->m, rows * config->share_m) *
                          divide_up(problem->n, columns * config->share_n) * problem->batch;
    const double waves = (double)divide_up(tiles, resident), area = (double)(rows * columns);
    const double k = (double)problem->k / config->split;
    /* Narrow tiles are held up by the operands' way out of shared memory. */
    const double efficiency = area >= 128 * 192 ? 0.987 : area >= 128 * 128 ? 0.96 : 0.864;
    const double tile =
        larger(2.0 * area * k / (rates->sm_operations * efficiency), k * (double)(rows + columns) / 86.7e3);
    const double store = 0.39 + area / 54.9e3;
    const double exchange =
        config->split > 1 ? 1.84 + area * 4 * (config->split - 1) / config->split / 16.5e3 : 0.0;
    const double shared = waves > 1 && config->share_m * config->share_n > 1 ? 2.3 : 0.0;
    /* Split blocks make one tile each: every turn starts anew. */
    const double turn = config->split > 1 ? 2.5 + store + exchange : store;
    return 2.5 + store + exchange + shared +
           larger(memory_bytes(problem) / rates->memory_bytes, waves * tile + (waves - 1) * turn);
}

double fp8r_sm90_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config_index)
{
    const struct rates rates = rates_of(device);
    const struct fp8r_sm90_config *config = &fp8r_sm90_configs[config_index];
    return config->family == FP8R_SM90_SKINNY ? skinny_us(&rates, config, problem)
                                              : wide_us(&rates, config, problem);
}

int fp8r_sm90_pick(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    const bool invariant = problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT;
    const int split = fp8r_sm90_invariant_split(problem->n, problem->k);
    double best_us = 0;
    int best = -1;
    for (int i = 0; i < fp8r_sm90_config_count; ++i) {
        const struct fp8r_sm90_config *config = &fp8r_sm90_configs[i];
        fp8r_reason reason;
        if (!fp8r_sm90_supports(device, problem, i, &reason)) continue;
        const int segments = fp8r_sm90_segments(config, problem);
        if (invariant && (segments > 1 ? segments : config->split * config->inner) != split) continue;
        const double us = fp8r_sm90_expected_us(device, problem, i);
        if (best < 0 || us < best_us) {
            best_us = us;
            best = i;
        }
    }
    return best;
}
