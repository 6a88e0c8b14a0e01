/* The portable CUDA row: any layout, alignment, type, scale and size on every architecture that the build
 * holds code for. Wide tiles take everything; the skinny kernel streams b for few rows of a. No workspace, no
 * state. SPDX-License-Identifier: Apache-2.0 */
#include <fp8route/backend.h>

#include <stdint.h>

#include "backend/cuda/args.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/launch.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/sizes.h"

enum config { WIDE_128, WIDE_64, SKINNY };

static const char *const configs[] = {"wide_128x128", "wide_64x64", "skinny_8x16", NULL};

/* Rows and columns of out a block makes, its threads and shared memory. */
static const struct {
    int32_t rows, cols, threads, shared_bytes;
} shapes[] = {[WIDE_128] = {128, 128, 128, FP8R_CUDA_STAGES_128 * 256 * FP8R_CUDA_BLOCK_K},
              [WIDE_64] = {64, 64, 128, FP8R_CUDA_STAGES_64 * 128 * FP8R_CUDA_BLOCK_K},
              [SKINNY] = {8, 16, 256, 0}};

static const void *kernel_of(int config)
{
    return config == SKINNY ? fp8r_cuda_skinny() : fp8r_cuda_wide(shapes[config].rows);
}

static bool skinny_supports(const fp8r_problem *problem, fp8r_reason *reason)
{
    FP8R_REJECT_IF(problem->a.col_stride != 1, reason, LAYOUT, "a", problem->layout_a, FP8R_LAYOUT_INNER);
    FP8R_REJECT_IF(problem->b.row_stride != 1, reason, LAYOUT, "b", problem->layout_b, FP8R_LAYOUT_INNER);
    FP8R_REJECT_IF(problem->a.align_bytes < 16, reason, ALIGNMENT, "a", problem->a.align_bytes, 16);
    FP8R_REJECT_IF(problem->b.align_bytes < 16, reason, ALIGNMENT, "b", problem->b.align_bytes, 16);
    return true;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device;
    int64_t elements;
    FP8R_REJECT_IF(!fp8r_dtype_is_fp8(problem->a.dtype), reason, DTYPE, "a", problem->a.dtype,
                   FP8R_DTYPE_E4M3);
    const bool counts = fp8r_size_mul(problem->m, problem->n, &elements) &&
                        fp8r_size_mul(elements, problem->batch, &elements);
    FP8R_REJECT_IF(!counts, reason, SHAPE_MAX, "B * M * N", INT64_MAX, INT64_MAX);
    return config != SKINNY || skinny_supports(problem, reason);
}

/* Sums never depend on M; wide tiles of all sizes walk K in the same steps. */
static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int config)
{
    (void)user, (void)device, (void)problem;
    return config == SKINNY ? "cuda:f16x8" : "cuda:f16x1";
}

/* Rows up to which streaming b beats any tile (bench/gpu/bench_cuda.c on an H200): twice from memory where
 * tiles of 64 rows would fill the device, eight times, mostly from L2, where they would not. 0: never, K is
 * too short for its eight warps or a row's bits must not depend on M. */
static int64_t skinny_until(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    fp8r_reason ignored;
    if (problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT || problem->k < 8 * FP8R_CUDA_BLOCK_K ||
        !skinny_supports(problem, &ignored))
        return 0;
    const int64_t columns = fp8r_size_blocks(problem->n, shapes[WIDE_64].cols);
    return columns < device->sm_count && problem->batch < device->sm_count &&
                   columns * problem->batch < device->sm_count
               ? 8 * shapes[SKINNY].rows
               : 2 * shapes[SKINNY].rows;
}

/* Do all codes come without passing through registers? */
static bool loads_alone(const fp8r_problem *problem)
{
    return problem->a.col_stride == 1 && problem->a.align_bytes >= 4 && problem->b.row_stride == 1 &&
           problem->b.align_bytes >= 4;
}

/* Rows from which on the large tiles fill the device: one a multiprocessor nearly does, but for loads through
 * registers, which only other tiles' products hide. */
static int64_t large_from(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    const int64_t columns = fp8r_size_blocks(problem->n, shapes[WIDE_128].cols);
    const int64_t all = loads_alone(problem) ? device->sm_count * 3 / 4 : device->sm_count * 2;
    const int64_t fill = fp8r_size_max(all, 1);
    if (columns >= fill || problem->batch >= fill) return shapes[WIDE_64].rows + 1;
    const int64_t blocks = fp8r_size_blocks(fill, columns * problem->batch);
    return fp8r_size_max((blocks - 1) * shapes[WIDE_128].rows, shapes[WIDE_64].rows) + 1;
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user;
    if (problem->m <= skinny_until(device, problem)) return SKINNY;
    return problem->m < large_from(device, problem) ? WIDE_64 : WIDE_128;
}

static int64_t horizon(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user;
    const int64_t skinny = skinny_until(device, problem), from = large_from(device, problem);
    if (problem->m <= skinny) return skinny;
    return problem->m < from ? from - 1 : INT64_MAX;
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **state)
{
    (void)user, (void)services, (void)device, (void)problem, (void)state;
    return fp8r_cuda_load(kernel_of(config), shapes[config].shared_bytes);
}

static int32_t load_of(const struct fp8r_cuda_operand *operand, int64_t rows)
{
    const uint64_t base = (uint64_t)(uintptr_t)operand->data | (uint64_t)operand->batch_stride;
    const uint64_t row = rows > 1 ? (uint64_t)operand->row_stride : 0;
    if (operand->k_stride == 1)
        return ((base | row) & 15) == 0  ? FP8R_CUDA_LOAD_16
               : ((base | row) & 3) == 0 ? FP8R_CUDA_LOAD_4
                                         : FP8R_CUDA_LOAD_BYTES;
    if (operand->row_stride == 1 && ((base | (uint64_t)operand->k_stride) & 3) == 0)
        return FP8R_CUDA_LOAD_ROWS;
    return operand->row_stride < operand->k_stride ? FP8R_CUDA_LOAD_BYTES_ROWS : FP8R_CUDA_LOAD_BYTES;
}

static bool out_takes_vectors(const fp8r_problem *problem, const void *out)
{
    const uint64_t bytes = (uint64_t)fp8r_dtype_bytes(problem->out.dtype);
    const uint64_t row = problem->m > 1 ? (uint64_t)problem->out.row_stride * bytes : 0;
    const uint64_t batch = (uint64_t)problem->out.batch_stride * bytes;
    return problem->out.col_stride == 1 && (((uint64_t)(uintptr_t)out | row | batch) & 15) == 0;
}

static void fill_args(const fp8r_problem *p, const fp8r_pointers *at, int config, struct fp8r_cuda_args *args)
{
    *args = (struct fp8r_cuda_args){
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .tiles_m = fp8r_size_blocks(p->m, shapes[config].rows),
        .tiles_n = fp8r_size_blocks(p->n, shapes[config].cols),
        .a = {at->a, p->a.batch_stride, p->a.row_stride, p->a.col_stride, 0, 0},
        .b = {at->b, p->b.batch_stride, p->b.col_stride, p->b.row_stride, 0, 0},
        .scale_a = {at->scale_a, p->scale_a.batch_stride, p->scale_a.row_stride},
        .scale_b = {at->scale_b, p->scale_b.batch_stride, p->scale_b.col_stride},
        .bias = {at->bias, p->bias.batch_stride, p->bias.col_stride},
        .out = at->out,
        .out_batch_stride = p->out.batch_stride,
        .out_row_stride = p->out.row_stride,
        .out_col_stride = p->out.col_stride,
        .out_dtype = p->out.dtype,
        .bias_dtype = p->bias.dtype,
        .a_is_e5m2 = p->a.dtype == FP8R_DTYPE_E5M2,
        .out_vectors = out_takes_vectors(p, at->out),
    };
    args->tiles = args->tiles_m * args->tiles_n * p->batch;
    args->a.load = load_of(&args->a, p->m);
    args->b.load = load_of(&args->b, p->n);
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state,
                       const fp8r_problem *problem, int config, const fp8r_pointers *pointers, void *space,
                       size_t space_bytes, void *stream)
{
    (void)user, (void)services, (void)state, (void)space, (void)space_bytes;
    struct fp8r_cuda_args args;
    fill_args(problem, pointers, config, &args);
    const struct fp8r_cuda_launch launch = {kernel_of(config), args.tiles, shapes[config].threads,
                                            shapes[config].shared_bytes, false};
    return fp8r_cuda_start(&launch, &args, stream);
}

const fp8r_backend fp8r_backend_cuda = {
    .configs = configs,
    .supports = supports,
    .numerics = numerics,
    .pick = pick,
    .horizon = horizon,
    .prepare = prepare,
    .run = run,
};
