/* Rows of bf16 and fp16 to e4m3 on a GPU, step by step as base/quantize.c does it, bit for bit: for the quantiser and for
 * kernels that quantise what they multiply. Every step is fp32 with subnormals and IEEE division.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_DEVICE_QUANTIZE_ROWS_CUH
#define FP8R_DEVICE_QUANTIZE_ROWS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define FP8R_QUANTIZE_STEP static __device__ __forceinline__

/* Two e4m3 codes, the first in the low byte: nearest even, saturating; NaN gives 0x7F. */
FP8R_QUANTIZE_STEP uint32_t encode_pair(float first, float second)
{
#if __CUDA_ARCH__ >= 890
    uint16_t codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
    return codes;
#else
    const float values[2] = {first, second};
    uint32_t codes = 0;
    for (int i = 0; i < 2; ++i) {
        const uint32_t bits = __float_as_uint(values[i]) & 0x7FFFFFFFu;
        const uint32_t normal = ((bits + 0x7FFFFu + (bits >> 20 & 1u)) >> 20) - (120u << 3);
        /* Below 2^-6: 2^14 has an ulp of 2^-9, the step of e4m3's subnormals. */
        uint32_t code = bits < 0x3C800000u
                            ? __float_as_uint(__fadd_rn(__uint_as_float(bits), 0x1p14f)) - 0x46800000u
                            : normal;
        code = bits >= 0x43E00000u ? 0x7Eu : code;
        code |= __float_as_uint(values[i]) >> 24 & 0x80u;
        codes |= (bits > 0x7F800000u ? 0x7Fu : code) << 8 * i;
    }
    return codes;
#endif
}

FP8R_QUANTIZE_STEP float scale_of(float amax)
{
    return amax == 0.0f ? 1.0f : fmaxf(__fdiv_rn(amax, 448.0f), 0x1p-126f);
}

/* NaN does not count: the maximum of a number and NaN is the number. */
FP8R_QUANTIZE_STEP float raise(float amax, float value)
{
    return fmaxf(amax, fabsf(value));
}

template <bool BF16> FP8R_QUANTIZE_STEP float2 widen_pair(uint32_t halves)
{
    if (BF16) return make_float2(__uint_as_float(halves << 16), __uint_as_float(halves & 0xFFFF0000u));
    return __half22float2(*(const __half2 *)&halves);
}

/* Largest magnitudes of a row's elements, pairs in their own type; of NaN and a number it is the number. They begin at 0. */
template <bool BF16> FP8R_QUANTIZE_STEP uint32_t raise_pair(uint32_t most, uint32_t halves)
{
    if (BF16) {
        const __nv_bfloat162 raised = __hmax2(*(const __nv_bfloat162 *)&most, __habs2(*(const __nv_bfloat162 *)&halves));
        return *(const uint32_t *)&raised;
    }
    const __half2 raised = __hmax2(*(const __half2 *)&most, __habs2(*(const __half2 *)&halves));
    return *(const uint32_t *)&raised;
}

template <bool BF16> FP8R_QUANTIZE_STEP uint32_t raise_vector(uint32_t most, uint4 vector)
{
    return raise_pair<BF16>(raise_pair<BF16>(raise_pair<BF16>(raise_pair<BF16>(most, vector.x), vector.y), vector.z),
                            vector.w);
}

template <bool BF16> FP8R_QUANTIZE_STEP float largest_of(uint32_t most)
{
    const float2 pair = widen_pair<BF16>(most);
    return fmaxf(pair.x, pair.y);
}

template <bool BF16> FP8R_QUANTIZE_STEP uint2 encode_vector(uint4 vector, float inverse)
{
    const uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
    uint32_t codes[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = widen_pair<BF16>(words[i]);
        codes[i] = encode_pair(__fmul_rn(pair.x, inverse), __fmul_rn(pair.y, inverse));
    }
    return make_uint2(codes[0] | codes[1] << 16, codes[2] | codes[3] << 16);
}

#endif
