/* The sm90 kernels, a plain streaming kernel (the floor) and a kernel that writes `a` (the producer in front
 * of a product) behind a C interface, for speed.py. No timing here. SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "backend/sm90/sm90.h"

extern "C" {
#include "problem/problem.h"
}

#define BENCH_API extern "C" __attribute__((visibility("default")))

struct bench_plan {
    fp8r_problem problem;
    struct fp8r_sm90_plan plan;
};

static fp8r_device_facts device_facts()
{
    fp8r_device_facts facts = {};
    facts.struct_size = sizeof facts;
    facts.kind = FP8R_DEVICE_CUDA;
    cudaDeviceGetAttribute(&facts.sm_count, cudaDevAttrMultiProcessorCount, 0);
    return facts;
}

BENCH_API int bench_config_count()
{
    return fp8r_sm90_config_count;
}

BENCH_API const char *bench_config_name(int config)
{
    return fp8r_sm90_configs[config].name;
}

BENCH_API const char *bench_error()
{
    return fp8r_last_error();
}

static bool problem_of(const char *text, fp8r_problem *problem)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    if (fp8r_matmul_parse(text, &matmul) != FP8R_OK ||
        fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product) != FP8R_OK)
        return false;
    *problem = product.problem;
    return true;
}

/* What the model expects of a configuration; negative: it refuses the problem. */
BENCH_API double bench_expected_us(const char *text, int config)
{
    const fp8r_device_facts facts = device_facts();
    fp8r_problem problem;
    fp8r_reason reason;
    if (!problem_of(text, &problem) || !fp8r_sm90_supports(&facts, &problem, config, &reason)) return -1.0;
    return fp8r_sm90_expected_us(&facts, &problem, config);
}

/* NULL: refused, or a bad text. */
BENCH_API struct bench_plan *bench_prepare(const char *text, int config, int dependent_launch)
{
    const fp8r_device_facts facts = device_facts();
    fp8r_reason reason;
    struct bench_plan *made = (struct bench_plan *)malloc(sizeof *made);
    if (made && problem_of(text, &made->problem) &&
        fp8r_sm90_supports(&facts, &made->problem, config, &reason) &&
        fp8r_sm90_prepare(&facts, &made->problem, config, &made->plan) == FP8R_OK) {
        made->plan.dependent_launch = dependent_launch != 0;
        return made;
    }
    free(made);
    return NULL;
}

BENCH_API void bench_destroy(struct bench_plan *plan)
{
    free(plan);
}

/* Rows a block, stages, blocks a grid holds at once: to be printed beside a time. */
BENCH_API void bench_shape(const struct bench_plan *plan, int shape[4])
{
    const struct fp8r_sm90_shape *s = &plan->plan.shapes[plan->plan.shape_count - 1];
    shape[0] = s->rows;
    shape[1] = s->stages;
    shape[2] = s->clusters_resident * s->cluster;
    shape[3] = s->shared_bytes;
}

BENCH_API int bench_launch(const struct bench_plan *plan, const void *a, const void *b, void *out,
                           const void *scale_a, const void *scale_b, const void *bias, void *stream)
{
    const fp8r_pointers pointers = {sizeof pointers, plan->problem.m, a, b, out, scale_a, scale_b, bias};
    return fp8r_sm90_launch(&plan->plan, &plan->problem, &pointers, stream);
}

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
