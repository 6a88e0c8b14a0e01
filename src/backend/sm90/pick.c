/* What each configuration is expected to take, and the least of them: a model for problems that nobody
 * measured; it calls nothing. Formulas say what a configuration waits for (memory, the L2's lines, a
 * multiprocessor's loads, its products, a block's latency); what it takes as a multiple of that is fitted to
 * times taken on an H200 (docs/worklog.md).
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <math.h>
#include <stddef.h>

#include "backend/sm90/eights.h"
#include "backend/sm90/limits.h"
#include "backend/sm90/shapes.h"

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

static double squared(double x)
{
    return x * x;
}

static double cubed(double x)
{
    return x * x * x;
}

/* What goes on at the same time takes as long as the longest of it, and a little longer where others are
 * nearly as long. */
static double together(double x, double y)
{
    return sqrt(sqrt(squared(squared(x)) + squared(squared(y))));
}

static double all_together(const double *times, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += squared(cubed(times[i]));
    return cbrt(sqrt(sum));
}

/* Clusters of more than two stay inside a group of 16 to 18 multiprocessors, of which three leave one over. A
 * part of a GPU may have fewer: then one cluster runs at a time. */
static int usable_sms(const struct rates *rates, int cluster)
{
    const int usable = cluster == 3  ? rates->sm_count / 16 * 15
                       : cluster > 2 ? rates->sm_count / 16 * 16
                                     : rates->sm_count / cluster * cluster;
    return usable > cluster ? usable : cluster;
}

/* Bytes that must come from memory or go there, once; one written counts as `writing` read. */
static double memory_bytes(const fp8r_problem *problem, double writing)
{
    const double batch = (double)problem->batch, m = (double)problem->m, n = (double)problem->n,
                 k = (double)problem->k;
    return batch * (n * k + m * k + 2.0 * writing * m * n);
}

/* Rows that do not begin at multiples of a line of the caches take more of them: 0 to 1, by how far from it
 * they are. */
static double off_lines(const fp8r_problem *problem)
{
    if (problem->k % FP8R_SM90_BLOCK_K == 0) return 0;
    return problem->k % 64 == 0 ? 0.268 : problem->k % 32 == 0 ? 0.598 : 1.0;
}

/* What the L2 is asked for at a time, by the share of the multiprocessors that ask. Of lines in parts it
 * gives hardly less to few of them than to all. */
static double crowd(double busy, double off)
{
    return pow(busy, larger(1.0 - 0.43 * off, 0.1));
}

/* ---- Skinny ---- */

/* Start and end of a skinny kernel. Few tokens are held up by a ring full of weights in front of them. */
static double skinny_fixed_us(const struct fp8r_sm90_config *config, int tokens)
{
    if (config->cut > 1) return 1.28;
    if (config->room > 1) return 0.994;
    return tokens <= 32 ? 1.06 : 1.17;
}

/* The walk over K: what goes on at the same time. */
static double skinny_busy_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                             const fp8r_problem *problem, const struct fp8r_sm90_shape *shape, int tokens,
                             int waves)
{
    const double k = (double)problem->k / config->split, present = smaller((double)problem->m, tokens);
    const int64_t blocks = divide_up(problem->n, shape->rows) * config->split * problem->batch;
    const double each_sm = (double)divide_up(blocks, rates->sm_count);
    const double busy = smaller((double)blocks / rates->sm_count, 1.0), off = off_lines(problem);
    /* A ring that holds little of the weights leaves memory idle. */
    const double under_way = (double)config->cut * shape->stages * shape->depth * shape->weight_bytes;
    const double idle = larger(0.0, 1.0 - under_way / 59.22e3);
    const double taken = each_sm * k * (shape->rows + present);
    const double loads = ceil(k / FP8R_SM90_BLOCK_K) / shape->depth;
    /* Absent rows of a 64-row tile are multiplied as well, and few tokens cost as much as 32. */
    const double operations =
        2.0 * (double)(divide_up(shape->rows, 64) * 64) * larger(tokens, 32.0) * k * each_sm;
    const double chain =
        (double)divide_up(problem->k, FP8R_SM90_BLOCK_K) / (config->split * config->inner) * waves;
    const double times[] = {
        memory_bytes(problem, 1.0) / (0.843 * rates->memory_bytes) * (1.0 + 0.275 * idle),
        (taken + 0.508 * each_sm * k * (tokens - present)) / 236.5e3 + 0.11 * each_sm * loads,
        operations / (1.14 * rates->sm_operations),
        (0.056 + 0.101 * busy) * chain * (1.0 + 0.271 * off),
        crowd(busy, off) * taken / 100.5e3 * (1.0 + 1.98 * off),
    };
    return all_together(times, sizeof times / sizeof *times);
}

static double skinny_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                        const struct fp8r_sm90_factor *factor, const fp8r_problem *problem)
{
    const bool promote = problem->accumulation == FP8R_ACCUMULATE_PRECISE;
    const int tokens = fp8r_sm90_skinny_tokens(problem->m, promote), segments = config->split * config->inner;
    const int sms = config->split > 2 ? rates->sm_count / 16 * 16 : usable_sms(rates, config->split);
    const int clusters = (sms > config->split ? sms : config->split) * config->cut / config->split;
    struct fp8r_sm90_shape shape;
    const int waves = fp8r_sm90_cut_skinny(config, problem, tokens, clusters, &shape);
    if (waves == 0) return 1e30;
    const double partial_bytes = 4.0 * shape.rows * tokens;
    const double across =
        config->split > 1 ? 0.0502 + partial_bytes * (config->split - 1) / config->split / 6.732e3 : 0.0;
    const double inside = config->inner > 1 ? 0.17 + partial_bytes * config->inner / 51.17e3 : 0.0;
    const int64_t units = divide_up(shape.rows, 16) * divide_up(tokens, 8);
    const double store = 0.154 * (double)divide_up(units, divide_up(shape.rows, 64) * 4 * segments) * waves;
    const bool ragged = divide_up(problem->k, FP8R_SM90_BLOCK_K) % segments != 0;
    return factor->ends * skinny_fixed_us(config, tokens) +
           factor->walk * skinny_busy_us(rates, config, problem, &shape, tokens, waves) + across + inside +
           store + 1.51 * (waves - 1) + (ragged ? 0.0535 : 0.0);
}

/* ---- Wide ---- */

/* How the tiles of a problem come to the multiprocessors. */
struct spread {
    double waves, full_waves; /* of the device: begun; with a tile for everybody */
    double left;              /* share of a full wave's tiles that the last one has, where it is not full */
    double reach;             /* share of the multiprocessors that a full wave gives work */
    double k, blocks;         /* of a segment */
    double area, rows;        /* of a tile; its rows that are there, at the most */
    double mean_rows, mean_columns; /* of the tiles: what is there */
};

static struct spread spread_of(const struct rates *rates, const struct fp8r_sm90_config *config,
                               const fp8r_problem *problem)
{
    const int64_t rows = fp8r_sm90_tile_rows(config), columns = config->columns;
    const int cluster = config->split * config->share_m * config->share_n;
    const int64_t resident = usable_sms(rates, cluster) / cluster;
    const int64_t tiles = divide_up(problem->m, rows * config->share_m) *
                          divide_up(problem->n, columns * config->share_n) * problem->batch;
    return (struct spread){.waves = (double)divide_up(tiles, resident),
                           .full_waves = (double)(tiles / resident),
                           .left = (double)(tiles % resident) / (double)resident,
                           .reach = (double)(resident * cluster) / rates->sm_count,
                           .k = (double)problem->k / config->split,
                           .blocks =
                               (double)divide_up(divide_up(problem->k, FP8R_SM90_BLOCK_K), config->split),
                           .area = (double)(rows * columns),
                           .rows = smaller((double)rows, (double)problem->m),
                           .mean_rows = (double)problem->m / (double)divide_up(problem->m, rows),
                           .mean_columns = (double)problem->n / (double)divide_up(problem->n, columns)};
}

/* A tile's walk over K where a share of the multiprocessors is busy: at the clock that power leaves, or held
 * up by what the L2 or a multiprocessor can take in; one warpgroup alone is held up by its own products'
 * latency, too. */
static double wide_tile_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                           const fp8r_problem *problem, const struct spread *it, double busy)
{
    const bool shares = config->share_m * config->share_n > 1, alone = config->groups * config->tiles == 1;
    const double absent = (double)fp8r_sm90_tile_rows(config) - it->rows, columns = config->columns;
    const double lines = it->mean_rows / config->share_n + it->mean_columns / config->share_m;
    const double off = off_lines(problem);
    const double times[] = {
        2.0 * it->area * it->k / (1.2 * (1.0 + 0.314 * (1.0 - busy)) * rates->sm_operations),
        it->k * (it->rows + columns + 0.312 * absent) /
            (shares  ? 99.19e3
             : alone ? 190e3
                     : 101.9e3),
        ((alone ? 0.055 : 0.0) + 0.0277 + 0.0847 * busy) * it->blocks,
        crowd(busy, off) * lines * it->k / 126.3e3 * (1.0 + 2.44 * off),
    };
    return all_together(times, sizeof times / sizeof *times);
}

/* The walks of all waves. The last one, where it is not full, goes on while others end, and has more of the
 * device for itself. */
static double wide_walks_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                            const fp8r_problem *problem, const struct spread *it)
{
    const double full = it->full_waves > 0 ? wide_tile_us(rates, config, problem, it, it->reach) : 0.0;
    if (!(it->left > 0)) return it->full_waves * full;
    const double last = wide_tile_us(rates, config, problem, it, it->left * it->reach);
    return it->full_waves * full + last * (it->full_waves > 0 ? 1.0 - 0.0627 * (1.0 - it->left) : 1.0);
}

static double exchange_us(const struct fp8r_sm90_config *config, double area, double fixed, double bytes)
{
    return config->split > 1 ? fixed + area * 4 * (config->split - 1) / config->split / bytes : 0.0;
}

static double wide_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                      const struct fp8r_sm90_factor *factor, const fp8r_problem *problem)
{
    const struct spread it = spread_of(rates, config, problem);
    const double walks = factor->walk * wide_walks_us(rates, config, problem, &it);
    const double store = 1.36 + it.area / 11.97e3;
    const double exchange = exchange_us(config, it.area, 0.524, 8.084e3);
    /* Between tiles: taking turns hides the stores, and split blocks, which make one tile each, start anew.
     */
    const double turn = config->alternate ? 1.45 : store + exchange;
    const double last = config->alternate ? 2.0 * store - 2.86 : store;
    const double memory = memory_bytes(problem, 1.18) / (0.784 * rates->memory_bytes),
                 body = walks + (it.waves - 1) * factor->ends * turn;
    return factor->ends * last + exchange + together(memory, body);
}

/* Without the copy engine: a block of K takes a chain of waits, rows on their way through shared memory, and
 * rows that the tensor cores read, those that do not exist, too. Fitted to times of K = 3420 alone. */
static double packed_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                        const fp8r_problem *problem)
{
    const struct spread it = spread_of(rates, config, problem);
    const double columns = config->columns, loaded = it.rows + columns;
    const double read = config->groups * (64.0 + columns);
    const double body = it.waves * it.blocks * (0.141 + (123.0 * loaded + 88.1 * read) / 100e3);
    const double store = 1.97 + it.area / 15.83e3;
    const double exchange = exchange_us(config, it.rows * columns, 0.0, 10.26e3);
    /* Split blocks, which make one tile each, start anew. */
    const double turn = store + exchange + (config->split > 1 ? 3.03 : 0.0);
    const double memory = memory_bytes(problem, 1.18) / (0.784 * rates->memory_bytes);
    return 3.34 + store + exchange + together(memory, body + (it.waves - 1) * turn);
}

/* Rows of b by eights, through registers, mostly behind a copy of a. Fitted to 337 times of 46 problems (docs/worklog.md). */
static double shifted_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                         const fp8r_problem *problem)
{
    const struct spread it = spread_of(rates, config, problem);
    const double copied = (double)problem->batch * (double)problem->m * (double)problem->k;
    const double copy = fp8r_sm90_copies(config, problem) ? 1.64 + copied / 1.85e6 : 0.0;
    const double busy = it.reach * (it.full_waves >= 1 ? 1.0 : it.left),
                 read = config->tokens * config->groups;
    const double block = 0.113 + 0.000393 * (it.rows + config->columns) * busy + 0.000806 * read;
    const double store = it.area / 22.4e3 + (config->split > 1 ? 2.96 : 0.0);
    const double memory = memory_bytes(problem, 3.69) / (0.755 * rates->memory_bytes);
    return (config->split > 1 ? 0.0 : 1.38) + copy + it.waves * store +
           together(memory, it.waves * (it.blocks + 1) * block);
}

static double family_us(const struct rates *rates, const struct fp8r_sm90_config *config,
                        const struct fp8r_sm90_factor *factor, const fp8r_problem *problem)
{
    if (config->packed) return packed_us(rates, config, problem);
    if (config->shifted) return shifted_us(rates, config, problem);
    return config->family == FP8R_SM90_SKINNY ? skinny_us(rates, config, factor, problem)
                                              : wide_us(rates, config, factor, problem);
}

double fp8r_sm90_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config_index)
{
    const struct rates rates = rates_of(device);
    const struct fp8r_sm90_config *config = &fp8r_sm90_configs[config_index];
    int count;
    const struct fp8r_sm90_factor *factor = &fp8r_sm90_factors(&count)[config_index];
    const double octaves = factor->by_k * log2((double)problem->k / 4096.0) +
                           factor->by_m * log2((double)problem->m / 128.0) +
                           factor->by_n * log2((double)problem->n / 4096.0);
    return factor->times * exp2(octaves / 4.0) * family_us(&rates, config, factor, problem);
}

int fp8r_sm90_pick(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    const bool invariant = problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT;
    const int split = fp8r_sm90_invariant_split(problem->n, problem->k);
    const bool maps = fp8r_sm90_takes_maps(problem);
    double best_us = 0;
    int best = -1;
    for (int i = 0; i < fp8r_sm90_config_count; ++i) {
        const struct fp8r_sm90_config *config = &fp8r_sm90_configs[i];
        fp8r_reason reason;
        if ((config->packed || config->shifted) == maps || !fp8r_sm90_supports(device, problem, i, &reason))
            continue;
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
