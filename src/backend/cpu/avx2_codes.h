/* e4m3 and e5m2 codes to fp32 with AVX2 and F16C: their bits become those of an fp16, which vcvtph2ps widens
 * without an assist. An e4m3 code, exponent and mantissa moved to those of an fp16, is its value / 256,
 * subnormals included; the factor is given back on a's side, where it is a power of two and hence exact.
 * Included by ISA files only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_AVX2_CODES_H
#define FP8R_BACKEND_CPU_AVX2_CODES_H

#include <immintrin.h>

#include "backend/cpu/kernel.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* What makes a's panel right: b's factor, and a's own. */
ALWAYS_INLINE float avx2_factor_a(int form)
{
    return form == FP8R_CPU_A_E5M2 ? 0x1p8f : 0x1p16f;
}

/* Sixteen-bit lanes s eeee mmm 0... -> s s eeee mmm 0... -> s 0 eeee mmm 0... */
ALWAYS_INLINE __m256i avx2_to_fp16(__m256i lanes)
{
    return _mm256_and_si256(_mm256_srai_epi16(lanes, 1), _mm256_set1_epi16((short)0xBFFF));
}

/* 0x3F80 is where the NaN code 0x7F goes: an fp16 NaN instead. */
ALWAYS_INLINE __m256i avx2_patch_nan(__m256i lanes)
{
    const __m256i nan = _mm256_set1_epi16(0x3F80), bits = _mm256_set1_epi16(0x7FFF);
    return _mm256_or_si256(lanes,
                           _mm256_and_si256(_mm256_cmpeq_epi16(_mm256_and_si256(lanes, bits), nan), bits));
}

/* 32 codes as fp16 bits to memory, from where the conversion needs no shuffle; avx2_place says where they
 * went. */
ALWAYS_INLINE void avx2_spread(__m256i codes, bool e5m2, bool patch, uint16_t *halves)
{
    __m256i low = _mm256_unpacklo_epi8(_mm256_setzero_si256(), codes);
    __m256i high = _mm256_unpackhi_epi8(_mm256_setzero_si256(), codes);
    if (!e5m2) {
        low = avx2_to_fp16(low);
        high = avx2_to_fp16(high);
    }
    if (!e5m2 && patch) {
        low = avx2_patch_nan(low);
        high = avx2_patch_nan(high);
    }
    _mm256_store_si256((__m256i *)halves, low);
    _mm256_store_si256((__m256i *)(halves + 16), high);
}

/* Where codes 8v .. 8v+7 lie: the two unpackings work within 128-bit lanes. */
ALWAYS_INLINE int avx2_place(int v)
{
    return (v & 1) * 16 + (v >> 1) * 8;
}

ALWAYS_INLINE __m256 avx2_widen(const uint16_t *halves)
{
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)halves));
}

#endif
