/* Launching: arguments, tensor maps, launch attributes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "backend/sm90/args.h"
#include "backend/sm90/fours.h"
#include "backend/sm90/maps.h"
#include "backend/sm90/shapes.h"
#include "backend/sm90/limits.h"
#include "base/dtype.h"
#include "base/status.h"

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
    if (plan->config->shifted || fp8r_sm90_interleaves(plan->config, problem)) flags |= FP8R_SM90_INTERLEAVED;
    if (shape->receive_in_stages) flags |= FP8R_SM90_RECEIVE_IN_STAGES;
    return flags;
}

static struct fp8r_sm90_divisor divisor(int64_t d)
{
    if (d < 1) d = 1; /* of the other family */
    const uint64_t reciprocal = ((uint64_t)1 << 32) / (uint64_t)d;
    return (struct fp8r_sm90_divisor){(int32_t)d,
                                      reciprocal > UINT32_MAX ? UINT32_MAX : (uint32_t)reciprocal};
}

static void fill_divisors(struct fp8r_sm90_args *args)
{
    const int32_t last = args->tiles_m % args->raster;
    args->by_split = divisor(args->split);
    args->by_depth = divisor(args->depth);
    args->by_units = divisor((args->m + 7) / 8);
    args->by_row_warps = divisor(args->row_warps);
    args->by_consumers = divisor(args->row_warps * args->inner);
    args->by_share_m = divisor(args->share_m);
    args->by_size = divisor(args->split * args->share_m * args->share_n);
    args->by_stages = divisor(args->stages);
    args->by_matrix = divisor((int64_t)args->tiles_m * args->tiles_n);
    args->by_band = divisor((int64_t)args->raster * args->tiles_n);
    args->by_height = divisor(args->raster);
    args->by_last_height = divisor(last ? last : args->raster);
}

/* Where scales, bias and out are. */
static void fill_places(const fp8r_problem *problem, const fp8r_pointers *pointers,
                        struct fp8r_sm90_args *args)
{
    args->scale_a = pointers->scale_a;
    args->scale_b = pointers->scale_b;
    args->bias = pointers->bias;
    args->out = pointers->out;
    args->scale_a_batch = problem->scale_a.batch_stride;
    args->scale_a_row = problem->scale_a.row_stride;
    args->scale_b_batch = problem->scale_b.batch_stride;
    args->scale_b_col = problem->scale_b.col_stride;
    args->bias_batch = problem->bias.batch_stride;
    args->bias_col = problem->bias.col_stride;
    args->out_batch = problem->out.batch_stride;
    args->out_row = problem->out.row_stride;
    args->out_dtype = problem->out.dtype;
    args->bias_dtype = problem->bias.dtype;
}

static struct fp8r_sm90_matrix matrix_of(const void *data, int64_t k, int64_t rows, int64_t batch,
                                         int64_t row, int64_t batch_stride)
{
    const uint8_t *const first = data;
    return (struct fp8r_sm90_matrix){
        .data = first,
        .end = first + (batch - 1) * batch_stride + (rows - 1) * row + k,
        .row = row,
        .batch = batch_stride,
    };
}

/* Where operands are, for kernels that read them by addresses. */
static void fill_matrices(const fp8r_problem *problem, const fp8r_pointers *pointers,
                          struct fp8r_sm90_args *args)
{
    args->k = (int32_t)problem->k;
    args->packed_a = matrix_of(pointers->a, problem->k, problem->m, problem->batch, problem->a.row_stride,
                               problem->a.batch_stride);
    args->packed_b = matrix_of(pointers->b, problem->k, problem->n, problem->batch, problem->b.col_stride,
                               problem->b.batch_stride);
}

/* Which part of K is whose, in how many stages. */
static void fill_segments(const struct fp8r_sm90_config *config, const struct fp8r_sm90_shape *shape,
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
    args->segments = shape->segments;
}

/* Of a, rows that are not there are left out where all of them can be: the copy engine fills them more slowly than it fetches
 * others, and what the stage holds in their place goes into sums that are not stored. By eights, as shared memory is
 * swizzled. */
static void fill_loads(const struct fp8r_sm90_config *config, const struct fp8r_sm90_shape *shape, int64_t m,
                       struct fp8r_sm90_args *args)
{
    const int64_t there = (m + 7) / 8 * 8;
    const bool is_whole = config->family == FP8R_SM90_WIDE &&
                          (config->share_n > 1 || FP8R_SM90_WIDE_BOXES(fp8r_sm90_tile_rows(config)) > 1);
    args->rows_a = !is_whole && there < shape->rows_a ? (int32_t)there : shape->rows_a;
    if (config->family == FP8R_SM90_SKINNY)
        args->load_bytes = shape->depth * (shape->rows + args->rows_a) * FP8R_SM90_BLOCK_K;
    else
        args->load_bytes = (is_whole ? fp8r_sm90_tile_rows(config) : args->rows_a) * FP8R_SM90_BLOCK_K +
                           config->columns * FP8R_SM90_BLOCK_K;
}

/* The cluster's blocks and what each loads of shared tiles; split comes first in their numbers, then M. */
static void fill_shares(const struct fp8r_sm90_config *config, const struct fp8r_sm90_shape *shape,
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
static void fill_lines(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                       const fp8r_pointers *pointers, struct fp8r_sm90_args *args)
{
    args->by_lines = divisor(1);
    if (plan->config->family != FP8R_SM90_SKINNY || args->ahead == 0 ||
        problem->m > FP8R_SM90_SKINNY_ASKED_TOKENS)
        return;
    const int64_t whole = problem->k / FP8R_SM90_BLOCK_K / (args->split * args->inner);
    const int64_t most = FP8R_SM90_SKINNY_ASKED_BYTES / (FP8R_SM90_BLOCK_K * args->rows * args->inner);
    int64_t lines = args->row_warps * 32 / args->rows;
    if (lines > most) lines = most > 1 ? most : 1;
    if (lines > whole) lines = whole;
    args->lines = (int32_t)lines;
    args->by_lines = divisor(lines);
    args->b = pointers->b;
    args->b_row = problem->b.col_stride;
    args->b_matrix = problem->b.batch_stride;
}

static void fill_args(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                      const fp8r_problem *problem, const fp8r_pointers *pointers, struct fp8r_sm90_args *args)
{
    fill_places(problem, pointers, args);
    if (plan->config->packed || plan->config->shifted) fill_matrices(problem, pointers, args);
    fill_segments(plan->config, shape, problem->k + (plan->config->shifted ? FP8R_SM90_SHIFTED_LEAD : 0), args);
    fill_shares(plan->config, shape, args);
    fill_loads(plan->config, shape, problem->m, args);
    args->m = (int32_t)problem->m;
    args->n = (int32_t)problem->n;
    args->a_batch = problem->a.batch_stride != 0;
    args->b_batch = problem->b.batch_stride != 0;
    args->flags = flags_of(plan, shape, problem);
    if (args->flags & FP8R_SM90_INTERLEAVED)
        args->b_groups = (int32_t)(problem->b.batch_stride /
                                   (problem->b.col_stride * FP8R_SM90_WIDE_GROUP(plan->config->columns)));
    args->tiles_m = (int32_t)((problem->m + shape->tile_m - 1) / shape->tile_m);
    args->tiles_n = (int32_t)((problem->n + shape->tile_n - 1) / shape->tile_n);
    args->tiles = (int32_t)(args->tiles_m * args->tiles_n * problem->batch);
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
    args->receive_offset = shape->receive_offset;
    args->scales_offset = shape->scales_offset;
    args->barriers_offset = shape->barriers_offset;
    fill_divisors(args);
    fill_lines(plan, problem, pointers, args);
}

/* Skinny: blocks of a cluster x clusters along N x batch. Wide: so many blocks; without a split those walk
 * over many tiles, with one each makes its own. */
static dim3 grid_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                    const fp8r_problem *problem, const struct fp8r_sm90_args *args)
{
    if (plan->config->family == FP8R_SM90_SKINNY)
        return (dim3){(unsigned)shape->cluster, (unsigned)args->tiles_n, (unsigned)problem->batch};
    int64_t clusters = args->tiles;
    if (plan->config->split == 1 && clusters > shape->clusters_resident) clusters = shape->clusters_resident;
    return (dim3){(unsigned)(clusters * shape->cluster), 1, 1};
}

/* May it start while the kernel in front runs out? Blocks that do lie on the multiprocessors in the order in which these
 * came free. Where a product takes long, that costs more (up to 13 % on an H200, docs/worklog.md) than the microsecond or
 * two that it gains: below so many operations, some 70 us there. */
static bool starts_early(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem)
{
    const double most_operations = 1e11;
    return plan->dependent_launch &&
           2.0 * (double)problem->batch * (double)problem->m * (double)problem->n * (double)problem->k < most_operations;
}

typedef CUresult (*starter)(const CUlaunchConfig *, CUfunction, void **, void **);

static fp8r_status start(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                         const fp8r_problem *problem, dim3 grid, struct fp8r_sm90_args *args, void *stream)
{
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {.gridDimX = grid.x, .gridDimY = grid.y, .gridDimZ = grid.z,
                             .blockDimX = (unsigned)shape->threads, .blockDimY = 1, .blockDimZ = 1,
                             .sharedMemBytes = (unsigned)shape->shared_bytes, .hStream = stream, .attrs = attributes};
    void *parameters[] = {args};
    starter launch;
    *(void **)&launch = plan->start;
    if (shape->cluster > 1) {
        CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute->value.clusterDim.x = (unsigned)shape->cluster;
        attribute->value.clusterDim.y = attribute->value.clusterDim.z = 1;
    }
    if (starts_early(plan, problem)) {
        CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute->value.programmaticStreamSerializationAllowed = 1;
    }
    const CUresult result = launch(&config, shape->function, parameters, NULL);
    if (result == CUDA_SUCCESS) return FP8R_OK;
    return fp8r_fail(FP8R_ERROR_DEVICE, "cuLaunchKernelEx answered %d for sm90:%s", (int)result, plan->config->name);
}

fp8r_status fp8r_sm90_launch(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                             const fp8r_pointers *pointers, void *workspace, void *stream)
{
    const struct fp8r_sm90_shape *shape = plan->shapes;
    while (shape->m_max < problem->m)
        ++shape;
    if (plan->config->alternate && !fp8r_sm90_interleaves(plan->config, problem))
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED,
                         "sm90:%s: b's batch stride must be the prepared one or another multiple of %d rows",
                         plan->config->name, FP8R_SM90_WIDE_GROUP(plan->config->columns));
    struct fp8r_sm90_args args = {0};
    fill_args(plan, shape, problem, pointers, &args);
    if (!fp8r_sm90_fill_maps(plan, shape, problem, pointers, workspace, &args))
        return fp8r_fail(FP8R_ERROR_DEVICE, "cuTensorMapEncodeTiled refused an operand of sm90:%s",
                         plan->config->name);
    const dim3 grid = grid_of(plan, shape, problem, &args);
    args.step = (int32_t)grid.x / shape->cluster;
    FP8R_TRY(fp8r_sm90_copy(plan, problem, pointers, workspace, stream));
    return start(plan, shape, problem, grid, &args, stream);
}
