/* The producer that a dependent kernel must wait for, however early it was let go.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/late_copy.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { BLOCKS = 8, THREADS = 256 };

static __device__ uint64_t now_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void late(uint8_t *to, const uint8_t *from, size_t bytes, unsigned late_us)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    const uint64_t until = now_ns() + 1000 * (uint64_t)late_us;
    while (now_ns() < until)
        __nanosleep(1000);
    for (size_t i = blockIdx.x * THREADS + threadIdx.x; i < bytes; i += BLOCKS * THREADS)
        to[i] = from[i];
}

extern "C" int late_copy(void *to, const void *from, size_t bytes, unsigned late_us, void *stream)
{
    void *parameters[] = {&to, (void *)&from, &bytes, &late_us};
    return cudaLaunchKernel((const void *)late, dim3(BLOCKS), dim3(THREADS), parameters, 0, (cudaStream_t)stream);
}
