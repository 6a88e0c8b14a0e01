/* Eight rows of a pitch that is a multiple of 4 bytes are a multiple of 32: their map, and the copy of a that goes
 * with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/eights.h"

#include <stddef.h>

#include "backend/sm90/copy_args.h"
#include "backend/sm90/eights_shift.h"
#include "backend/sm90/limits.h"
#include "base/sizes.h"
#include "base/status.h"

/* Threads of the copy's blocks; blocks for a multiprocessor, beside those of the product in front. */
enum { COPY_THREADS = 256, COPY_BLOCKS = 4, GRANULE = 16, LINE = 128 };

/* CUDA's limit of a grid's second size. */
enum { GRID_Y_MAX = 65535 };

typedef CUresult (*starter)(const CUlaunchConfig *, CUfunction, void **, void **);

static int64_t items_of(const fp8r_problem *problem)
{
    return problem->a.batch_stride ? problem->batch : 1;
}

int64_t fp8r_sm90_copy_pitch(const fp8r_problem *problem)
{
    return fp8r_size_round_up(problem->k, LINE);
}

bool fp8r_sm90_gathers(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    const int64_t most = (int64_t)FP8R_SM90_GATHER_BLOCKS * FP8R_SM90_BLOCK_K * config->split;
    return config->shifted && config->split > 1 && config->tokens == FP8R_SM90_GATHER_ROWS && problem->k <= most &&
           problem->a.align_bytes < GRANULE && problem->a.align_bytes >= 4 && problem->k % 4 == 0;
}

bool fp8r_sm90_copies(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    return config->shifted && problem->a.align_bytes < GRANULE && !fp8r_sm90_gathers(config, problem);
}

size_t fp8r_sm90_workspace(const fp8r_problem *problem, int config)
{
    if (!fp8r_sm90_copies(&fp8r_sm90_configs[config], problem)) return 0;
    return (size_t)(items_of(problem) * problem->m * fp8r_sm90_copy_pitch(problem));
}

struct fp8r_sm90_map_form fp8r_sm90_eights_form(const fp8r_problem *problem, const void *b, int box_rows)
{
    enum { SECTOR = FP8R_SM90_SECTOR_BYTES };
    const int64_t row = problem->b.col_stride, group = row * FP8R_SM90_SHIFTED_GROUP;
    const int64_t early = (int64_t)((uintptr_t)b % SECTOR), most = fp8r_sm90_eights_shift((uintptr_t)b, row, 7);
    const int64_t groups = problem->n / FP8R_SM90_SHIFTED_GROUP;
    const int64_t apart = problem->b.batch_stride ? (problem->batch - 1) * (problem->b.batch_stride / group) : 0;
    return (struct fp8r_sm90_map_form){
        .data = (const void *)((uintptr_t)b - (uintptr_t)early),
        .extents = {(cuuint64_t)(problem->k + most), (cuuint64_t)(apart + groups), 2, 2, 2},
        .pitches = {(cuuint64_t)group, (cuuint64_t)(row / SECTOR * SECTOR), (cuuint64_t)(2 * row / SECTOR * SECTOR),
                    (cuuint64_t)(4 * row / SECTOR * SECTOR)},
        .box = {FP8R_SM90_BLOCK_K, (cuuint32_t)(box_rows / FP8R_SM90_SHIFTED_GROUP), 2, 2, 2},
        .rank = 5,
    };
}

static struct fp8r_sm90_copy_args copy_of(const fp8r_problem *problem, const void *a, void *workspace)
{
    const int64_t items = items_of(problem), pitch = fp8r_sm90_copy_pitch(problem);
    const uint8_t *const from = a;
    return (struct fp8r_sm90_copy_args){
        .from = from,
        .end = from + (items - 1) * problem->a.batch_stride + (problem->m - 1) * problem->a.row_stride + problem->k,
        .to = workspace,
        .row = problem->a.row_stride,
        .batch = problem->a.batch_stride,
        .to_batch = problem->m * pitch,
        .to_row = (int32_t)pitch,
        .k = (int32_t)problem->k,
        .rows = (int32_t)problem->m,
        .items = (int32_t)items,
    };
}

fp8r_status fp8r_sm90_copy(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                           const fp8r_pointers *pointers, void *workspace, void *stream)
{
    if (!fp8r_sm90_copies(plan->config, problem)) return FP8R_OK;
    struct fp8r_sm90_copy_args args = copy_of(problem, pointers->a, workspace);
    const int64_t threads = fp8r_size_round_up(args.to_row / GRANULE, 32);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {
        .gridDimX = (unsigned)fp8r_size_min(problem->m, (int64_t)plan->sm_count * COPY_BLOCKS),
        .gridDimY = (unsigned)fp8r_size_min(args.items, GRID_Y_MAX), .gridDimZ = 1,
        .blockDimX = (unsigned)fp8r_size_min(threads, COPY_THREADS), .blockDimY = 1, .blockDimZ = 1,
        .hStream = stream, .attrs = &attribute, .numAttrs = plan->dependent_launch ? 1 : 0};
    void *parameters[] = {&args};
    starter launch;
    *(void **)&launch = plan->start;
    const CUresult result = launch(&config, plan->copy, parameters, NULL);
    if (result == CUDA_SUCCESS) return FP8R_OK;
    return fp8r_fail(FP8R_ERROR_DEVICE, "cuLaunchKernelEx answered %d for the copy of sm90:%s", (int)result,
                     plan->config->name);
}
