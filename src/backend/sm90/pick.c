/* What each configuration is expected to take, from a few rates of the device and what its own times stray from them,
 * and the least of them. A model for problems that nobody measured; it calls nothing. Its constants are fitted to times
 * taken on an H200: over 416 problems, of families and drawn at random, the choice costs 2 % more than the best
 * configuration measured, 30 % at worst; over 47 others, drawn at random, 1.8 % and 19 %.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <stddef.h>

#include "backend/sm90/limits.h"
#include "backend/sm90/shapes.h"

/* What a configuration takes as a multiple of what the formulas say: how its loop came out of the compiler. In the order
 * of the configurations, which a test holds it to. */
static const struct fp8r_sm90_factor factors[] = {
    {"skinny_k1_b1_c11", 0.967},
    {"skinny_k1_b1_c12", 0.927},
    {"skinny_k1_b1_c22", 0.981},
    {"skinny_k2_b1_c11", 1.026},
    {"skinny_k2_b1_c12", 1.054},
    {"skinny_k2_b2_c11", 1.116},
    {"skinny_k2_b2_c12", 1.117},
    {"skinny_k2_b2_c22", 1.057},
    {"skinny_k3_b3_c11", 1.064},
    {"skinny_k4_b1_c11", 1.012},
    {"skinny_k4_b2_c11", 0.949},
    {"skinny_k4_b2_c12", 0.944},
    {"skinny_k4_b2_c22", 1.025},
    {"skinny_k4_b4_c11", 1.034},
    {"skinny_k4_b4_c33", 1.065},
    {"skinny_k8_b2_c11", 1.011},
    {"skinny_k8_b8_c11", 1.084},
    {"wide_64x64", 1.048},
    {"wide_64x80", 0.982},
    {"wide_64x96", 1.006},
    {"wide_64x112", 1.025},
    {"wide_64x128", 0.925},
    {"wide_64x144", 0.968},
    {"wide_64x160", 0.968},
    {"wide_64x176", 1.013},
    {"wide_64x192", 0.917},
    {"wide_128x64", 1.102},
    {"wide_128x64_k2", 1.108},
    {"wide_128x96", 1.017},
    {"wide_128x96_k2", 1.008},
    {"wide_128x112", 1.069},
    {"wide_128x128", 0.989},
    {"wide_128x128_k2", 0.995},
    {"wide_128x176", 1.093},
    {"wide_128x192", 1.016},
    {"wide_128x224", 0.992},
    {"wide_128x256", 0.971},
    {"wide_a128x96", 1.073},
    {"wide_a128x112", 0.996},
    {"wide_a128x128", 0.951},
    {"wide_a128x128_m2", 1.030},
    {"wide_a128x128_n2", 1.068},
    {"wide_a128x160", 0.941},
    {"wide_a128x176", 1.002},
    {"wide_a128x192", 0.991},
    {"wide_a128x192_m2", 0.953},
    {"wide_a128x192_n2", 0.981},
};

const struct fp8r_sm90_factor *fp8r_sm90_factors(int *count)
{
    *count = (int)(sizeof factors / sizeof *factors);
    return factors;
}

/* Rates a microsecond. */
struct rates {
    double memory_bytes;  /* from device memory, all together, on paper */
    double sm_operations; /* of one multiprocessor's tensor cores at 1 GHz */
    int sm_count;
};

static struct rates rates_of(const fp8r_device_facts *device)
{
    const double bandwidth_gbs = device->bandwidth_gbs > 0 ? (double)device->bandwidth_gbs : 4800.0;
    return (struct rates){.memory_bytes = bandwidth_gbs * 1e3,
                          .sm_operations = 8192.0 * 1e3,
                          .sm_count = device->sm_count > 0 ? device->sm_count : 132};
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static int64_t divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* Clusters of more than two stay inside a group of 16 to 18 multiprocessors. A part of a GPU may have fewer: then one
 * cluster runs at a time. */
static int usable_sms(const struct rates *rates, int cluster)
{
    const int usable = cluster > 2 ? rates->sm_count / 16 * 16 : rates->sm_count / cluster * cluster;
    return usable > cluster ? usable : cluster;
}

/* Bytes that must come from memory or go there, once; one written counts as `writing` read. */
static double memory_bytes(const fp8r_problem *problem, double writing)
{
    const double batch = (double)problem->batch, m = (double)problem->m, n = (double)problem->n,
                 k = (double)problem->k;
    return batch * (n * k + m * k + 2.0 * writing * m * n);
}

/* Rows that do not begin at multiples of a line of the caches take more of them. */
static bool is_off_lines(const fp8r_problem *problem)
{
    return problem->k % FP8R_SM90_BLOCK_K != 0;
}

/* Start and end of a skinny kernel. Few tokens are held up by a ring full of weights in front of them. */
static double skinny_fixed_us(const struct fp8r_sm90_config *config, int tokens)
{
    if (config->cut > 1) return 1.99;
    if (config->room > 1) return 1.4;
    return tokens <= 32 ? 2.03 : 1.24;
}

/* What goes on at the same time: the longest of it, and some of the next. */
static double skinny_busy_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                             const fp8r_problem *problem, const struct fp8r_sm90_shape *shape, int tokens,
                             int waves)
{
    const double k = (double)problem->k / config->split;
    const double each_sm = (double)divide_up(
        divide_up(problem->n, shape->rows) * config->split * problem->batch, rates->sm_count);
    /* A ring that holds little of the weights leaves memory idle. */
    const double under_way = (double)config->cut * shape->stages * shape->depth * shape->weight_bytes;
    const double idle = larger(0.0, 1.0 - under_way / 81.91e3);
    const double memory = memory_bytes(problem, 1.0) / (1.1 * rates->memory_bytes) * (1.0 + 0.779 * idle);
    const double taken =
        each_sm * k * (shape->rows + tokens) / 90.72e3 * (is_off_lines(problem) ? 1.0 + 0.352 : 1.0);
    /* Absent rows of a 64-row tile are multiplied as well, and few tokens cost as much as 32. */
    const double multiply = 2.0 * (double)(divide_up(shape->rows, 64) * 64) * larger(tokens, 32.0) * k /
                            (21.1 * rates->sm_operations) * each_sm;
    /* A consumer's blocks one after the other. */
    const double chain = 0.102 * (double)divide_up(problem->k, FP8R_SM90_BLOCK_K) /
                         (config->split * config->inner) * waves * (is_off_lines(problem) ? 1.0 + 0.363 : 1.0);
    const double first = larger(memory, taken), second = larger(multiply, chain);
    const double next =
        larger(smaller(first, second), first > second ? smaller(memory, taken) : smaller(multiply, chain));
    return larger(first, second) + 0.334 * next;
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
    const double partial_bytes = 4.0 * shape.rows * tokens;
    const double across =
        config->split > 1 ? 0.0446 + partial_bytes * (config->split - 1) / config->split / 10.36e3 : 0.0;
    const double inside = config->inner > 1 ? 0.313 + partial_bytes * config->inner / 36.12e3 : 0.0;
    const int64_t units = divide_up(shape.rows, 16) * divide_up(tokens, 8);
    const double store = 0.0966 * (double)divide_up(units, divide_up(shape.rows, 64) * 4 * segments) * waves;
    const bool ragged = divide_up(problem->k, FP8R_SM90_BLOCK_K) % segments != 0;
    return skinny_fixed_us(config, tokens) + skinny_busy_us(rates, config, problem, &shape, tokens, waves) +
           across + inside + store + 1.9 * (waves - 1) + (ragged ? 0.0607 : 0.0);
}

static double wide_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                      const fp8r_problem *problem)
{
    const int64_t rows = fp8r_sm90_tile_rows(config), columns = config->columns;
    const int cluster = config->split * config->share_m * config->share_n;
    const int64_t resident = usable_sms(rates, cluster) / cluster;
    const int64_t tiles = divide_up(problem->m, rows * config->share_m) *
                          divide_up(problem->n, columns * config->share_n) * problem->batch;
    const double waves = (double)divide_up(tiles, resident), area = (double)(rows * columns);
    const double k = (double)problem->k / config->split;
    const bool shares = config->share_m * config->share_n > 1;
    /* At the clock that power leaves, or held up by what a multiprocessor can take in; one warpgroup alone is
     * held up by its own products' latency, too. */
    const bool alone = config->groups * config->tiles == 1;
    const double taken = k * (double)(rows + columns) / (shares ? 146.4e3 : alone ? 107.5e3 : 135.9e3) *
                         (is_off_lines(problem) ? 1.0 + 0.888 : 1.0);
    const double latency = alone ? 0.117 * k / FP8R_SM90_BLOCK_K : 0.0;
    const double tile =
        larger(larger(2.0 * area * k / (1.43 * rates->sm_operations), taken), latency);
    const double store = 1.28 + area / 14.74e3;
    const double exchange =
        config->split > 1 ? 0.496 + area * 4 * (config->split - 1) / config->split / 8.129e3 : 0.0;
    /* Between tiles: taking turns hides the stores, and split blocks, which make one tile each, start anew.
     */
    const double turn = config->alternate ? 1.09 : config->split > 1 ? 0.00605 + store + exchange : store;
    const double last = config->alternate ? 2.0 * store - 1.37 : store;
    const double memory = memory_bytes(problem, 0.529) / (0.697 * rates->memory_bytes),
                 body = waves * tile + (waves - 1) * turn;
    return 0.0108 + (alone ? 0.0424 : 0.0) + last + exchange + larger(memory, body) + 0.00593 * smaller(memory, body);
}

double fp8r_sm90_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config_index)
{
    const struct rates rates = rates_of(device);
    const struct fp8r_sm90_config *config = &fp8r_sm90_configs[config_index];
    return factors[config_index].times * (config->family == FP8R_SM90_SKINNY ? skinny_us(&rates, config, problem)
                                                                             : wide_us(&rates, config, problem));
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
