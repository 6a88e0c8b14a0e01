/* The sm90 kernels behind a C interface, for speed.py; with stream_kernels.cu. No timing here.
 * SPDX-License-Identifier: Apache-2.0 */
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
    void *workspace;
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
    struct bench_plan *made = (struct bench_plan *)aligned_alloc(alignof(struct bench_plan), sizeof *made);
    if (made && problem_of(text, &made->problem) &&
        fp8r_sm90_supports(&facts, &made->problem, config, &reason) &&
        fp8r_sm90_prepare(&facts, &made->problem, config, &made->plan) == FP8R_OK) {
        const size_t needed = fp8r_sm90_workspace(&made->problem, config);
        made->plan.dependent_launch = dependent_launch != 0;
        made->workspace = NULL;
        if (!needed || cudaMalloc(&made->workspace, needed) == cudaSuccess) return made;
    }
    free(made);
    return NULL;
}

BENCH_API void bench_destroy(struct bench_plan *plan)
{
    if (plan) cudaFree(plan->workspace);
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
    return fp8r_sm90_launch(&plan->plan, &plan->problem, &pointers, plan->workspace, stream);
}
