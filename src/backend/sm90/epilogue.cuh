/* From sums to stored results: scale_b, scale_a, bias, each rounded in fp32, then one rounding to out's type.
 * Types of bias and out are uniform branches. Knows fragments and addresses, not tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_EPILOGUE_CUH
#define FP8R_SM90_EPILOGUE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fp8route/fp8route.h>

#include "backend/sm90/args.h"
#include "backend/sm90/ptx.cuh"

FP8R_DEVICE float load_bias(const struct fp8r_sm90_args *args, int64_t index)
{
    if (args->bias_dtype == FP8R_DTYPE_BF16)
        return __bfloat162float(((const __nv_bfloat16 *)args->bias)[index]);
    if (args->bias_dtype == FP8R_DTYPE_FP16) return __half2float(((const __half *)args->bias)[index]);
    return ((const float *)args->bias)[index];
}

/* One warp copies what `columns` columns from n on need into shared memory; beyond N: neutral values. */
FP8R_DEVICE void stage_columns(const struct fp8r_sm90_args *args, int batch, int n, int columns,
                               float *scale_b, float *bias)
{
    for (int i = threadIdx.x % 32; i < columns; i += 32) {
        const bool inside = n + i < args->n;
        scale_b[i] = inside && args->scale_b
                         ? args->scale_b[batch * args->scale_b_batch + (n + i) * args->scale_b_col]
                         : 1.0f;
        bias[i] = inside && args->bias ? load_bias(args, batch * args->bias_batch + (n + i) * args->bias_col)
                                       : 0.0f;
    }
}

FP8R_DEVICE float load_scale_a(const struct fp8r_sm90_args *args, int batch, int m)
{
    return m < args->m && args->scale_a ? args->scale_a[batch * args->scale_a_batch + m * args->scale_a_row]
                                        : 1.0f;
}

/* An absent bias is not added: -0 would become +0. */
FP8R_DEVICE float finish(float sum, float scale_b, float scale_a, bool biased, float bias)
{
    const float scaled = __fmul_rn(__fmul_rn(sum, scale_b), scale_a);
    return biased ? __fadd_rn(scaled, bias) : scaled;
}

FP8R_DEVICE float4 add_parts(float4 x, float4 y)
{
    return make_float4(__fadd_rn(x.x, y.x), __fadd_rn(x.y, y.y), __fadd_rn(x.z, y.z), __fadd_rn(x.w, y.w));
}

/* The sum of a fragment's parts, STRIDE apart, in the order of K. */
template <int STRIDE> FP8R_DEVICE float4 sum_parts(const float4 *parts, int count)
{
    float4 sum = parts[0];
    for (int i = 1; i < count; ++i)
        sum = add_parts(sum, parts[i * STRIDE]);
    return sum;
}

/* Two results as out's 16-bit type, the first in the low half. */
FP8R_DEVICE uint32_t pack_halves(int dtype, float low, float high)
{
    uint32_t packed;
    if (dtype == FP8R_DTYPE_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(packed) : "f"(low), "f"(high));
    else
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(packed) : "f"(low), "f"(high));
    return packed;
}

/* Four consecutive 16-bit results, of which the first `exist` are stored. */
FP8R_DEVICE void store_four_halves(uint16_t *to, bool vectors, int exist, uint32_t low, uint32_t high)
{
    if (vectors && exist >= 4) {
        *(uint2 *)to = make_uint2(low, high);
        return;
    }
    const uint32_t four[2] = {low, high};
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (i < exist) to[i] = (uint16_t)(four[i / 2] >> 16 * (i % 2));
}

/* Lanes 2i and 2i+1 hold a pair of columns each of two matrices of 8 columns, in `first` and `second`.
 * Afterwards the even one holds four consecutive columns of the first, the odd one of the second; returns
 * where they start. */
FP8R_DEVICE int widen_pairs(uint32_t first, uint32_t second, uint32_t *low, uint32_t *high)
{
    const bool odd = threadIdx.x & 1;
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, odd ? first : second, 1);
    *low = odd ? other : first;
    *high = odd ? second : other;
    return odd ? 8 + 2 * (threadIdx.x % 4 - 1) : 2 * (threadIdx.x % 4);
}

/* What a thread needs to store fragments of the same 16 columns of out, one below the other. */
struct swapped_columns {
    float scale_b[2], bias[2]; /* of its columns lane / 4 and lane / 4 + 8 */
    void *out;                 /* its first element in row 0 */
    int exist[2];              /* fp32: are its columns there? 16-bit, first: how many of its four are */
};

/* scale_b, bias: of column n; columns from `limit` on are not stored. */
FP8R_DEVICE struct swapped_columns swapped_columns_at(const struct fp8r_sm90_args *args, int batch, int n,
                                                      int limit, const float *scale_b, const float *bias)
{
    const int lane = threadIdx.x % 32, column = lane / 4, quarter = lane % 4;
    struct swapped_columns columns;
    columns.scale_b[0] = scale_b[column];
    columns.scale_b[1] = scale_b[column + 8];
    columns.bias[0] = bias[column];
    columns.bias[1] = bias[column + 8];
    if (args->out_dtype == FP8R_DTYPE_FP32) {
        columns.out = (float *)args->out + batch * args->out_batch + (int64_t)(2 * quarter) * args->out_row +
                      n + column;
        columns.exist[0] = n + column < limit;
        columns.exist[1] = n + column + 8 < limit;
    } else { /* after the transposition lane / 4 counts rows, and the quarter says which four columns */
        const int start = n + (quarter & 1 ? 8 + 2 * (quarter - 1) : 2 * quarter);
        columns.out =
            (uint16_t *)args->out + batch * args->out_batch + (int64_t)column * args->out_row + start;
        columns.exist[0] = limit - start;
        columns.exist[1] = 0;
    }
    return columns;
}

/* A fragment of 16 columns of out (on the tensor core's row side) and 8 rows from m on, as swapped operands
 * leave it: x, y: column lane / 4, rows 2 (lane % 4) and one more; z, w: column lane / 4 + 8. scale_a: of row
 * m. */
FP8R_DEVICE void store_swapped(const struct fp8r_sm90_args *args, const struct swapped_columns *columns,
                               float4 sums, int m, const float *scale_a)
{
    const int lane = threadIdx.x % 32, row = m + lane % 4 * 2;
    const bool biased = args->bias != NULL;
    const float2 scales = *(const float2 *)(scale_a + lane % 4 * 2);
    const float r00 = finish(sums.x, columns->scale_b[0], scales.x, biased, columns->bias[0]);
    const float r01 = finish(sums.y, columns->scale_b[0], scales.y, biased, columns->bias[0]);
    const float r10 = finish(sums.z, columns->scale_b[1], scales.x, biased, columns->bias[1]);
    const float r11 = finish(sums.w, columns->scale_b[1], scales.y, biased, columns->bias[1]);
    if (args->out_dtype == FP8R_DTYPE_FP32) {
        float *to = (float *)columns->out + m * args->out_row;
        if (row < args->m) {
            if (columns->exist[0]) to[0] = r00;
            if (columns->exist[1]) to[8] = r10;
        }
        if (row + 1 < args->m) {
            if (columns->exist[0]) to[args->out_row] = r01;
            if (columns->exist[1]) to[args->out_row + 8] = r11;
        }
        return;
    }
    const uint32_t first = transpose_8x8(pack_halves(args->out_dtype, r00, r01));
    const uint32_t second = transpose_8x8(pack_halves(args->out_dtype, r10, r11));
    uint32_t low, high;
    widen_pairs(first, second, &low, &high);
    if (m + lane / 4 < args->m)
        store_four_halves((uint16_t *)columns->out + m * args->out_row, args->flags & FP8R_SM90_OUT_VECTORS,
                          columns->exist[0], low, high);
}

/* The same where FP8R_SM90_OUT_FOURS holds, without a branch, so that several may be under way. columns,
 * bias: of the unit's first column n; scale_a: of row m. */
template <bool BIASED>
FP8R_DEVICE void store_swapped_fours(const struct fp8r_sm90_args *args, uint16_t *out, float4 sums, int m,
                                     int n, int limit, const float *scale_b, const float *bias,
                                     const float *scale_a)
{
    const int lane = threadIdx.x % 32, quarter = lane % 4;
    const float2 scales = *(const float2 *)(scale_a + quarter * 2);
    const float b0 = scale_b[lane / 4], b1 = scale_b[lane / 4 + 8];
    const float bias0 = BIASED ? bias[lane / 4] : 0.0f, bias1 = BIASED ? bias[lane / 4 + 8] : 0.0f;
    const uint32_t first =
        transpose_8x8(pack_halves(FP8R_DTYPE_BF16, finish(sums.x, b0, scales.x, BIASED, bias0),
                                  finish(sums.y, b0, scales.y, BIASED, bias0)));
    const uint32_t second =
        transpose_8x8(pack_halves(FP8R_DTYPE_BF16, finish(sums.z, b1, scales.x, BIASED, bias1),
                                  finish(sums.w, b1, scales.y, BIASED, bias1)));
    uint32_t low, high;
    const int start = n + widen_pairs(first, second, &low, &high);
    if (m + lane / 4 < args->m && start < limit)
        *(uint2 *)(out + (int64_t)(m + lane / 4) * args->out_row + start) = make_uint2(low, high);
}

/* 16 rows and 16 columns of out, operands not swapped: two fragments of 8 columns; in each x, y: row lane /
 * 4, columns 2 (lane % 4) and one more; z, w: row lane / 4 + 8. scale_a: of the thread's two rows. */
FP8R_DEVICE void store_straight(const struct fp8r_sm90_args *args, const float4 sums[2], int batch, int m,
                                int n, const float *scale_b, const float *bias, const float scale_a[2])
{
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    const bool biased = args->bias != NULL;
    float r[2][2][2]; /* row half, fragment, column */
#pragma unroll
    for (int f = 0; f < 2; ++f) {
        const float2 scales = *(const float2 *)(scale_b + 8 * f + column);
        const float2 biases = *(const float2 *)(bias + 8 * f + column);
        r[0][f][0] = finish(sums[f].x, scales.x, scale_a[0], biased, biases.x);
        r[0][f][1] = finish(sums[f].y, scales.y, scale_a[0], biased, biases.y);
        r[1][f][0] = finish(sums[f].z, scales.x, scale_a[1], biased, biases.x);
        r[1][f][1] = finish(sums[f].w, scales.y, scale_a[1], biased, biases.y);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int out_m = m + row + 8 * half;
        const int64_t offset = batch * args->out_batch + (int64_t)out_m * args->out_row;
        if (args->out_dtype == FP8R_DTYPE_FP32) {
            if (out_m >= args->m) continue;
#pragma unroll
            for (int f = 0; f < 2; ++f) {
                const int out_n = n + 8 * f + column;
                float *to = (float *)args->out + offset + out_n;
                if ((args->flags & FP8R_SM90_OUT_VECTORS) && out_n + 2 <= args->n) {
                    *(float2 *)to = make_float2(r[half][f][0], r[half][f][1]);
                } else {
                    if (out_n < args->n) to[0] = r[half][f][0];
                    if (out_n + 1 < args->n) to[1] = r[half][f][1];
                }
            }
            continue;
        }
        uint32_t low, high;
        const int start =
            widen_pairs(pack_halves(args->out_dtype, r[half][0][0], r[half][0][1]),
                        pack_halves(args->out_dtype, r[half][1][0], r[half][1][1]), &low, &high);
        if (out_m < args->m)
            store_four_halves((uint16_t *)args->out + offset + n + start, args->flags & FP8R_SM90_OUT_VECTORS,
                              args->n - n - start, low, high);
    }
}

/* The same where FP8R_SM90_OUT_FOURS holds, without a branch. out: its first element in row 0. */
template <bool BIASED>
FP8R_DEVICE void store_straight_fours(const struct fp8r_sm90_args *args, uint16_t *out, const float4 sums[2],
                                      int m, int n, const float *scale_b, const float *bias,
                                      const float scale_a[2])
{
    const int row = m + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    uint32_t packed[2][2]; /* row half, fragment */
#pragma unroll
    for (int f = 0; f < 2; ++f) {
        const float2 scales = *(const float2 *)(scale_b + 8 * f + column);
        float2 biases = make_float2(0.0f, 0.0f);
        if (BIASED) biases = *(const float2 *)(bias + 8 * f + column);
        packed[0][f] = pack_halves(FP8R_DTYPE_BF16, finish(sums[f].x, scales.x, scale_a[0], BIASED, biases.x),
                                   finish(sums[f].y, scales.y, scale_a[0], BIASED, biases.y));
        packed[1][f] = pack_halves(FP8R_DTYPE_BF16, finish(sums[f].z, scales.x, scale_a[1], BIASED, biases.x),
                                   finish(sums[f].w, scales.y, scale_a[1], BIASED, biases.y));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        uint32_t low, high;
        const int start = n + widen_pairs(packed[half][0], packed[half][1], &low, &high);
        if (row + 8 * half < args->m && start < args->n)
            *(uint2 *)(out + (int64_t)(row + 8 * half) * args->out_row + start) = make_uint2(low, high);
    }
}

/* 16 rows of out, 16 bits an element, whose columns lie in the order that encode_interleaved gives b's rows:
 * of every GROUP columns a lane holds GROUP / 4 consecutive ones. scale_a: of the thread's two rows. What
 * does not change is known at compile time, since this code runs once a tile and is longer than the cache of
 * instructions likes. */
template <int COLUMNS, bool BF16, bool BIASED>
FP8R_DEVICE void store_interleaved(const struct fp8r_sm90_args *args, const float *sums, int batch, int m,
                                   int n, const float *scale_b, const float *bias, const float scale_a[2])
{
    constexpr int group = FP8R_SM90_WIDE_GROUP(COLUMNS), each = group / 4;
    const int row = m + threadIdx.x % 32 / 4, offset = threadIdx.x % 4 * each;
    uint16_t *const to[2] = {
        (uint16_t *)args->out + batch * args->out_batch + (int64_t)row * args->out_row + n + offset,
        (uint16_t *)args->out + batch * args->out_batch + (int64_t)(row + 8) * args->out_row + n + offset};
    const bool exists[2] = {row < args->m, row + 8 < args->m};
#pragma unroll
    for (int g = 0; g < COLUMNS; g += group) {
        if (n + g >= args->n) break;
        float scales[each], biases[each];
#pragma unroll
        for (int i = 0; i < each; i += 4) {
            *(float4 *)(scales + i) = *(const float4 *)(scale_b + g + offset + i);
            if (BIASED) *(float4 *)(biases + i) = *(const float4 *)(bias + g + offset + i);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            uint32_t words[each / 2];
#pragma unroll
            for (int i = 0; i < each / 2; ++i) {
                const float *s = sums + g / 2 + 4 * i + 2 * half;
                words[i] = pack_halves(
                    BF16 ? FP8R_DTYPE_BF16 : FP8R_DTYPE_FP16,
                    finish(s[0], scales[2 * i], scale_a[half], BIASED, BIASED ? biases[2 * i] : 0.0f),
                    finish(s[1], scales[2 * i + 1], scale_a[half], BIASED,
                           BIASED ? biases[2 * i + 1] : 0.0f));
            }
            if (exists[half]) {
                if (each == 8)
                    *(uint4 *)(to[half] + g) =
                        make_uint4(words[0], words[1], words[each / 4], words[each / 2 - 1]);
                else
                    *(uint2 *)(to[half] + g) = make_uint2(words[0], words[1]);
            }
        }
    }
}

#endif
