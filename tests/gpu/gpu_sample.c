/* Moving samples to a GPU and back. SPDX-License-Identifier: Apache-2.0 */
#include "gpu_sample.h"
#include "support/gpu_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

void gpu_check(const char *call, int error)
{
    if (error != cudaSuccess) fail_msg("%s: %s", call, cudaGetErrorString((cudaError_t)error));
}

fp8r_device_facts gpu_facts(void)
{
    fp8r_device_facts facts = {.struct_size = sizeof facts, .kind = FP8R_DEVICE_CUDA};
    int count = 0, major, minor, l2;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("skipped: there is no GPU");
        exit(SKIPPED);
    }
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) != cudaSuccess ||
        cudaDeviceGetAttribute(&facts.sm_count, cudaDevAttrMultiProcessorCount, 0) != cudaSuccess ||
        cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0) != cudaSuccess) {
        puts("the GPU does not tell what it is");
        exit(EXIT_FAILURE);
    }
    facts.arch = 10 * major + minor;
    facts.l2_bytes = facts.last_level_bytes = l2;
    return facts;
}

fp8r_context *gpu_routed_context(void)
{
    fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    const fp8r_device device = {FP8R_DEVICE_CUDA, 0};
    fp8r_context *context = NULL;
    glob_t files = {0};
    (void)glob(FP8R_ROUTES "/*.routes", 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc && !context; i++) {
        options.routes = files.gl_pathv[i];
        if (fp8r_context_create(device, &options, &context) == FP8R_OK) printf("routes: %s\n", options.routes);
    }
    globfree(&files);
    options.routes = NULL;
    if (!context && fp8r_context_create(device, &options, &context) != FP8R_OK) {
        puts(fp8r_last_error());
        exit(EXIT_FAILURE);
    }
    return context;
}

void gpu_sample_init(struct gpu_sample *gpu, struct sample *sample)
{
    struct fp8r_product product;
    memset(gpu, 0, sizeof *gpu);
    gpu->sample = sample;
    if (fp8r_product_init(&sample->matmul, FP8R_DATA_USED, &product) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    gpu->problem = product.problem;
    for (int i = 0; i < SAMPLE_OPERANDS; i++) {
        const struct sample_block *block = &sample->blocks[i];
        if (!block->memory) continue;
        gpu_check("cudaMalloc", cudaMalloc(&gpu->memory[i], block->size_bytes + !block->size_bytes));
        gpu_check("gpu_memory_put",
                  gpu_memory_put(gpu->memory[i], block->memory, block->size_bytes));
    }
}

void gpu_sample_fini(struct gpu_sample *gpu)
{
    for (int i = 0; i < SAMPLE_OPERANDS; i++)
        gpu_check("cudaFree", cudaFree(gpu->memory[i]));
}

static void *data_of(const struct gpu_sample *gpu, enum sample_operand operand)
{
    const struct sample_block *block = &gpu->sample->blocks[operand];
    return block->memory ? (unsigned char *)gpu->memory[operand] + block->offset_bytes : NULL;
}

void gpu_sample_run(struct gpu_sample *gpu, const fp8r_backend *backend, const fp8r_device_facts *facts,
                    int config, int64_t m)
{
    const struct sample_block *out = &gpu->sample->blocks[SAMPLE_OUT];
    fp8r_problem problem = gpu->problem;
    void *state = NULL;
    problem.m = m;
    const fp8r_pointers pointers = {.struct_size = sizeof pointers,
                                    .m = m,
                                    .a = data_of(gpu, SAMPLE_A),
                                    .b = data_of(gpu, SAMPLE_B),
                                    .out = data_of(gpu, SAMPLE_OUT),
                                    .scale_a = data_of(gpu, SAMPLE_SCALE_A),
                                    .scale_b = data_of(gpu, SAMPLE_SCALE_B),
                                    .bias = data_of(gpu, SAMPLE_BIAS)};
    sample_clear(gpu->sample);
    gpu_check("gpu_memory_set", gpu_memory_set(gpu->memory[SAMPLE_OUT], 0xFF, out->size_bytes));
    if (backend->prepare(backend->user, NULL, facts, &gpu->problem, config, &state) != FP8R_OK ||
        backend->run(backend->user, NULL, state, &problem, config, &pointers, NULL, 0, NULL) != FP8R_OK)
        fail_msg("%s: %s", backend->configs[config], fp8r_last_error());
    gpu_check("cudaMemcpy",
              cudaMemcpy(out->memory, gpu->memory[SAMPLE_OUT], out->size_bytes, cudaMemcpyDeviceToHost));
}
