/* From sums to stored results: scale_b, scale_a, bias, each rounded in fp32, then one rounding to out's type.
 * Types are uniform branches. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_EPILOGUE_CUH
#define FP8R_CUDA_EPILOGUE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fp8route/fp8route.h>

#include "backend/cuda/args.h"
#include "backend/cuda/decode.cuh"

FP8R_DEVICE float scale_at(const struct fp8r_cuda_line *line, int64_t batch, int64_t at)
{
    return line->data ? ((const float *)line->data)[batch * line->batch_stride + at * line->stride] : 1.0f;
}

/* 0 where there is none: `finish` does not add it then. */
FP8R_DEVICE float bias_at(const struct fp8r_cuda_args *args, int64_t batch, int64_t col)
{
    if (!args->bias.data) return 0.0f;
    const int64_t at = batch * args->bias.batch_stride + col * args->bias.stride;
    if (args->bias_dtype == FP8R_DTYPE_BF16)
        return __bfloat162float(((const __nv_bfloat16 *)args->bias.data)[at]);
    if (args->bias_dtype == FP8R_DTYPE_FP16) return __half2float(((const __half *)args->bias.data)[at]);
    return ((const float *)args->bias.data)[at];
}

/* An absent bias is not added: -0 would become +0. */
FP8R_DEVICE float finish(float sum, float scale_b, float scale_a, bool has_bias, float bias)
{
    const float scaled = __fmul_rn(__fmul_rn(sum, scale_b), scale_a);
    return has_bias ? __fadd_rn(scaled, bias) : scaled;
}

FP8R_DEVICE void store_one(void *out, int64_t at, int dtype, float value)
{
    if (dtype == FP8R_DTYPE_BF16)
        ((__nv_bfloat16 *)out)[at] = __float2bfloat16_rn(value);
    else if (dtype == FP8R_DTYPE_FP16)
        ((__half *)out)[at] = __float2half_rn(value);
    else
        ((float *)out)[at] = value;
}

FP8R_DEVICE uint32_t pack_two(int dtype, float low, float high)
{
    uint32_t packed;
    if (dtype == FP8R_DTYPE_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(packed) : "f"(low), "f"(high));
    else
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(packed) : "f"(low), "f"(high));
    return packed;
}

/* Eight neighbours in a row, of which the first `exist` are stored. */
FP8R_DEVICE void store_eight(const struct fp8r_cuda_args *args, int64_t at, const float value[8], int exist)
{
    if (args->out_vectors && exist >= 8) {
        if (args->out_dtype == FP8R_DTYPE_FP32) {
            float4 *to = (float4 *)((float *)args->out + at);
            to[0] = make_float4(value[0], value[1], value[2], value[3]);
            to[1] = make_float4(value[4], value[5], value[6], value[7]);
        } else {
            *(uint4 *)((uint16_t *)args->out + at) = make_uint4(
                pack_two(args->out_dtype, value[0], value[1]), pack_two(args->out_dtype, value[2], value[3]),
                pack_two(args->out_dtype, value[4], value[5]), pack_two(args->out_dtype, value[6], value[7]));
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (i < exist) store_one(args->out, at + i * args->out_col_stride, args->out_dtype, value[i]);
}

#endif
