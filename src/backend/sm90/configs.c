/* The table of configurations and what they can run: no device call, no CUDA header.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <stddef.h>

#include "backend/sm90/kernels.h"
#include "backend/sm90/limits.h"
#include "backend/sm90/shapes.h"
#include "backend/sm90/shifted.h"
#include "base/dtype.h"

/* Of the copy engine's addresses and pitches. */
enum { COPY_ALIGN_BYTES = 16 };

/* skinny_kK_bB_cCR: K segments over B blocks, cut for C blocks a multiprocessor of which R would have room.
 * wide_RxC with _mX, _nX: tiles of R rows and C columns of out, tiles of b, of a shared by X blocks; _kK: K
 * segments, each its own block; aRxC: in turns; pRxC: without the copy engine; sRxC: b by eights, a copied. */
#define SKINNY(segments_, blocks_, cut_, room_)                                                              \
    {                                                                                                        \
        .name = "skinny_k" #segments_ "_b" #blocks_ "_c" #cut_ #room_, .family = FP8R_SM90_SKINNY,           \
        .split = (blocks_), .share_m = 1, .share_n = 1, .inner = (segments_) / (blocks_), .cut = (cut_),     \
        .room = (room_)                                                                                      \
    }
#define WIDE(name_, groups_, tiles_, columns_, split_, share_m_, share_n_)                                   \
    {                                                                                                        \
        .name = "wide_" name_, .family = FP8R_SM90_WIDE, .split = (split_), .share_m = (share_m_),           \
        .share_n = (share_n_), .inner = 1, .groups = (groups_), .tiles = (tiles_), .columns = (columns_)     \
    }

#define ALTERNATING(name_, tiles_, columns_, share_m_, share_n_)                                             \
    {                                                                                                        \
        .name = "wide_" name_, .family = FP8R_SM90_WIDE, .split = 1, .share_m = (share_m_),                  \
        .share_n = (share_n_), .inner = 1, .groups = 2, .tiles = (tiles_), .columns = (columns_),            \
        .alternate = true                                                                                    \
    }

/* Operands swapped: 64 rows of b a warpgroup, `tokens_` rows of a. */
#define SWAPPED(groups_, tokens_, columns_)                                                                  \
    {                                                                                                        \
        .name = "wide_t" #tokens_ "x" #columns_, .family = FP8R_SM90_WIDE, .split = 1, .share_m = 1,         \
        .share_n = 1, .inner = 1, .groups = (groups_), .tiles = 1, .columns = (columns_),                    \
        .tokens = (tokens_)                                                                                  \
    }

#define PACKED(name_, groups_, columns_, split_)                                                             \
    {                                                                                                        \
        .name = "wide_" name_, .family = FP8R_SM90_WIDE, .split = (split_), .share_m = 1, .share_n = 1,      \
        .inner = 1, .groups = (groups_), .tiles = 1, .columns = (columns_), .packed = true                   \
    }

#define SHIFTED(name_, groups_, tokens_, split_)                                                             \
    {                                                                                                        \
        .name = "wide_" name_, .family = FP8R_SM90_WIDE, .split = (split_), .share_m = 1, .share_n = 1,      \
        .inner = 1, .groups = (groups_), .tiles = 1, .columns = 64 * (groups_), .tokens = (tokens_),         \
        .shifted = true                                                                                      \
    }

const struct fp8r_sm90_config fp8r_sm90_configs[] = {
#include "backend/sm90/configs.inc"
};

const int fp8r_sm90_config_count = (int)(sizeof fp8r_sm90_configs / sizeof *fp8r_sm90_configs);

const void *fp8r_sm90_wide_kernel(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const bool e5m2 = problem->a.dtype == FP8R_DTYPE_E5M2, promote = fp8r_sm90_promotes(config, problem);
    if (config->shifted) return promote || e5m2 ? NULL : fp8r_sm90_shifted(config->groups, config->tokens);
    if (config->tokens)
        return promote || e5m2 ? NULL : fp8r_sm90_wide_swapped(config->groups, config->tokens);
    if (config->packed) return fp8r_sm90_packed(config->groups, config->columns, promote, e5m2);
    if (config->alternate)
        return promote || e5m2 ? NULL : fp8r_sm90_wide_alternating(config->tiles, config->columns);
    return promote ? fp8r_sm90_wide_precise(config->groups, config->tiles, config->columns, e5m2)
                   : fp8r_sm90_wide_fast(config->groups, config->tiles, config->columns, e5m2);
}

int fp8r_sm90_tile_rows(const struct fp8r_sm90_config *config)
{
    if (config->tokens) return config->tokens;
    return (config->alternate ? 1 : config->groups) * config->tiles * 64;
}

bool fp8r_sm90_interleaves(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const int group = FP8R_SM90_WIDE_GROUP(config->columns);
    if (config->family != FP8R_SM90_WIDE || config->packed || config->split > 1 || config->tokens ||
        problem->out.align_bytes < 16 || fp8r_dtype_bytes(problem->out.dtype) != 2 ||
        problem->n % group != 0 || config->columns / config->share_m % group != 0)
        return false;
    /* A group of rows is a step of the tensor map, and matrices are so many groups apart, counted in 31 bits.
     */
    if (problem->b.col_stride < 1 || problem->b.col_stride > ((int64_t)1 << 39) / group) return false;
    const int64_t step = problem->b.col_stride * group;
    return problem->b.batch_stride % step == 0 &&
           problem->b.batch_stride / step <= (INT32_MAX - problem->n / group) / problem->batch;
}

bool fp8r_sm90_promotes(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    if (problem->accumulation == FP8R_ACCUMULATE_PRECISE) return true;
    return fp8r_sm90_segments(config, problem) > 1;
}

int fp8r_sm90_invariant_split(int64_t n, int64_t k)
{
    (void)n;
    (void)k;
    return 1;
}

int fp8r_sm90_segments(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const bool invariant = problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT;
    if (!invariant || config->family != FP8R_SM90_WIDE || config->split > 1 ||
        problem->accumulation == FP8R_ACCUMULATE_PRECISE)
        return 0;
    const int split = fp8r_sm90_invariant_split(problem->n, problem->k);
    return split > 1 ? split : 0;
}

bool fp8r_sm90_takes_maps(const fp8r_problem *problem)
{
    return problem->a.align_bytes >= COPY_ALIGN_BYTES && problem->b.align_bytes >= COPY_ALIGN_BYTES;
}

static bool supports_operands(const fp8r_problem *problem, fp8r_reason *reason)
{
    const int64_t most = INT32_MAX - 512; /* coordinates and rows are 32 bits, tiles may reach past the end */
    FP8R_REJECT_IF(problem->a.dtype != FP8R_DTYPE_E4M3 && problem->a.dtype != FP8R_DTYPE_E5M2, reason, DTYPE,
                   "a", problem->a.dtype, 0);
    FP8R_REJECT_IF(problem->b.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "b", problem->b.dtype, 0);
    FP8R_REJECT_IF(problem->layout_a > FP8R_LAYOUT_INNER_PADDED, reason, LAYOUT, "a", 0, 0);
    FP8R_REJECT_IF(problem->layout_b > FP8R_LAYOUT_INNER_PADDED, reason, LAYOUT, "b", 0, 0);
    FP8R_REJECT_IF(problem->layout_out > FP8R_LAYOUT_INNER_PADDED, reason, LAYOUT, "out", 0, 0);
    FP8R_REJECT_IF(problem->m > most, reason, SHAPE_MAX, "M", problem->m, most);
    FP8R_REJECT_IF(problem->n > most, reason, SHAPE_MAX, "N", problem->n, most);
    FP8R_REJECT_IF(problem->k > most, reason, SHAPE_MAX, "K", problem->k, most);
    /* Pitches of the copy engine end at 2^40 bytes. */
    const int64_t pitch = (int64_t)1 << 39;
    FP8R_REJECT_IF(problem->a.row_stride >= pitch || problem->a.batch_stride >= pitch, reason, LAYOUT, "a", 0,
                   0);
    FP8R_REJECT_IF(problem->b.col_stride >= pitch || problem->b.batch_stride >= pitch, reason, LAYOUT, "b", 0,
                   0);
    return true;
}

/* What the copy engine wants of addresses and pitches. */
static bool supports_maps(const fp8r_problem *problem, fp8r_reason *reason)
{
    FP8R_REJECT_IF(problem->a.align_bytes < COPY_ALIGN_BYTES, reason, ALIGNMENT, "a", problem->a.align_bytes,
                   COPY_ALIGN_BYTES);
    FP8R_REJECT_IF(problem->b.align_bytes < COPY_ALIGN_BYTES, reason, ALIGNMENT, "b", problem->b.align_bytes,
                   COPY_ALIGN_BYTES);
    return true;
}

/* What it wants where it takes rows of b by eights: any rows of a, words and whole groups of b. What lies in front of a row or
 * behind it in its class's part of the map is of the rows beside it. */
static bool supports_eights(const fp8r_problem *problem, fp8r_reason *reason)
{
    const int64_t row = problem->b.col_stride, group = row * FP8R_SM90_SHIFTED_GROUP;
    FP8R_REJECT_IF(problem->b.align_bytes < 4, reason, ALIGNMENT, "b", problem->b.align_bytes, 4);
    FP8R_REJECT_IF(row < FP8R_SM90_BLOCK_K || row > ((int64_t)1 << 39) / FP8R_SM90_SHIFTED_GROUP, reason, LAYOUT, "b", 0,
                   0);
    FP8R_REJECT_IF(problem->n % FP8R_SM90_SHIFTED_GROUP != 0, reason, LAYOUT, "b", 0, 0);
    FP8R_REJECT_IF(problem->b.batch_stride % group != 0 ||
                       problem->b.batch_stride / group >
                           (INT32_MAX - problem->n / FP8R_SM90_SHIFTED_GROUP) / problem->batch,
                   reason, LAYOUT, "b", 0, 0);
    return true;
}

/* Blocks of a grid are counted in 31 bits. */
static bool supports_count(const fp8r_problem *problem, int64_t rows, int64_t columns, fp8r_reason *reason)
{
    const int64_t each = (problem->m / rows + 1) * (problem->n / columns + 1) * 16;
    FP8R_REJECT_IF(problem->batch > INT32_MAX / each, reason, SHAPE_MAX, "batch", problem->batch,
                   INT32_MAX / each);
    return true;
}

static bool supports_split(const struct fp8r_sm90_config *config, const fp8r_problem *problem,
                           fp8r_reason *reason)
{
    const int64_t least = (config->split * config->inner - 1) * (int64_t)FP8R_SM90_BLOCK_K + 1;
    FP8R_REJECT_IF(problem->k < least, reason, SHAPE_MIN, "K", problem->k, least);
    return true;
}

bool fp8r_sm90_supports(const fp8r_device_facts *device, const fp8r_problem *problem, int config_index,
                        fp8r_reason *reason)
{
    (void)device;
    if (config_index == FP8R_CONFIG_ANY) {
        if (!supports_operands(problem, reason)) return false;
        return fp8r_sm90_pick(device, problem) >= 0 || fp8r_sm90_supports(device, problem, 0, reason);
    }
    const struct fp8r_sm90_config *config = &fp8r_sm90_configs[config_index];
    if (!supports_operands(problem, reason) || !supports_split(config, problem, reason)) return false;
    if (config->shifted ? !supports_eights(problem, reason) : !config->packed && !supports_maps(problem, reason))
        return false;
    if (config->family == FP8R_SM90_SKINNY) {
        const int widest = fp8r_sm90_skinny_widest(config, problem);
        FP8R_REJECT_IF(problem->m > widest, reason, SHAPE_MAX, "M", problem->m, widest);
        FP8R_REJECT_IF(problem->batch > 65535, reason, SHAPE_MAX, "batch", problem->batch, 65535);
        FP8R_REJECT_IF(problem->n > 65535 * 16, reason, SHAPE_MAX, "N", problem->n, 65535 * 16);
        return true;
    }
    FP8R_REJECT_IF(problem->accumulation == FP8R_ACCUMULATE_PRECISE &&
                       !fp8r_sm90_wide_kernel(config, problem),
                   reason, ACCUMULATION, "precise", 0, 0);
    FP8R_REJECT_IF(!fp8r_sm90_wide_kernel(config, problem), reason, DTYPE, "a", problem->a.dtype, 0);
    FP8R_REJECT_IF(config->alternate && !fp8r_sm90_interleaves(config, problem), reason, LAYOUT, "out", 0, 0);
    return supports_count(problem, fp8r_sm90_tile_rows(config), config->columns, reason);
}

const char *fp8r_sm90_class(const fp8r_device_facts *device, const fp8r_problem *problem, int config_index)
{
    static const char *const fast[] = {"fast_k1", "fast_k2", "fast_k3", "fast_k4",
                                       "fast_k5", "fast_k6", "fast_k7", "fast_k8"};
    static const char *const precise[] = {"precise_k1", "precise_k2", "precise_k3", "precise_k4",
                                          "precise_k5", "precise_k6", "precise_k7", "precise_k8"};
    const struct fp8r_sm90_config *config = &fp8r_sm90_configs[config_index];
    const int segments = fp8r_sm90_segments(config, problem);
    const int split = segments > 1 ? segments : config->split * config->inner;
    (void)device;
    return problem->accumulation == FP8R_ACCUMULATE_PRECISE ? precise[split - 1] : fast[split - 1];
}
