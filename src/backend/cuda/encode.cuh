/* fp32 to narrow types and back, the bits of base/convert.h. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_ENCODE_CUH
#define FP8R_CUDA_ENCODE_CUH

#include <cuda_fp16.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

#include "backend/cuda/decode.cuh"

/* Two e4m3 codes, the first in the low byte: nearest even, saturating; NaN gives 0x7F. */
FP8R_DEVICE uint32_t encode_pair(float first, float second)
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

FP8R_DEVICE float load_value(const void *data, int64_t at, int dtype)
{
    if (dtype == FP8R_DTYPE_BF16) return __uint_as_float((uint32_t)((const uint16_t *)data)[at] << 16);
    if (dtype == FP8R_DTYPE_FP16) return __half2float(((const __half *)data)[at]);
    return ((const float *)data)[at];
}

FP8R_DEVICE float decode_one(uint8_t code, int dtype)
{
    const __half_raw half = {
        (unsigned short)(dtype == FP8R_DTYPE_E5M2 ? code << 8 : decode_pair(code) & 0xFFFFu)};
    return __half2float(__half(half));
}

#endif
