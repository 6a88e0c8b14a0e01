/* The producer in front of a product. What follows may begin as soon as this kernel's own wait is over: that is where a
 * quantiser with dependents lets them in, and where configurations differ that are alike behind themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/producer_cuda.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { THREADS = 256, PIECE_BYTES = 16 };

/* Volatile: a copy to where it comes from is to be made all the same. */
static __global__ void __launch_bounds__(THREADS) produce(uint8_t *to, const uint8_t *from, int64_t bytes)
{
    const int64_t at = (blockIdx.x * (int64_t)THREADS + threadIdx.x) * PIECE_BYTES;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    if (at + PIECE_BYTES <= bytes && (((uintptr_t)to | (uintptr_t)from) & (PIECE_BYTES - 1)) == 0) {
        uint32_t x, y, z, w;
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(from + at));
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to + at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
        return;
    }
    for (int64_t i = at; i < at + PIECE_BYTES && i < bytes; i++)
        ((volatile uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
}

extern "C" int fp8r_producer_cuda(void *to, const void *from, size_t bytes, bool is_dependent, void *stream)
{
    int64_t count = (int64_t)bytes;
    void *parameters[] = {&to, &from, &count};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((count + THREADS * PIECE_BYTES - 1) / (THREADS * PIECE_BYTES)));
    config.blockDim = dim3(THREADS);
    config.stream = (cudaStream_t)stream;
    config.attrs = &attribute;
    config.numAttrs = is_dependent ? 1 : 0;
    return count > 0 ? (int)cudaLaunchKernelExC(&config, (const void *)produce, parameters) : (int)cudaSuccess;
}
