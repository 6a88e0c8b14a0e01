/* Filling and comparing on the device. SPDX-License-Identifier: Apache-2.0 */
#include "gpu_bits.h"

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

enum { BLOCKS = 1056, THREADS = 256 };

#define EACH(i, count)                                                                                                 \
    for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < (count); i += (int64_t)BLOCKS * THREADS)

static __device__ uint32_t hash(uint64_t x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDull;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53ull;
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

static __device__ void blame(struct gpu_difference *difference, int64_t i)
{
    atomicAdd(&difference->count, 1ull);
    atomicMin(&difference->first, (unsigned long long)i);
}

static __global__ void compare(const uint8_t *x, const uint8_t *y, int64_t bytes, struct gpu_difference *difference)
{
    const int64_t words = ((uintptr_t)x | (uintptr_t)y) % 8 ? 0 : bytes / 8;
    EACH (i, words)
        if (((const uint64_t *)x)[i] != ((const uint64_t *)y)[i]) blame(difference, 8 * i);
    EACH (i, bytes - 8 * words)
        if (x[8 * words + i] != y[8 * words + i]) blame(difference, 8 * words + i);
}

static __global__ void compare_rounded(const float *wanted, const void *got, int is_bf16, int64_t count,
                                       struct gpu_difference *difference)
{
    EACH (i, count) {
        const bool equal = is_bf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(wanted[i])) == ((const uint16_t *)got)[i]
                                   : __float_as_uint(wanted[i]) == ((const uint32_t *)got)[i];
        if (!equal) blame(difference, i);
    }
}

static __global__ void fill_codes(uint8_t *codes, int64_t count, int any, uint64_t seed)
{
    EACH (i, count) {
        const uint32_t h = hash(i + (seed << 40)), small[5] = {0x00, 0x38, 0xB8, 0x40, 0xC0};
        codes[i] = any ? (uint8_t)((h & 0x7F) == 0x7F ? h ^ 1 : h) : (uint8_t)small[h % 5];
    }
}

static __global__ void fill_scales(float *scales, int64_t count, uint64_t seed)
{
    EACH (i, count)
        scales[i] = ldexpf(1.0f, (int)(hash(i + (seed << 40)) % 8) - 3);
}

/* Not by <<<>>>: the library's rule for stubs holds for what is linked to it, too. */
static int launch(const void *kernel, void **parameters, void *stream)
{
    return cudaLaunchKernel(kernel, dim3(BLOCKS), dim3(THREADS), parameters, 0, (cudaStream_t)stream);
}

extern "C" int gpu_bits_compare(const void *x, const void *y, int64_t bytes, struct gpu_difference *difference, void *stream)
{
    void *parameters[] = {&x, &y, &bytes, &difference};
    return launch((const void *)compare, parameters, stream);
}

extern "C" int gpu_bits_compare_rounded(const float *wanted, const void *got, int is_bf16, int64_t count,
                                        struct gpu_difference *difference, void *stream)
{
    void *parameters[] = {&wanted, &got, &is_bf16, &count, &difference};
    return launch((const void *)compare_rounded, parameters, stream);
}

extern "C" int gpu_bits_fill_codes(void *codes, int64_t count, int any, uint64_t seed, void *stream)
{
    void *parameters[] = {&codes, &count, &any, &seed};
    return launch((const void *)fill_codes, parameters, stream);
}

extern "C" int gpu_bits_fill_scales(float *scales, int64_t count, uint64_t seed, void *stream)
{
    void *parameters[] = {&scales, &count, &seed};
    return launch((const void *)fill_scales, parameters, stream);
}
