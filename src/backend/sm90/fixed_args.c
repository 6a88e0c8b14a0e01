/* What a plan fixes of its launches' arguments: a launch copies it and adds rows and addresses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/fixed_args.h"

#include "backend/sm90/eights.h"
#include "backend/sm90/limits.h"
#include "backend/sm90/shapes.h"
#include "base/dtype.h"

/* Rounds of static weights that are asked for before the wait. The wide kernels have one thread for both
 * operands and the copy engine works in order: what it is to load after the wait would queue up behind all of
 * them. */
static int32_t ahead_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape)
{
    if (!(plan->problem.flags & FP8R_WEIGHTS_STATIC)) return 0;
    /* The copy of a takes as long as a ring full of weights. */
    if (plan->config->shifted && plan->config->tokens <= 64) return shape->stages;
    return plan->config->family == FP8R_SM90_WIDE ? 2 : shape->stages;
}

static int32_t flags_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                        const fp8r_problem *problem)
{
    const fp8r_operand *out = &problem->out;
    int32_t flags = 0;
    if (out->align_bytes >= 8) flags |= FP8R_SM90_OUT_VECTORS;
    if (out->align_bytes >= 8 && out->dtype == FP8R_DTYPE_BF16 && problem->n % 4 == 0)
        flags |= FP8R_SM90_OUT_FOURS;
    if (plan->config->shifted && out->align_bytes >= 16 && out->dtype != FP8R_DTYPE_FP32) flags |= FP8R_SM90_OUT_LINES;
    if (plan->config->shifted || fp8r_sm90_interleaves(plan->config, problem)) flags |= FP8R_SM90_INTERLEAVED;
    if (fp8r_sm90_gathers(plan->config, problem)) flags |= FP8R_SM90_GATHERS;
    if (shape->receive_in_stages) flags |= FP8R_SM90_RECEIVE_IN_STAGES;
    return flags;
}

struct fp8r_sm90_divisor fp8r_sm90_divisor_of(int64_t d)
{
    if (d < 1) d = 1; /* of the other family */
    const uint64_t reciprocal = ((uint64_t)1 << 32) / (uint64_t)d;
    return (struct fp8r_sm90_divisor){(int32_t)d,
                                      reciprocal > UINT32_MAX ? UINT32_MAX : (uint32_t)reciprocal};
}

static void fix_divisors(struct fp8r_sm90_args *args)
{
    args->by_split = fp8r_sm90_divisor_of(args->split);
    args->by_depth = fp8r_sm90_divisor_of(args->depth);
    args->by_row_warps = fp8r_sm90_divisor_of(args->row_warps);
    args->by_consumers = fp8r_sm90_divisor_of(args->row_warps * args->inner);
    args->by_share_m = fp8r_sm90_divisor_of(args->share_m);
    args->by_size = fp8r_sm90_divisor_of(args->split * args->share_m * args->share_n);
    args->by_stages = fp8r_sm90_divisor_of(args->stages);
    args->by_band = fp8r_sm90_divisor_of((int64_t)args->raster * args->tiles_n);
    args->by_height = fp8r_sm90_divisor_of(args->raster);
}

/* How scales, bias and out lie, but for the batch. */
static void fix_layouts(const fp8r_problem *problem, struct fp8r_sm90_args *args)
{
    args->scale_a_row = problem->scale_a.row_stride;
    args->scale_b_col = problem->scale_b.col_stride;
    args->bias_col = problem->bias.col_stride;
    args->out_row = problem->out.row_stride;
    args->out_dtype = problem->out.dtype;
    args->bias_dtype = problem->bias.dtype;
}

/* Which part of K is whose, in how many stages. */
static void fix_segments(const struct fp8r_sm90_config *config, const struct fp8r_sm90_shape *shape,
                         int64_t k, struct fp8r_sm90_args *args)
{
    const int inner = config->inner, segments = config->split * inner;
    const int64_t blocks = (k + FP8R_SM90_BLOCK_K - 1) / FP8R_SM90_BLOCK_K;
    args->ring_rounds = shape->stages / inner;
    for (int i = 0; i <= segments; ++i)
        args->segment[i] = (int32_t)(blocks * i / segments);
    for (int i = 0; i < config->split; ++i) {
        const int own = args->segment[(i + 1) * inner] - args->segment[i * inner];
        args->rounds[i] = (own + inner * shape->depth - 1) / (inner * shape->depth);
        args->first_rounds[i] = args->rounds[i] < args->ring_rounds ? args->rounds[i] : args->ring_rounds;
    }
    args->split = config->split;
    args->inner = inner;
}

/* The cluster's blocks and what each loads of shared tiles; split comes first in their numbers, then M. */
static void fix_shares(const struct fp8r_sm90_config *config, const struct fp8r_sm90_shape *shape,
                       struct fp8r_sm90_args *args)
{
    args->share_m = config->share_m;
    args->share_n = config->share_n;
    args->part_a = shape->rows_a;
    args->part_b = shape->rows_b;
    for (int i = 0; i < config->share_n; ++i)
        args->share_a |= 1 << (config->split * config->share_m * i);
    for (int i = 0; i < config->share_m; ++i)
        args->share_b |= 1 << (config->split * i);
}

/* Which lines of static weights a skinny kernel asks the L2 for before all else: one a thread that
 * multiplies, inside its segment of K. */
static void fix_lines(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                      struct fp8r_sm90_args *args)
{
    args->by_lines = fp8r_sm90_divisor_of(1);
    if (plan->config->family != FP8R_SM90_SKINNY || args->ahead == 0 ||
        shape->m_max > FP8R_SM90_SKINNY_ASKED_TOKENS)
        return;
    const int64_t whole = plan->problem.k / FP8R_SM90_BLOCK_K / (args->split * args->inner);
    const int64_t most = FP8R_SM90_SKINNY_ASKED_BYTES / (FP8R_SM90_BLOCK_K * args->rows * args->inner);
    int64_t lines = args->row_warps * 32 / args->rows;
    if (lines > most) lines = most > 1 ? most : 1;
    if (lines > whole) lines = whole;
    args->lines = (int32_t)lines;
    args->by_lines = fp8r_sm90_divisor_of(lines);
    args->b_row = plan->problem.b.col_stride;
}

void fp8r_sm90_fix_weights(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                           const fp8r_problem *problem, struct fp8r_sm90_args *args)
{
    args->b_batch = problem->b.batch_stride != 0;
    args->b_matrix = problem->b.batch_stride;
    args->flags = flags_of(plan, shape, problem);
    const int group = plan->config->shifted ? FP8R_SM90_SHIFTED_GROUP : FP8R_SM90_WIDE_GROUP(plan->config->columns);
    args->b_groups = args->flags & FP8R_SM90_INTERLEAVED
                         ? (int32_t)(problem->b.batch_stride / (problem->b.col_stride * group))
                         : 0;
}

void fp8r_sm90_fix_args(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                        struct fp8r_sm90_args *args)
{
    const fp8r_problem *problem = &plan->problem;
    *args = (struct fp8r_sm90_args){0};
    fix_layouts(problem, args);
    fix_segments(plan->config, shape, problem->k, args);
    fix_shares(plan->config, shape, args);
    fp8r_sm90_fix_weights(plan, shape, problem, args);
    args->n = (int32_t)problem->n;
    args->k = (int32_t)problem->k;
    args->tiles_n = (int32_t)((problem->n + shape->tile_n - 1) / shape->tile_n);
    args->rows = shape->rows;
    args->row_warps = (shape->rows + 63) / 64 * 4;
    args->raster = shape->raster > 0 ? shape->raster : 1;
    args->stages = shape->stages;
    args->stage_bytes = shape->stage_bytes;
    args->ahead = ahead_of(plan, shape);
    args->depth = shape->depth;
    args->step_x = shape->depth > 1 ? 0 : FP8R_SM90_BLOCK_K;
    args->step_z = shape->depth > 1 ? 1 : 0;
    args->weight_bytes = shape->weight_bytes;
    args->tokens_offset = shape->tokens_offset;
    args->halves_offset = shape->halves_offset;
    args->receive_offset = shape->receive_offset;
    args->scales_offset = shape->scales_offset;
    args->barriers_offset = shape->barriers_offset;
    fix_divisors(args);
    fix_lines(plan, shape, args);
}
