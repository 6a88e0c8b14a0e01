/* For tests on a GPU: a sample's operands there, run through any entry point, fetched and judged. Everything is static, as
 * each test file is a program of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_DEVICE_GPU_PRODUCT_H
#define FP8R_TESTS_DEVICE_GPU_PRODUCT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "device/cuda.h"
#include "support/sample.h"

#define CUDA(call) assert_int_equal(call, cudaSuccess)

/* 0 where there is no GPU; says why. */
static inline int gpu_count(void)
{
    int count = 0;
    if (fp8r_cuda_count(&count) != FP8R_OK) print_message("no GPU: %s\n", fp8r_last_error());
    return count;
}

static inline fp8r_context *gpu_context(int index, uint32_t flags)
{
    const fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ROUTE_FILES | flags};
    fp8r_context *context = NULL;
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, index}, &options, &context) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    return context;
}

struct gpu_product {
    struct sample host;
    fp8r_matmul matmul; /* on the GPU */
    char *blocks[SAMPLE_OPERANDS];
};

static inline fp8r_matrix *gpu_matrix(fp8r_matmul *matmul, int operand)
{
    fp8r_matrix *const matrices[] = {&matmul->a,       &matmul->b,       &matmul->out,
                                     &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    return matrices[operand];
}

/* The host's sample goes over, into memory of the current device. */
static inline void gpu_product_place(struct gpu_product *it)
{
    it->matmul = it->host.matmul;
    for (int i = 0; i < SAMPLE_OPERANDS; i++) {
        const struct sample_block *block = &it->host.blocks[i];
        it->blocks[i] = NULL;
        if (!gpu_matrix(&it->matmul, i)->data) continue;
        CUDA(cudaMalloc((void **)&it->blocks[i], block->size_bytes + 256));
        CUDA(cudaMemcpy(it->blocks[i], block->memory, block->size_bytes, cudaMemcpyHostToDevice));
        gpu_matrix(&it->matmul, i)->data = it->blocks[i] + block->offset_bytes;
    }
}

static inline void gpu_product_init_data(struct gpu_product *it, const char *text, enum sample_data data, uint64_t seed)
{
    if (!sample_init(&it->host, text, data, seed)) fail_msg("%s: no sample", text);
    gpu_product_place(it);
}

static inline void gpu_product_init(struct gpu_product *it, const char *text, uint64_t seed)
{
    gpu_product_init_data(it, text, SAMPLE_EXACT, seed);
}

static inline void gpu_product_fini(struct gpu_product *it)
{
    for (int i = 0; i < SAMPLE_OPERANDS; i++)
        CUDA(cudaFree(it->blocks[i]));
    sample_fini(&it->host);
}

/* Poison in out, there and here. */
static inline void gpu_product_clear(struct gpu_product *it, cudaStream_t stream)
{
    const struct sample_block *out = &it->host.blocks[SAMPLE_OUT];
    sample_clear(&it->host);
    CUDA(cudaMemcpyAsync(it->blocks[SAMPLE_OUT], out->memory, out->size_bytes, cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
}

/* Waits for the stream; true where out is right. */
static inline int gpu_product_is_right(struct gpu_product *it, cudaStream_t stream, char line[160])
{
    const struct sample_block *out = &it->host.blocks[SAMPLE_OUT];
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(out->memory, it->blocks[SAMPLE_OUT], out->size_bytes, cudaMemcpyDeviceToHost));
    return sample_judge(&it->host, it->matmul.a.rows, line, 160);
}

#define GPU_JUDGE(it, stream)                                                                                          \
    do {                                                                                                               \
        char line_[160];                                                                                               \
        if (!gpu_product_is_right(it, stream, line_)) fail_msg("%s", line_);                                           \
    } while (0)

#endif
