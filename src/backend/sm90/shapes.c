/* How a configuration is cut for a problem: rows a block, stages, places in shared memory. Arithmetic only,
 * but for the number of clusters that fit the device. SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/shapes.h"

#include "backend/sm90/kernels.h"
#include "backend/sm90/limits.h"

/* Shared memory: 228 KB a multiprocessor, of which the system takes 1 KB a block; one such is left to a block
 * of the small kernel in front of the next product. */
enum { SHARED_SM_BYTES = 233472 - 1024, SHARED_SYSTEM_BYTES = 1024, ALIGN_BYTES = 1024 };

/* Full and empty barriers, the one of the reduction, two pairs of the scales. */
enum { BARRIERS_BYTES = 16 * FP8R_SM90_STAGES_MAX + 64 };

enum {
    SKINNY_ROWS_MIN = 16,
    SKINNY_ROWS_MAX = 256,
    SKINNY_UNIT_BYTES = 512,
    SKINNY_LONG_BLOCKS = 192,
    SKINNY_FEW_TOKENS = 32,
    SKINNY_RECEIVE_APART_MAX = 16384,
    RING_WORTH_BYTES = 122880,
    WIDE_STAGES_WORTH = 4
};

static int64_t divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

static int64_t round_up(int64_t value, int64_t to)
{
    return divide_up(value, to) * to;
}

static int at_most(int64_t value, int64_t limit)
{
    return (int)(value < limit ? value : limit);
}

static const int skinny_widths[] = {
#define WIDTH(tokens) tokens,
    FP8R_SM90_SKINNY_FAST(WIDTH)
#undef WIDTH
};
enum { SKINNY_WIDTHS = (int)(sizeof skinny_widths / sizeof *skinny_widths) };
_Static_assert((int)SKINNY_WIDTHS <= (int)FP8R_SM90_SHAPES_MAX, "a plan has a shape for each width");

static const void *skinny_kernel(int tokens, bool promote, bool e5m2)
{
    return promote ? fp8r_sm90_skinny_precise(tokens, e5m2) : fp8r_sm90_skinny_fast(tokens, e5m2);
}

int fp8r_sm90_skinny_tokens(int64_t m, bool promote)
{
    for (int i = 0; i < SKINNY_WIDTHS; ++i)
        if (skinny_widths[i] >= m && skinny_kernel(skinny_widths[i], promote, false)) return skinny_widths[i];
    return 0;
}

/* Most rows a block, by its warpgroups and the copy engine's boxes. */
static int skinny_rows_max(const struct fp8r_sm90_config *config, int tokens, bool promote)
{
    return at_most(FP8R_SM90_SKINNY_GROUPS(tokens, promote) / config->inner * 64, SKINNY_ROWS_MAX);
}

/* Fewest stages: a consumer holds on to one until it has the next, so that each segment needs two. */
static int skinny_stages_worth(const struct fp8r_sm90_config *config)
{
    return config->inner > 1 ? 2 * config->inner : 3;
}

/* Blocks of K a stage: a load costs the thread that asks for it some 200 cycles, however much it brings. More
 * than one block only where they divide the segments and where K has no ragged end: blocks are an axis of
 * their own then. */
static int skinny_depth(const struct fp8r_sm90_config *config, int64_t k, int block_bytes, int rows,
                        int room_bytes)
{
    const int64_t blocks = divide_up(k, FP8R_SM90_BLOCK_K), segments = config->split * config->inner;
    if (k % FP8R_SM90_BLOCK_K != 0 || blocks % segments != 0 || rows % 8 != 0) return 1;
    /* Few deep stages are worse than many flat ones. */
    const int stages = skinny_stages_worth(config) > 5 ? skinny_stages_worth(config) : 5;
    for (int depth = FP8R_SM90_SKINNY_DEPTH_MAX; depth > 1; --depth)
        if (blocks / segments % depth == 0 && depth * block_bytes * stages <= room_bytes) return depth;
    return 1;
}

/* Bytes of codes that a block makes of all tokens, for the longest of the cluster's parts of K. */
static int64_t skinny_codes_bytes(const struct fp8r_sm90_config *config, int64_t k, int tokens)
{
    const int64_t blocks = divide_up(k, FP8R_SM90_BLOCK_K), segments = config->split * config->inner;
    int64_t most = 0;
    for (int64_t i = 0; i < config->split; ++i) {
        const int64_t own = blocks * (i + 1) * config->inner / segments - blocks * i * config->inner / segments;
        most = own > most ? own : most;
    }
    return most * tokens * FP8R_SM90_BLOCK_K;
}

/* Places everything for `rows` rows a block; false where fewer than the stages worth having fit. */
static bool skinny_layout(const struct fp8r_sm90_config *config, int64_t k, int tokens, int rows, int halves,
                          struct fp8r_sm90_shape *shape)
{
    const int codes = halves ? at_most(skinny_codes_bytes(config, k, tokens), SHARED_SM_BYTES) : 0;
    const int whole_rows = at_most(2 * k * halves, SHARED_SM_BYTES);
    const int groups = (rows + 63) / 64;
    const int units = (rows + 15) / 16 * (tokens / 8), segments = config->split * config->inner;
    const int receive =
        segments > 1 ? (int)divide_up(units, config->split) * segments * SKINNY_UNIT_BYTES : 0;
    const int scales = (2 * SKINNY_ROWS_MAX + tokens) * (int)sizeof(float);
    /* Kernels of few tokens send without waiting for those who still read their stages. */
    shape->receive_in_stages = tokens > FP8R_SM90_SKINNY_COUNTED_TOKENS && receive > SKINNY_RECEIVE_APART_MAX;
    const int fixed = codes + whole_rows + (shape->receive_in_stages ? 0 : receive) + scales + BARRIERS_BYTES;
    const int room_bytes = SHARED_SM_BYTES / config->room - SHARED_SYSTEM_BYTES - ALIGN_BYTES - fixed;
    shape->rows = shape->rows_b = rows;
    shape->threads = FP8R_SM90_SKINNY_THREADS(groups * config->inner);
    shape->weight_bytes = (int)round_up(rows * FP8R_SM90_BLOCK_K, 1024);
    const int block_bytes = shape->weight_bytes + (halves ? 0 : tokens * FP8R_SM90_BLOCK_K);
    shape->depth = skinny_depth(config, k, block_bytes, rows, room_bytes);
    shape->stage_bytes = shape->depth * block_bytes;
    const int64_t blocks = divide_up(divide_up(k, FP8R_SM90_BLOCK_K), segments); /* of the longest segment */
    const int wanted = at_most(divide_up(blocks, shape->depth) * config->inner,
                               FP8R_SM90_STAGES_MAX / config->inner * config->inner);
    if (room_bytes < 0) return false;
    /* The last block's absent rows are read, too: they must lie inside. */
    const int most_bytes = SHARED_SM_BYTES / config->room - SHARED_SYSTEM_BYTES;
    const int last_read = (shape->depth - 1) * shape->weight_bytes + groups * 64 * FP8R_SM90_BLOCK_K + ALIGN_BYTES;
    const int before_last = (most_bytes - last_read) / shape->stage_bytes; /* stages */
    shape->stages = at_most(at_most(room_bytes / shape->stage_bytes, before_last + 1) / config->inner * config->inner, wanted);
    if (shape->stages == 0 || shape->stages < at_most(wanted, skinny_stages_worth(config))) return false;
    shape->tokens_offset = shape->stages * shape->stage_bytes;
    shape->halves_offset = shape->tokens_offset + codes;
    shape->halves_rows = halves;
    int end = shape->halves_offset + whole_rows;
    shape->receive_offset = shape->receive_in_stages ? 0 : end;
    if (!shape->receive_in_stages)
        end += receive;
    else if (end < receive)
        end = (int)round_up(receive, 16);
    shape->scales_offset = end;
    shape->barriers_offset = shape->scales_offset + scales;
    shape->shared_bytes = shape->barriers_offset + BARRIERS_BYTES + ALIGN_BYTES;
    const int read_end = (shape->stages - 1) * shape->stage_bytes + last_read;
    if (shape->shared_bytes < read_end) shape->shared_bytes = read_end;
    return shape->shared_bytes <= most_bytes;
}

int fp8r_sm90_skinny_widest(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const bool promote = fp8r_sm90_promotes(config, problem), e5m2 = problem->a.dtype == FP8R_DTYPE_E5M2;
    int widest = 0;
    for (int i = 0; i < SKINNY_WIDTHS; ++i) {
        const int tokens = skinny_widths[i];
        struct fp8r_sm90_shape shape;
        if (!skinny_kernel(tokens, promote, e5m2)) continue;
        if (skinny_rows_max(config, tokens, promote) < SKINNY_ROWS_MIN ||
            !skinny_layout(config, problem->k, tokens, SKINNY_ROWS_MIN, 0, &shape))
            break;
        widest = tokens;
    }
    return widest;
}

/* Rows a block such that `clusters` clusters at a time, in `waves` turns, take all of N. */
static int64_t skinny_rows(const struct fp8r_sm90_config *config, const fp8r_problem *problem,
                           int tokens, int64_t clusters, int64_t waves)
{
    const int64_t tiles = clusters * waves / problem->batch;
    const int64_t blocks = problem->k / FP8R_SM90_BLOCK_K;
    /* Stages of several blocks of K take rows by eights: worth it where K is long, until it is so long that a
     * few rows more a block take longer than many loads. */
    const bool eights = blocks / (config->split * config->inner) >= 16 &&
                        !(blocks >= SKINNY_LONG_BLOCKS && tokens <= SKINNY_FEW_TOKENS);
    const int64_t rows = round_up(divide_up(problem->n, tiles > 1 ? tiles : 1), eights ? 8 : 4);
    return rows < SKINNY_ROWS_MIN ? SKINNY_ROWS_MIN : rows;
}

/* As fp8r_sm90_cut_skinny, with room for so many rows that the block quantises itself; 0: it does not. */
static int cut_skinny(const struct fp8r_sm90_config *config, const fp8r_problem *problem, int tokens, int clusters,
                      int halves, struct fp8r_sm90_shape *shape)
{
    const bool promote = fp8r_sm90_promotes(config, problem);
    const int64_t widest = skinny_rows_max(config, tokens, promote);
    /* What the smallest blocks have no room for, no number of turns makes fit. */
    if (!skinny_layout(config, problem->k, tokens, SKINNY_ROWS_MIN, halves, shape)) return 0;
    /* More turns make smaller blocks: the first that fits has the fewest. */
    for (int waves = 1;; ++waves) {
        int64_t rows = skinny_rows(config, problem, tokens, clusters, waves);
        const bool smallest =
            rows == SKINNY_ROWS_MIN || (int64_t)clusters * waves >= problem->n * problem->batch;
        if (rows > widest && smallest) rows = widest;
        if (rows <= widest && skinny_layout(config, problem->k, tokens, (int)rows, halves, shape))
            return waves;
        if (smallest) return 0;
    }
}

int fp8r_sm90_cut_skinny(const struct fp8r_sm90_config *config, const fp8r_problem *problem, int tokens,
                         int clusters, struct fp8r_sm90_shape *shape)
{
    return cut_skinny(config, problem, tokens, clusters, 0, shape);
}

/* The shape of a kernel, for as many clusters as the device holds of it. */
static bool shape_skinny(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                         const fp8r_problem *problem, const void *kernel, int tokens, int halves,
                         struct fp8r_sm90_shape *shape)
{
    int clusters = device->sm_count * config->cut / config->split;
    *shape = (struct fp8r_sm90_shape){
        .kernel = kernel, .m_max = tokens, .rows_a = tokens, .cluster = config->split};
    if (!shape->kernel) return false;
    for (;;) {
        if (!cut_skinny(config, problem, tokens, clusters, halves, shape)) return false;
        const int resident =
            fp8r_sm90_clusters_resident(shape->kernel, shape->threads, shape->shared_bytes, config->split);
        if (resident == 0) return false;
        if (resident >= clusters) break;
        clusters = resident; /* once more, for what the device really holds */
    }
    shape->clusters_resident = clusters;
    shape->tile_m = tokens;
    shape->tile_n = shape->rows;
    return true;
}

bool fp8r_sm90_shape_skinny(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                            const fp8r_problem *problem, int tokens, struct fp8r_sm90_shape *shape)
{
    const bool promote = fp8r_sm90_promotes(config, problem);
    return shape_skinny(device, config, problem,
                        skinny_kernel(tokens, promote, problem->a.dtype == FP8R_DTYPE_E5M2), tokens, 0, shape);
}

/* Of a block, all of K. */
static int64_t skinny_weights_bytes(const struct fp8r_sm90_config *config, int64_t k,
                                    const struct fp8r_sm90_shape *shape)
{
    return divide_up(divide_up(k, FP8R_SM90_BLOCK_K), config->split) * shape->weight_bytes;
}

/* As many rows as leave a ring worth having. */
bool fp8r_sm90_shape_halves(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                            const fp8r_problem *problem, bool bf16, struct fp8r_sm90_shape *shape)
{
    const void *const kernel = fp8r_sm90_skinny_halves(bf16);
    for (int rows = FP8R_SM90_SKINNY_HALVES_TOKENS; rows > 0; rows /= 2)
        if (shape_skinny(device, config, problem, kernel, FP8R_SM90_SKINNY_HALVES_TOKENS, rows, shape) &&
            shape->stages * shape->stage_bytes >= at_most(skinny_weights_bytes(config, problem->k, shape), RING_WORTH_BYTES / config->room))
            return true;
    return false;
}

bool fp8r_sm90_shape_wide(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                          const fp8r_problem *problem, struct fp8r_sm90_shape *shape)
{
    const int rows = fp8r_sm90_tile_rows(config), columns = config->columns;
    const int cluster = config->split * config->share_m * config->share_n;
    const int scales = (4 * columns + (config->tokens      ? 2 * rows
                                       : config->split > 1 ? rows
                                                           : 0)) *
                       (int)sizeof(float);
    const int receive = config->split > 1 ? rows * columns * (int)sizeof(float) + config->split * 1024
                        : config->shifted ? columns * 2 * FP8R_SM90_SHIFTED_LINES /* results on their way out */
                                          : 0;
    const int ring = config->packed ? FP8R_SM90_PACKED_RING(config->groups, columns) *
                                          FP8R_SM90_PACKED_WINDOW_BYTES(config->groups, columns)
                                    : 0;
    const int budget = SHARED_SM_BYTES - SHARED_SYSTEM_BYTES - ALIGN_BYTES - scales - BARRIERS_BYTES - ring;
    *shape = (struct fp8r_sm90_shape){.kernel = fp8r_sm90_wide_kernel(config, problem),
                                      .m_max = INT32_MAX,
                                      .rows_a = rows / config->share_n / FP8R_SM90_WIDE_BOXES(rows),
                                      .rows_b = columns / config->share_m,
                                      .threads = config->packed ? FP8R_SM90_PACKED_THREADS(config->groups)
                                                                : FP8R_SM90_WIDE_THREADS(config->groups),
                                      .cluster = cluster,
                                      .depth = 1,
                                      .stage_bytes = (rows + columns) * FP8R_SM90_BLOCK_K,
                                      .tile_m = rows * config->share_m,
                                      .tile_n = columns * config->share_n};
    if (!shape->kernel) return false;
    /* Partial sums take the place of the stages only where too few of these would be left beside them. */
    shape->receive_in_stages = (budget - receive) / shape->stage_bytes < WIDE_STAGES_WORTH;
    const int apart = shape->receive_in_stages ? 0 : receive;
    shape->stages = at_most((budget - apart) / shape->stage_bytes, FP8R_SM90_STAGES_MAX);
    shape->receive_offset = shape->receive_in_stages ? 0 : shape->stages * shape->stage_bytes + ring;
    shape->scales_offset = shape->stages * shape->stage_bytes + ring + apart;
    shape->barriers_offset = shape->scales_offset + scales;
    shape->shared_bytes = shape->barriers_offset + BARRIERS_BYTES + ALIGN_BYTES;
    shape->clusters_resident =
        fp8r_sm90_clusters_resident(shape->kernel, shape->threads, shape->shared_bytes, cluster);
    if (shape->clusters_resident > device->sm_count / cluster)
        shape->clusters_resident = device->sm_count / cluster;
    /* Tiles under way together should form a square: the least to keep in L2. */
    shape->raster = 1;
    while ((int64_t)(shape->raster + 1) * (shape->raster + 1) * shape->tile_m <=
           (int64_t)shape->clusters_resident * shape->tile_n)
        ++shape->raster;
    return shape->clusters_resident > 0 && shape->stages >= 2;
}
