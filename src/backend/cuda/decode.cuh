/* fp8 codes to pairs of fp16, exactly: every e4m3 and e5m2 value is an fp16 value, NaN stays NaN. The tensor
 * core's instruction with fp32 sums. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_DECODE_CUH
#define FP8R_CUDA_DECODE_CUH

#include <cuda_fp16.h>
#include <stdint.h>

#define FP8R_DEVICE static __device__ __forceinline__

/* Two e4m3 codes in the low 16 bits; the lower code becomes the lower half. */
FP8R_DEVICE uint32_t decode_pair(uint32_t codes)
{
#if __CUDA_ARCH__ >= 890
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((uint16_t)codes));
    return halves;
#else
    const uint32_t spread = __byte_perm(codes, 0, 0x1404);  /* each code in the upper byte of a half */
    const uint32_t magnitude = (spread & 0x7F007F00u) >> 1; /* as fp16: the value times 2^-8 */
    const uint32_t halves = (spread & 0x80008000u) | magnitude;
    const __half2 scaled = __hmul2(*(const __half2 *)&halves, __float2half2_rn(256.0f)); /* exact */
    /* NaN, 0x7F, is the one magnitude that carries into bit 14; all exponent bits are set for it. */
    const uint32_t is_nan = (magnitude + 0x00800080u) & 0x40004000u;
    return *(const uint32_t *)&scaled | ((is_nan << 1) - (is_nan >> 4));
#endif
}

/* Four consecutive codes: K elements 0, 1 in *low and 2, 3 in *high. */
template <bool E5M2> FP8R_DEVICE void decode_four(uint32_t codes, uint32_t *low, uint32_t *high)
{
    if (E5M2) { /* the upper byte of an fp16 */
        *low = __byte_perm(codes, 0, 0x1404);
        *high = __byte_perm(codes, 0, 0x3424);
    } else {
        *low = decode_pair(codes);
        *high = decode_pair(codes >> 16);
    }
}

/* sums[16 x 8] += a[16 x 16] b[16 x 8]: products are exact, sums are fp32. */
FP8R_DEVICE void multiply_add(float sums[4], const uint32_t a[4], const uint32_t b[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
