/* Launching: what a call adds to the arguments that its plan fixes, launch attributes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "backend/sm90/eights.h"
#include "backend/sm90/fixed_args.h"
#include "backend/sm90/limits.h"
#include "backend/sm90/maps.h"
#include "backend/sm90/shapes.h"
#include "base/status.h"

/* Where scales, bias and out are. */
static void fill_places(const fp8r_problem *problem, const fp8r_pointers *pointers,
                        struct fp8r_sm90_args *args)
{
    args->scale_a = pointers->scale_a;
    args->scale_b = pointers->scale_b;
    args->bias = pointers->bias;
    args->out = pointers->out;
    args->b = pointers->b;
    args->scale_a_batch = problem->scale_a.batch_stride;
    args->scale_b_batch = problem->scale_b.batch_stride;
    args->bias_batch = problem->bias.batch_stride;
    args->out_batch = problem->out.batch_stride;
    args->a_batch = problem->a.batch_stride != 0;
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
    args->packed_a = matrix_of(pointers->a, problem->k, problem->m, problem->batch, problem->a.row_stride,
                               problem->a.batch_stride);
    args->packed_b = matrix_of(pointers->b, problem->k, problem->n, problem->batch, problem->b.col_stride,
                               problem->b.batch_stride);
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
        args->load_bytes = ((args->flags & FP8R_SM90_GATHERS ? 0
                             : is_whole                      ? fp8r_sm90_tile_rows(config)
                                                             : args->rows_a) +
                            config->columns) * FP8R_SM90_BLOCK_K;
}

/* Skinny: one cluster a tile. Wide: without a split, clusters that the device holds walk over many tiles; with one each makes
 * its own. */
static int64_t clusters_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape, int64_t tiles)
{
    if (plan->config->family == FP8R_SM90_SKINNY) return 1;
    return plan->config->split == 1 && tiles > shape->clusters_resident ? shape->clusters_resident : tiles;
}

/* All that depends on m. */
static void fill_rows(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                      const fp8r_problem *problem, struct fp8r_sm90_args *args)
{
    const int32_t m = (int32_t)problem->m;
    fill_loads(plan->config, shape, m, args);
    args->m = m;
    args->tiles_m = (m - 1) / shape->tile_m + 1;
    args->tiles = (int32_t)(args->tiles_m * args->tiles_n * problem->batch);
    args->step = (int32_t)clusters_of(plan, shape, args->tiles);
    args->by_units = fp8r_sm90_divisor_of((m - 1) / 8 + 1);
    if (plan->config->family == FP8R_SM90_SKINNY) return;
    const int32_t last = args->tiles_m % args->raster;
    args->by_matrix = fp8r_sm90_divisor_of((int64_t)args->tiles_m * args->tiles_n);
    args->by_last_height = fp8r_sm90_divisor_of(last ? last : args->raster);
}

/* Skinny: blocks of a cluster x clusters along N x batch. */
static dim3 grid_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                    const fp8r_problem *problem, const struct fp8r_sm90_args *args)
{
    const unsigned blocks = (unsigned)args->step * (unsigned)shape->cluster;
    if (plan->config->family == FP8R_SM90_WIDE) return (dim3){blocks, 1, 1};
    return (dim3){blocks, (unsigned)args->tiles_n, (unsigned)problem->batch};
}

/* Do its tiles wait for the L2 rather than for their products, and long enough that it matters where they lie? Blocks of
 * one launch lie in order: neighbours, which read the same rows of b, beside each other, and idle multiprocessors spread
 * evenly. Those that start as others end lie in whatever order these do, and take up to a fifth longer; the start
 * costs a microsecond or two (H200, docs/worklog.md, sm90 28), which three tiles and more in a row make good sooner.
 * Kernels of up to half of the multiprocessors take turns, and where rows of b are read once, or operands are swapped, the
 * start was worth more. */
static bool wants_order(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                        const struct fp8r_sm90_args *args)
{
    const struct fp8r_sm90_config *config = plan->config;
    const int rows = fp8r_sm90_tile_rows(config), columns = config->columns;
    const int turns = (args->tiles - 1) / args->step + 1, blocks = 64;
    const int operations_a_byte = turns > 2 ? 60 : 50;
    if (config->family != FP8R_SM90_WIDE || config->packed || config->tokens || shape->cluster > 1 || args->tiles_m == 1)
        return false;
    return rows * columns < operations_a_byte * (rows + columns) && 2 * args->step > shape->clusters_resident &&
           (int64_t)args->segment[1] * turns >= blocks;
}

/* May it start while the kernel in front runs out? Where a product takes long, the order of its blocks costs more, too: below
 * so many operations, some 70 us on an H200. */
static bool starts_early(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape, const fp8r_problem *problem,
                         const struct fp8r_sm90_args *args)
{
    const double most_operations = 1e11;
    return plan->dependent_launch &&
           2.0 * (double)problem->batch * (double)problem->m * (double)problem->n * (double)problem->k < most_operations &&
           !wants_order(plan, shape, args);
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
    if (starts_early(plan, shape, problem, args)) {
        CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute->value.programmaticStreamSerializationAllowed = 1;
    }
    const CUresult result = launch(&config, shape->function, parameters, NULL);
    if (result == CUDA_SUCCESS) return FP8R_OK;
    return fp8r_fail(FP8R_ERROR_DEVICE, "cuLaunchKernelEx answered %d for sm90:%s", (int)result, plan->config->name);
}

static fp8r_status refused(const struct fp8r_sm90_plan *plan)
{
    return fp8r_fail(FP8R_ERROR_DEVICE, "cuTensorMapEncodeTiled refused an operand of sm90:%s", plan->config->name);
}

/* All that is no address: what the plan fixed, and what this call's rows and weights change of it. */
static struct fp8r_sm90_args args_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                                     const struct fp8r_sm90_args *fixed, const fp8r_problem *problem)
{
    struct fp8r_sm90_args args = *fixed;
    if (problem->b.batch_stride != plan->problem.b.batch_stride) fp8r_sm90_fix_weights(plan, shape, problem, &args);
    fill_rows(plan, shape, problem, &args);
    return args;
}

fp8r_status fp8r_sm90_launch(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                             const fp8r_pointers *pointers, void *workspace, void *stream)
{
    const struct fp8r_sm90_shape *shape = plan->shapes;
    while (shape->m_max < problem->m)
        ++shape;
    struct fp8r_sm90_args args = args_of(plan, shape, &plan->fixed[shape - plan->shapes], problem);
    if (plan->config->alternate && !(args.flags & FP8R_SM90_INTERLEAVED))
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED,
                         "sm90:%s: b's batch stride must be the prepared one or another multiple of %d rows",
                         plan->config->name, FP8R_SM90_WIDE_GROUP(plan->config->columns));
    if (!fp8r_sm90_fill_maps(plan, shape, problem, pointers, workspace, &args)) return refused(plan);
    fill_places(problem, pointers, &args);
    if (plan->config->packed || plan->config->shifted) fill_matrices(problem, pointers, &args);
    FP8R_TRY(fp8r_sm90_copy(plan, problem, pointers, workspace, stream));
    return start(plan, shape, problem, grid_of(plan, shape, problem, &args), &args, stream);
}

bool fp8r_sm90_takes_halves(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem, const fp8r_operand *a,
                            const void *data)
{
    const int vector = FP8R_SM90_HALVES_VECTOR, warps = plan->fixed_halves.by_consumers.d;
    if (!plan->halves.kernel || problem->m > plan->halves.halves_rows || problem->m > warps) return false;
    return problem->m * problem->k <= (int64_t)FP8R_SM90_HALVES_WARP * warps && a->col_stride == 1 &&
           a->row_stride % vector == 0 && a->batch_stride % vector == 0 && (uintptr_t)data % 16 == 0;
}

fp8r_status fp8r_sm90_launch_halves(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                                    const fp8r_operand *a, const fp8r_pointers *pointers, void *stream)
{
    const struct fp8r_sm90_shape *shape = &plan->halves;
    struct fp8r_sm90_args args = args_of(plan, shape, &plan->fixed_halves, problem);
    args.load_bytes = shape->depth * shape->rows * FP8R_SM90_BLOCK_K; /* of weights alone */
    args.by_rows = fp8r_sm90_divisor_of(problem->m);
    if (!fp8r_sm90_fill_map_b(plan, shape, problem, pointers, &args)) return refused(plan);
    fill_places(problem, pointers, &args);
    args.scale_a = NULL;
    args.halves = pointers->a;
    args.halves_row = a->row_stride;
    args.halves_batch = a->batch_stride;
    return start(plan, shape, problem, grid_of(plan, shape, problem, &args), &args, stream);
}
