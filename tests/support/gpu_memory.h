/* Filling a GPU's memory from a test, done when the call returns. cudaMemset returns before it has happened and a copy from
 * pageable memory may, and a stream that does not wait for the default one overtakes them: seen as a product whose workspace
 * was filled while it ran.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_MEMORY_H
#define FP8R_TESTS_GPU_MEMORY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

static inline cudaError_t gpu_memory_settle(cudaError_t error)
{
    return error == cudaSuccess ? cudaStreamSynchronize(NULL) : error;
}

static inline cudaError_t gpu_memory_set(void *to, int byte, size_t bytes)
{
    return gpu_memory_settle(cudaMemset(to, byte, bytes));
}

static inline cudaError_t gpu_memory_put(void *to, const void *from, size_t bytes)
{
    return gpu_memory_settle(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

#endif
