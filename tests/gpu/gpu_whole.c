/* Products made on the device. SPDX-License-Identifier: Apache-2.0 */
#include "gpu_whole.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "base/dtype.h"
#include "gpu_sample.h"
#include "support/gpu_memory.h"

static size_t bytes_of(const fp8r_matrix *matrix)
{
    const int64_t last = (matrix->batch - 1) * matrix->batch_stride + (matrix->rows - 1) * matrix->row_stride +
                         (matrix->cols - 1) * matrix->col_stride;
    return (size_t)(last + 1) * (size_t)fp8r_dtype_bytes(matrix->dtype);
}

static void allocate(fp8r_matrix *matrix)
{
    if (matrix->dtype != FP8R_DTYPE_NONE) gpu_check("cudaMalloc", cudaMalloc(&matrix->data, bytes_of(matrix)));
}

static void clear_difference(struct gpu_whole *it)
{
    const struct gpu_difference none = {0, UINT64_MAX};
    gpu_check("gpu_memory_put", gpu_memory_put(it->difference, &none, sizeof none));
}

void gpu_whole_init(struct gpu_whole *it, const char *text, bool any, uint64_t seed)
{
    *it = (struct gpu_whole){0};
    if (fp8r_matmul_parse(text, &it->matmul) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    fp8r_matmul *matmul = &it->matmul;
    fp8r_matrix *const matrices[] = {&matmul->a, &matmul->b, &matmul->out, &matmul->scale_a, &matmul->scale_b};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        allocate(matrices[i]);
    it->out_bytes = bytes_of(&matmul->out);
    gpu_check("cudaStreamCreate", cudaStreamCreateWithFlags((cudaStream_t *)&it->stream, cudaStreamNonBlocking));
    gpu_check("cudaMalloc", cudaMalloc((void **)&it->difference, sizeof *it->difference));
    clear_difference(it);
    gpu_check("fill a", gpu_bits_fill_codes(matmul->a.data, (int64_t)bytes_of(&matmul->a), any, seed, it->stream));
    gpu_check("fill b", gpu_bits_fill_codes(matmul->b.data, (int64_t)bytes_of(&matmul->b), any, seed + 1, it->stream));
    for (int i = 3; i < 5; i++)
        if (matrices[i]->data)
            gpu_check("fill scales", gpu_bits_fill_scales(matrices[i]->data, (int64_t)bytes_of(matrices[i]) / 4,
                                                          seed + (uint64_t)i, it->stream));
}

void gpu_whole_fini(struct gpu_whole *it)
{
    void *const all[] = {it->matmul.a.data,       it->matmul.b.data, it->matmul.out.data, it->matmul.scale_a.data,
                         it->matmul.scale_b.data, it->space,         it->difference};
    gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(it->stream));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gpu_check("cudaFree", cudaFree(all[i]));
    gpu_check("cudaStreamDestroy", cudaStreamDestroy(it->stream));
}

fp8r_plan *gpu_whole_plan(const struct gpu_whole *it, fp8r_context *context, const char *backend)
{
    fp8r_plan *plan = NULL;
    const fp8r_status status = fp8r_plan_create(context, &it->matmul, backend, &plan);
    if (status != FP8R_OK && !(backend && status == FP8R_ERROR_UNSUPPORTED)) fail_msg("%s", fp8r_last_error());
    return plan;
}

void gpu_whole_run(struct gpu_whole *it, const fp8r_plan *plan, int64_t start, int64_t m, void *out)
{
    const size_t needed = fp8r_plan_workspace(plan);
    const fp8r_matmul *matmul = &it->matmul;
    const fp8r_matrix *scale_a = &matmul->scale_a;
    if (needed > it->space_bytes) {
        gpu_check("cudaFree", cudaFree(it->space));
        gpu_check("cudaMalloc", cudaMalloc(&it->space, needed));
        it->space_bytes = needed;
    }
    const fp8r_pointers pointers = {.struct_size = sizeof pointers,
                                    .m = m,
                                    .a = (const char *)matmul->a.data + start * matmul->a.row_stride,
                                    .b = matmul->b.data,
                                    .out = out,
                                    .scale_a = scale_a->data && scale_a->rows > 1 ? (const float *)scale_a->data + start
                                                                                  : scale_a->data,
                                    .scale_b = matmul->scale_b.data};
    if (fp8r_plan_run(plan, &pointers, it->space, it->space_bytes, it->stream) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
}

void gpu_whole_poison(const struct gpu_whole *it, void *out)
{
    gpu_check("cudaMemsetAsync", cudaMemsetAsync(out, 0xFF, it->out_bytes, it->stream));
}

struct gpu_difference gpu_whole_difference(struct gpu_whole *it)
{
    struct gpu_difference found;
    gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(it->stream));
    gpu_check("cudaMemcpy", cudaMemcpy(&found, it->difference, sizeof found, cudaMemcpyDeviceToHost));
    clear_difference(it);
    return found;
}
