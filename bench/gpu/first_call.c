/* How long a cold process takes from CUDA's own initialisation to the result of its first routed product. One JSON object.
 *
 *     first_call PROBLEM [ROUTES]
 *
 * Exit: 0, 2 usage, 4 no GPU or a failure.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <time.h>

#include <fp8route/backend.h>

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int64_t extent(const fp8r_matrix *matrix)
{
    return (matrix->batch - 1) * matrix->batch_stride + (matrix->rows - 1) * matrix->row_stride +
           (matrix->cols - 1) * matrix->col_stride + 1;
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "first_call: %s: %s\n", what, why);
    return 4;
}

static cudaError_t place(fp8r_matmul *matmul)
{
    fp8r_matrix *const matrices[] = {&matmul->a, &matmul->b, &matmul->out, &matmul->scale_a, &matmul->scale_b,
                                     &matmul->bias};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 6 && error == cudaSuccess; i++)
        if (matrices[i]->dtype != FP8R_DTYPE_NONE) error = cudaMalloc(&matrices[i]->data, (size_t)extent(matrices[i]) * 4);
    return error;
}

int main(int argc, char **argv)
{
    fp8r_matmul matmul;
    fp8r_context *context = NULL;
    const fp8r_context_options options = {.struct_size = sizeof options, .routes = argc > 2 ? argv[2] : NULL};
    if (argc < 2 || fp8r_matmul_parse(argv[1], &matmul) != FP8R_OK) {
        fprintf(stderr, "usage: first_call PROBLEM [ROUTES]\n");
        return 2;
    }
    const double start_ms = now_ms();
    cudaError_t error = cudaFree(NULL);
    const double ready_ms = now_ms();
    if (error == cudaSuccess) error = place(&matmul);
    if (error != cudaSuccess) return fail("cuda", cudaGetErrorString(error));
    const double placed_ms = now_ms();
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, &options, &context) != FP8R_OK)
        return fail("context", fp8r_last_error());
    const double context_ms = now_ms();
    if (fp8r_scaled_mm(context, &matmul, NULL) != FP8R_OK) return fail("product", fp8r_last_error());
    error = cudaDeviceSynchronize();
    const double end_ms = now_ms();
    if (error != cudaSuccess) return fail("product", cudaGetErrorString(error));
    printf("{\"cuda_ms\": %.1f, \"context_ms\": %.1f, \"product_ms\": %.1f, \"beyond_cuda_ms\": %.1f}\n", ready_ms - start_ms,
           context_ms - placed_ms, end_ms - context_ms, end_ms - placed_ms);
    fp8r_context_destroy(context);
    return 0;
}
