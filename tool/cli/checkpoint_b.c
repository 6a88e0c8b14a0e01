/* Weights into operands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint_b.h"

#include <string.h>

#include "tool_status.h"

int fp8r_checkpoint_b_shape(const struct fp8r_weights *weights, fp8r_matmul *matmul,
                            struct fp8r_tool_error *error)
{
    fp8r_matrix *b = &matmul->b;
    if (b->rows != weights->k || b->cols != weights->n)
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "--weights: the tensor has N=%lld and K=%lld, but the problem N=%lld and K=%lld",
            (long long)weights->n, (long long)weights->k, (long long)b->cols, (long long)b->rows);
    if ((b->rows > 1 && b->row_stride != 1) || (b->cols > 1 && b->col_stride != b->rows))
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "--weights: checkpoints store [N,K] packed: leave tb, ib and ldb out of the problem");
    b->batch = 1;
    b->batch_stride = 0;
    bool is_wide = weights->dtype != FP8R_DTYPE_E4M3;
    int64_t count = is_wide ? weights->n : weights->scale_count;
    matmul->scale_b = (fp8r_matrix){0};
    if (count > 0)
        matmul->scale_b = (fp8r_matrix){.dtype = FP8R_DTYPE_FP32,
                                        .batch = 1,
                                        .rows = 1,
                                        .cols = count,
                                        .batch_stride = 0,
                                        .row_stride = count,
                                        .col_stride = 1};
    return FP8R_EXIT_GOOD;
}

/* [N,K] as stored is b column after column. */
static int quantize(fp8r_context *context, const struct fp8r_weights *weights, const fp8r_matmul *matmul,
                    struct fp8r_tool_error *error)
{
    fp8r_matrix in = {.data = weights->data,
                      .dtype = weights->dtype,
                      .batch = 1,
                      .rows = weights->n,
                      .cols = weights->k,
                      .row_stride = weights->k,
                      .col_stride = 1};
    fp8r_matrix codes = in, scale = in;
    codes.data = matmul->b.data;
    codes.dtype = FP8R_DTYPE_E4M3;
    scale.data = matmul->scale_b.data;
    scale.dtype = FP8R_DTYPE_FP32;
    scale.cols = scale.row_stride = 1;
    return fp8r_tool_status(error, fp8r_quantize(context, &in, &codes, &scale, FP8R_SCALING_COMPUTE, NULL));
}

int fp8r_checkpoint_b_fill(fp8r_context *context, const struct fp8r_weights *weights,
                           struct fp8r_inputs *inputs, struct fp8r_tool_error *error)
{
    const fp8r_matmul *matmul = &inputs->matmul;
    int code = FP8R_EXIT_GOOD;
    if (weights->n == 0 || weights->k == 0) return code;
    if (weights->dtype != FP8R_DTYPE_E4M3) {
        code = quantize(context, weights, matmul, error);
    } else {
        memcpy(matmul->b.data, weights->data, (size_t)(weights->n * weights->k));
        if (weights->scale_count > 0)
            memcpy(matmul->scale_b.data, weights->scale, (size_t)weights->scale_count * sizeof(float));
    }
    fp8r_inputs_remember(inputs);
    return code;
}
