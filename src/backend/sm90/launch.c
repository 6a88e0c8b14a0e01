/* Preparing and launching: occupancy, tensor maps, launch attributes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "backend/sm90/args.h"
#include "backend/sm90/shapes.h"
#include "backend/sm90/limits.h"
#include "base/dtype.h"
#include "base/status.h"

typedef CUresult (*encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static fp8r_status cuda_failed(const char *call, cudaError_t error)
{
    return fp8r_fail(FP8R_ERROR_DEVICE, "%s: %s", call, cudaGetErrorString(error));
}

static cudaLaunchConfig_t launch_config(const struct fp8r_sm90_shape *shape, dim3 grid,
                                        cudaLaunchAttribute attributes[2], bool dependent, void *stream)
{
    cudaLaunchConfig_t config = {0};
    config.gridDim = grid;
    config.blockDim = (dim3){(unsigned)shape->threads, 1, 1};
    config.dynamicSmemBytes = (size_t)shape->shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    if (shape->cluster > 1) {
        cudaLaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = cudaLaunchAttributeClusterDimension;
        attribute->val.clusterDim.x = (unsigned)shape->cluster;
        attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    }
    if (dependent) {
        cudaLaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute->val.programmaticStreamSerializationAllowed = 1;
    }
    return config;
}

int fp8r_sm90_clusters_resident(const void *kernel, int threads, int shared_bytes, int size)
{
    const struct fp8r_sm90_shape shape = {.threads = threads, .shared_bytes = shared_bytes, .cluster = size};
    int device, count = 0, each = 0;
    if (cudaGetDevice(&device) ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448) != cudaSuccess)
        return 0;
    if (size == 1) {
        if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, (size_t)shared_bytes) ||
            cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device))
            return 0;
        return each * count;
    }
    cudaLaunchAttribute attributes[2];
    const cudaLaunchConfig_t config =
        launch_config(&shape, (dim3){(unsigned)size, 1, 1}, attributes, false, NULL);
    return cudaOccupancyMaxActiveClusters(&count, kernel, &config) == cudaSuccess ? count : 0;
}

static fp8r_status prepare_shapes(const fp8r_device_facts *device, struct fp8r_sm90_plan *plan)
{
    const struct fp8r_sm90_config *config = plan->config;
    if (config->family == FP8R_SM90_WIDE) {
        if (!fp8r_sm90_shape_wide(device, config, &plan->problem, &plan->shapes[0]))
            return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "sm90:%s does not fit this device", config->name);
        plan->shape_count = 1;
        return FP8R_OK;
    }
    const bool promote = fp8r_sm90_promotes(config, &plan->problem);
    for (int64_t m = 1; m <= plan->problem.m;) {
        const int tokens = fp8r_sm90_skinny_tokens(m, promote);
        struct fp8r_sm90_shape *shape = &plan->shapes[plan->shape_count];
        if (tokens == 0 || !fp8r_sm90_shape_skinny(device, config, &plan->problem, tokens, shape))
            return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "sm90:%s does not fit this device", config->name);
        ++plan->shape_count;
        m = tokens + 1;
    }
    return FP8R_OK;
}

fp8r_status fp8r_sm90_prepare(const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                              struct fp8r_sm90_plan *plan)
{
    struct fp8r_sm90_plan made = {
        .config = &fp8r_sm90_configs[config], .problem = *problem, .dependent_launch = true};
    enum cudaDriverEntryPointQueryResult found;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &made.encode, 12000,
                                                               cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return cuda_failed("cuTensorMapEncodeTiled", error != cudaSuccess ? error : cudaErrorSymbolNotFound);
    FP8R_TRY(prepare_shapes(device, &made));
    *plan = made;
    return FP8R_OK;
}

/* How an operand lies in memory: rows of K elements. batch_stride 0: one matrix. */
struct operand_rows {
    const void *data;
    int64_t k, rows, batch, row_stride, batch_stride;
};

/* A box of box_rows rows of 128 bytes, swizzled so that the tensor core reads it without conflicts. What lies
 * outside reads as zero. */
static bool encode_operand(encoder encode, CUtensorMap *map, const struct operand_rows *operand, int box_rows)
{
    const cuuint64_t extents[3] = {(cuuint64_t)operand->k, (cuuint64_t)operand->rows,
                                   operand->batch_stride ? (cuuint64_t)operand->batch : 1};
    const cuuint64_t pitches[2] = {
        (cuuint64_t)operand->row_stride,
        (cuuint64_t)(operand->batch_stride ? operand->batch_stride : operand->row_stride)};
    const cuuint32_t box[3] = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, 1}, steps[3] = {1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, (void *)(uintptr_t)operand->data, extents, pitches,
                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* The same with an axis between rows and batch that counts blocks of K, `depth` of them a box; with depth 1
 * that axis has extent 1 and K stays whole, so that its ragged end reads as zero. */
static bool encode_operand_deep(encoder encode, CUtensorMap *map, const struct operand_rows *operand,
                                int box_rows, int depth)
{
    const bool whole = depth == 1;
    const cuuint64_t extents[4] = {(cuuint64_t)(whole ? operand->k : FP8R_SM90_BLOCK_K),
                                   (cuuint64_t)operand->rows,
                                   (cuuint64_t)(whole ? 1 : operand->k / FP8R_SM90_BLOCK_K),
                                   operand->batch_stride ? (cuuint64_t)operand->batch : 1};
    const cuuint64_t pitches[3] = {
        (cuuint64_t)operand->row_stride, FP8R_SM90_BLOCK_K,
        (cuuint64_t)(operand->batch_stride ? operand->batch_stride : operand->row_stride)};
    const cuuint32_t box[4] = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, (cuuint32_t)depth, 1};
    const cuuint32_t steps[4] = {1, 1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, (void *)(uintptr_t)operand->data, extents, pitches,
                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static bool encode_out(encoder encode, CUtensorMap *map, const fp8r_problem *problem, void *out, int columns)
{
    const int chunk = FP8R_SM90_WIDE_CHUNK(columns);
    const fp8r_operand *operand = &problem->out;
    const cuuint64_t row_bytes = 2 * (cuuint64_t)operand->row_stride;
    const cuuint64_t batch_bytes = 2 * (cuuint64_t)operand->batch_stride;
    const cuuint64_t extents[3] = {(cuuint64_t)problem->n, (cuuint64_t)problem->m,
                                   (cuuint64_t)problem->batch};
    const cuuint64_t pitches[2] = {row_bytes, problem->batch > 1 ? batch_bytes : row_bytes};
    const cuuint32_t box[3] = {(cuuint32_t)chunk, 64, 1}, steps[3] = {1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, out, extents, pitches, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE,
                  chunk == 32 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_32B,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static int32_t flags_of(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape)
{
    const fp8r_operand *out = &plan->problem.out;
    int32_t flags = plan->problem.flags & FP8R_WEIGHTS_STATIC ? FP8R_SM90_WEIGHTS_STATIC : 0;
    if (out->align_bytes >= 8) flags |= FP8R_SM90_OUT_VECTORS;
    if (plan->config->family == FP8R_SM90_WIDE && plan->config->split == 1 && out->align_bytes >= 16 &&
        fp8r_dtype_bytes(out->dtype) == 2)
        flags |= FP8R_SM90_OUT_TILES;
    if (shape->receive_in_stages) flags |= FP8R_SM90_RECEIVE_IN_STAGES;
    return flags;
}

static bool fill_maps(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                      const fp8r_problem *problem, const fp8r_pointers *pointers, struct fp8r_sm90_args *args)
{
    encoder encode;
    *(void **)&encode = plan->encode;
    const struct operand_rows a = {
        pointers->a, problem->k, problem->m, problem->batch, problem->a.row_stride, problem->a.batch_stride};
    const struct operand_rows b = {
        pointers->b, problem->k, problem->n, problem->batch, problem->b.col_stride, problem->b.batch_stride};
    if (plan->config->family == FP8R_SM90_SKINNY)
        return encode_operand_deep(encode, &args->map_a, &a, shape->rows_a, shape->depth) &&
               encode_operand_deep(encode, &args->map_b, &b, shape->rows_b, shape->depth);
    if (!encode_operand(encode, &args->map_a, &a, shape->rows_a) ||
        !encode_operand(encode, &args->map_b, &b, shape->rows_b))
        return false;
    return !(args->flags & FP8R_SM90_OUT_TILES) ||
           encode_out(encode, &args->map_out, problem, pointers->out, plan->config->columns);
}

static void fill_args(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                      const fp8r_problem *problem, const fp8r_pointers *pointers, struct fp8r_sm90_args *args)
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
    args->m = (int32_t)problem->m;
    args->n = (int32_t)problem->n;
    const int segments = plan->config->split * plan->config->inner;
    const int64_t blocks = (problem->k + FP8R_SM90_BLOCK_K - 1) / FP8R_SM90_BLOCK_K;
    for (int i = 0; i <= segments; ++i)
        args->segment[i] = (int32_t)(blocks * i / segments);
    for (int i = 0; i < plan->config->split; ++i) {
        const int inner = plan->config->inner,
                  own = args->segment[(i + 1) * inner] - args->segment[i * inner];
        args->rounds[i] = (own + inner * shape->depth - 1) / (inner * shape->depth);
    }
    args->a_batch = problem->a.batch_stride != 0;
    args->b_batch = problem->b.batch_stride != 0;
    args->out_dtype = problem->out.dtype;
    args->bias_dtype = problem->bias.dtype;
    args->flags = flags_of(plan, shape);
    args->split = plan->config->split;
    args->inner = plan->config->inner;
    args->share_m = plan->config->share_m;
    args->share_n = plan->config->share_n;
    args->tiles_m = (int32_t)((problem->m + shape->tile_m - 1) / shape->tile_m);
    args->tiles_n = (int32_t)((problem->n + shape->tile_n - 1) / shape->tile_n);
    args->tiles = (int32_t)(args->tiles_m * args->tiles_n * problem->batch);
    args->rows = shape->rows;
    args->raster = shape->raster;
    args->segments = shape->segments;
    args->stages = shape->stages;
    args->stage_bytes = shape->stage_bytes;
    args->depth = shape->depth;
    args->step_x = shape->depth > 1 ? 0 : FP8R_SM90_BLOCK_K;
    args->step_z = shape->depth > 1 ? 1 : 0;
    args->weight_bytes = shape->weight_bytes;
    args->receive_offset = shape->receive_offset;
    args->scales_offset = shape->scales_offset;
    args->barriers_offset = shape->barriers_offset;
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

fp8r_status fp8r_sm90_launch(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                             const fp8r_pointers *pointers, void *stream)
{
    const struct fp8r_sm90_shape *shape = plan->shapes;
    while (shape->m_max < problem->m)
        ++shape;
    struct fp8r_sm90_args args;
    fill_args(plan, shape, problem, pointers, &args);
    if (!fill_maps(plan, shape, problem, pointers, &args))
        return fp8r_fail(FP8R_ERROR_DEVICE, "cuTensorMapEncodeTiled refused an operand of sm90:%s",
                         plan->config->name);
    cudaLaunchAttribute attributes[2];
    const cudaLaunchConfig_t config = launch_config(shape, grid_of(plan, shape, problem, &args), attributes,
                                                    plan->dependent_launch, stream);
    void *parameters[] = {&args};
    const cudaError_t error = cudaLaunchKernelExC(&config, shape->kernel, parameters);
    return error == cudaSuccess ? FP8R_OK : cuda_failed("cudaLaunchKernelExC", error);
}
