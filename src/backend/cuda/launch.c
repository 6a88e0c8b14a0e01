/* Starting a kernel: the only calls of the CUDA runtime in this folder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/launch.h"

#include <cuda_runtime_api.h>

#include "base/sizes.h"
#include "device/cuda.h"

fp8r_status fp8r_cuda_load(const void *kernel, int32_t shared_bytes)
{
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    return error == cudaSuccess ? FP8R_OK : fp8r_cuda_fail("cudaFuncSetAttribute", error);
}

fp8r_status fp8r_cuda_start(const struct fp8r_cuda_launch *launch, const void *args, void *stream)
{
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {.blockDim = {(unsigned)launch->threads, 1, 1}, .stream = stream};
    config.gridDim = (dim3){(unsigned)fp8r_size_min(launch->blocks, INT32_MAX), 1, 1};
    config.dynamicSmemBytes = (size_t)launch->shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = launch->dependent ? 1 : 0;
    void *parameters[1] = {(void *)(uintptr_t)args};
    const cudaError_t error = cudaLaunchKernelExC(&config, launch->kernel, parameters);
    return error == cudaSuccess ? FP8R_OK : fp8r_cuda_fail("cudaLaunchKernelExC", error);
}
