/* Preparing a configuration for a family: what the device holds of it at once, its shapes, the driver's functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sm90/fixed_args.h"
#include "backend/sm90/shapes.h"
#include "backend/sm90/shifted.h"
#include "base/status.h"

static fp8r_status cuda_failed(const char *call, cudaError_t error)
{
    return fp8r_fail(FP8R_ERROR_DEVICE, "%s: %s", call, cudaGetErrorString(error));
}

int fp8r_sm90_clusters_resident(const void *kernel, int threads, int shared_bytes, int size)
{
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
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension};
    attribute.val.clusterDim.x = (unsigned)size;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    const cudaLaunchConfig_t config = {.gridDim = {(unsigned)size, 1, 1},
                                       .blockDim = {(unsigned)threads, 1, 1},
                                       .dynamicSmemBytes = (size_t)shared_bytes,
                                       .attrs = &attribute,
                                       .numAttrs = 1};
    return cudaOccupancyMaxActiveClusters(&count, kernel, &config) == cudaSuccess ? count : 0;
}

static size_t plan_bytes(int shape_count)
{
    const size_t alignment = _Alignof(struct fp8r_sm90_plan);
    const size_t bytes = offsetof(struct fp8r_sm90_plan, fixed) + (size_t)shape_count * sizeof(struct fp8r_sm90_args);
    return (bytes + alignment - 1) / alignment * alignment;
}

struct fp8r_sm90_plan *fp8r_sm90_plan_new(int shape_count)
{
    return aligned_alloc(_Alignof(struct fp8r_sm90_plan), plan_bytes(shape_count));
}

struct fp8r_sm90_plan *fp8r_sm90_plan_shorten(struct fp8r_sm90_plan *plan)
{
    struct fp8r_sm90_plan *shorter = fp8r_sm90_plan_new(plan->shape_count);
    if (!shorter) return plan;
    memcpy(shorter, plan, plan_bytes(plan->shape_count));
    free(plan);
    return shorter;
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

/* The driver's function of that name, and the kernels as the driver knows them: launching by it costs the host less than by
 * the runtime. */
static fp8r_status find_driver(const char *name, void **function)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, function, 12000, cudaEnableDefault, &found);
    if (error == cudaSuccess && found == cudaDriverEntryPointSuccess) return FP8R_OK;
    return cuda_failed(name, error != cudaSuccess ? error : cudaErrorSymbolNotFound);
}

static fp8r_status find_function(const void *kernel, void **found)
{
    cudaFunction_t function;
    const cudaError_t error = cudaGetFuncBySymbol(&function, kernel);
    if (error != cudaSuccess) return cuda_failed("cudaGetFuncBySymbol", error);
    *found = function;
    return FP8R_OK;
}

static fp8r_status find_functions(struct fp8r_sm90_plan *plan)
{
    for (int i = 0; i < plan->shape_count; ++i)
        FP8R_TRY(find_function(plan->shapes[i].kernel, &plan->shapes[i].function));
    return FP8R_OK;
}

void fp8r_sm90_prepare_halves(const fp8r_device_facts *device, const fp8r_operand *a, struct fp8r_sm90_plan *plan)
{
    struct fp8r_sm90_shape *shape = &plan->halves;
    const struct fp8r_sm90_config *config = plan->config;
    if (config->family != FP8R_SM90_SKINNY || fp8r_sm90_promotes(config, &plan->problem) ||
        plan->problem.k % FP8R_SM90_HALVES_VECTOR != 0)
        return;
    if (!fp8r_sm90_shape_halves(device, config, &plan->problem, a->dtype == FP8R_DTYPE_BF16, shape)) {
        shape->kernel = NULL;
    } else if (find_function(shape->kernel, &shape->function) != FP8R_OK) {
        fp8r_error_clear(); /* a quantiser in front does as well */
        shape->kernel = NULL;
    } else {
        fp8r_sm90_fix_args(plan, shape, &plan->fixed_halves);
    }
}

fp8r_status fp8r_sm90_prepare(const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                              struct fp8r_sm90_plan *plan)
{
    struct fp8r_sm90_plan made = {
        .config = &fp8r_sm90_configs[config], .problem = *problem, .dependent_launch = true, .sm_count = device->sm_count};
    FP8R_TRY(find_driver("cuTensorMapEncodeTiled", &made.encode));
    FP8R_TRY(find_driver("cuLaunchKernelEx", &made.start));
    FP8R_TRY(prepare_shapes(device, &made));
    FP8R_TRY(find_functions(&made));
    for (int i = 0; i < made.shape_count; ++i)
        fp8r_sm90_fix_args(&made, &made.shapes[i], &made.fixed[i]);
    if (made.config->shifted) FP8R_TRY(find_function(fp8r_sm90_shifted_copy(), &made.copy));
    *plan = made;
    return FP8R_OK;
}
