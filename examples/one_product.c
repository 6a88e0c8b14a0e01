/* One product: two fp32 matrices are quantised to fp8, multiplied, and held against a plain fp32 loop.
 *
 * Build it anywhere:  cc -std=c11 one_product.c $(pkg-config --cflags --libs fp8route) -lm
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fp8route/fp8route.h>

enum { M = 32, N = 64, K = 256 };

static float activations[M][K]; /* x */
static float weights[N][K];     /* one row an output, as checkpoints store them */
static uint8_t x_codes[M][K], w_codes[N][K];
static float x_scales[M], w_scales[N]; /* one a row of x, one an output */
static float out[M][N];

static void check(fp8r_status status, const char *what)
{
    if (status == FP8R_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, fp8r_status_name(status), fp8r_last_error());
    exit(EXIT_FAILURE);
}

/* Rows of `cols` values without gaps. */
static fp8r_matrix packed(void *data, int32_t dtype, int64_t rows, int64_t cols)
{
    return (fp8r_matrix){.data = data, .dtype = dtype, .batch = 1, .rows = rows, .cols = cols,
                         .row_stride = cols, .col_stride = 1};
}

/* The same memory read the other way: rows become columns. Nothing is moved. */
static fp8r_matrix transposed(fp8r_matrix matrix)
{
    fp8r_matrix result = matrix;
    result.rows = matrix.cols;
    result.cols = matrix.rows;
    result.row_stride = matrix.col_stride;
    result.col_stride = matrix.row_stride;
    return result;
}

static void fill(float *values, int count, unsigned seed)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (1 << 23) - 1.0f; /* -1 to 1 */
    }
}

static void multiply(fp8r_context *context)
{
    fp8r_matrix x = packed(activations, FP8R_DTYPE_FP32, M, K), x8 = packed(x_codes, FP8R_DTYPE_E4M3, M, K);
    fp8r_matrix w = packed(weights, FP8R_DTYPE_FP32, N, K), w8 = packed(w_codes, FP8R_DTYPE_E4M3, N, K);
    fp8r_matrix x_scale = packed(x_scales, FP8R_DTYPE_FP32, M, 1);
    fp8r_matrix w_scale = packed(w_scales, FP8R_DTYPE_FP32, N, 1);

    /* A scale of as many rows as its matrix: each row gets its own, computed from its largest magnitude. */
    check(fp8r_quantize(context, &x, &x8, &x_scale, FP8R_SCALING_COMPUTE, NULL), "quantize x");
    check(fp8r_quantize(context, &w, &w8, &w_scale, FP8R_SCALING_COMPUTE, NULL), "quantize w");

    /* out [M,N] = x [M,K] * w^T [K,N] */
    fp8r_matmul product = {.struct_size = sizeof product,
                           .a = x8,
                           .b = transposed(w8),
                           .out = packed(out, FP8R_DTYPE_FP32, M, N),
                           .scale_a = x_scale,
                           .scale_b = transposed(w_scale)};
    check(fp8r_scaled_mm(context, &product, NULL), "scaled_mm");
}

int main(void)
{
    fill(&activations[0][0], M * K, 1);
    fill(&weights[0][0], N * K, 2);

    fp8r_context *context;
    check(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, NULL, &context), "context");
    multiply(context);
    fp8r_context_destroy(context);

    int far = 0;
    printf("  m  n     fp8    fp32\n");
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            float sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                sum += activations[m][k] * weights[n][k];
                size += fabsf(activations[m][k] * weights[n][k]);
            }
            /* e4m3 keeps 4 bits: a factor is off by up to 1/16, a product by up to 1/8 and a little. */
            far += !(fabsf(out[m][n] - sum) <= 0.13f * size);
            if (m % 8 == 0 && n % 32 == 0)
                printf("%3d %2d %7.3f %7.3f\n", m, n, (double)out[m][n], (double)sum);
        }
    }
    printf("%d of %d values too far from fp32\n", far, M * N);
    return far == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
