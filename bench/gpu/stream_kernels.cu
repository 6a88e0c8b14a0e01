/* What products are measured against on a GPU: a plain kernel that streams the same bytes (the floor), and a kernel that
 * writes `a` (the producer in front of a product); and random operands. Behind a C interface; no timing here.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define BENCH_API extern "C" __attribute__((visibility("default")))

/* ---- The floor: the same bytes, once
 * ----------------------------------------------------------------------------- */

enum { FLOOR_THREADS = 256, FLOOR_IN_FLIGHT = 8 };

static __device__ __forceinline__ uint4 stream_load(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

/* Reads `count` vectors and writes `out_count`. The first loads go out before the wait, as static weights
 * allow. */
static __global__ void __launch_bounds__(FLOOR_THREADS)
    floor_kernel(const uint4 *in, int64_t count, uint4 *out, int64_t out_count)
{
    const int64_t tile = FLOOR_THREADS * FLOOR_IN_FLIGHT, step = gridDim.x * tile;
    uint4 sum = make_uint4(0, 0, 0, 0);
    bool waited = false;
    for (int64_t base = blockIdx.x * tile + threadIdx.x; base < count || !waited; base += step) {
        uint4 v[FLOOR_IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < FLOOR_IN_FLIGHT; ++i) {
            const int64_t at = base + i * FLOOR_THREADS;
            v[i] = at < count ? stream_load(in + at) : make_uint4(0, 0, 0, 0);
        }
        if (!waited) {
            asm volatile("griddepcontrol.wait;" ::: "memory");
            asm volatile("griddepcontrol.launch_dependents;");
            waited = true;
        }
#pragma unroll
        for (int i = 0; i < FLOOR_IN_FLIGHT; ++i) {
            sum.x ^= v[i].x;
            sum.y ^= v[i].y;
            sum.z ^= v[i].z;
            sum.w ^= v[i].w;
        }
    }
    for (int64_t i = blockIdx.x * (int64_t)FLOOR_THREADS + threadIdx.x; i < out_count;
         i += (int64_t)gridDim.x * FLOOR_THREADS)
        out[i] = sum;
    if (out_count == 0 && (sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x12345678u) out[0] = sum;
}

static int launch(const void *kernel, int blocks, int threads, void **parameters, int dependent, void *stream)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.stream = (cudaStream_t)stream;
    config.attrs = &attribute;
    config.numAttrs = dependent ? 1 : 0;
    return (int)cudaLaunchKernelExC(&config, kernel, parameters);
}

BENCH_API int bench_floor(const void *in, int64_t bytes, void *out, int64_t out_bytes, int blocks,
                          int dependent, void *stream)
{
    int64_t count = bytes / 16, out_count = out_bytes / 16;
    void *parameters[] = {&in, &count, &out, &out_count};
    return launch((const void *)floor_kernel, blocks, FLOOR_THREADS, parameters, dependent, stream);
}

/* ---- The producer: writes `a` after the kernels before it are complete
 * --------------------------------------------- */

/* early: lets the next kernel start before its own wait, as a kernel may whose dependents wait before they
 * read. */
static __global__ void __launch_bounds__(256)
    producer_kernel(const uint4 *from, uint4 *to, int64_t count, int early)
{
    const int64_t i = blockIdx.x * (int64_t)256 + threadIdx.x;
    if (early) asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (!early) asm volatile("griddepcontrol.launch_dependents;");
    if (i < count) to[i] = from[i];
}

BENCH_API int bench_producer(const void *from, void *to, int64_t bytes, int dependent, int early,
                             void *stream)
{
    int64_t count = bytes / 16;
    void *parameters[] = {&from, &to, &count, &early};
    return launch((const void *)producer_kernel, (int)((count + 255) / 256), 256, parameters, dependent,
                  stream);
}

/* ---- Operands ---- */

static __device__ uint32_t hash(uint64_t x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDull;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53ull;
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

/* About normal, mean 0 and deviation 1: sixteen nibbles. */
static __device__ float normal(uint64_t index)
{
    int sum = 0;
    for (int word = 0; word < 2; ++word) {
        const uint32_t bits = hash(2 * index + word);
        for (int i = 0; i < 8; ++i)
            sum += bits >> 4 * i & 15;
    }
    return (float)(sum - 120) * (1.0f / 18.44f);
}

static __global__ void fill_codes(uint8_t *to, int64_t count, uint64_t seed)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = __nv_cvt_float_to_fp8(normal(i + (seed << 40)), __NV_SATFINITE, __NV_E4M3);
}

static __global__ void fill_halves(__nv_bfloat16 *to, int64_t count, uint64_t seed)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = __float2bfloat16_rn(normal(i + (seed << 40)));
}

static __global__ void fill_scales(float *to, int64_t count, uint64_t seed)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = 0.005f + (float)(hash(i + (seed << 40)) >> 8) * (0.01f / 16777216.0f);
}

/* kind: 0 e4m3 codes, 1 bf16, 2 fp32 scales. */
BENCH_API int bench_fill(void *to, int64_t count, int kind, uint64_t seed, void *stream)
{
    const void *const kernels[] = {(const void *)fill_codes, (const void *)fill_halves, (const void *)fill_scales};
    void *parameters[] = {&to, &count, &seed};
    return launch(kernels[kind], 1056, 256, parameters, 0, stream);
}
