/* e4m3 and e5m2 codes to fp32 with AVX-512: their bits become those of an fp16, which vcvtph2ps widens
 * without an assist. An e4m3 code, exponent and mantissa moved to those of an fp16, is its value / 256,
 * subnormals included; the factor is given back on a's side, where it is a power of two and hence exact.
 * Included by ISA files only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_AVX512_CODES_H
#define FP8R_BACKEND_CPU_AVX512_CODES_H

#include <immintrin.h>

#include "backend/cpu/kernel.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* What makes a's panel right: b's factor, and a's own. */
ALWAYS_INLINE float avx512_factor_a(int form)
{
    return form == FP8R_CPU_A_E5M2 ? 0x1p8f : 0x1p16f;
}

ALWAYS_INLINE __mmask64 avx512_tail_mask(int64_t codes)
{
    return codes >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << codes) - 1;
}

/* Sixteen-bit lanes s eeee mmm 0... -> s s eeee mmm 0... -> s 0 eeee mmm 0... */
ALWAYS_INLINE __m512i avx512_to_fp16(__m512i lanes)
{
    return _mm512_and_si512(_mm512_srai_epi16(lanes, 1), _mm512_set1_epi16((short)0xBFFF));
}

/* 0x3F80 is where the NaN code 0x7F goes: an fp16 NaN instead. */
ALWAYS_INLINE __m512i avx512_patch_nan(__m512i lanes)
{
    const __m512i nan = _mm512_set1_epi16(0x3F80), bits = _mm512_set1_epi16(0x7FFF);
    return _mm512_mask_mov_epi16(lanes, _mm512_cmpeq_epi16_mask(_mm512_and_si512(lanes, bits), nan), bits);
}

/* 64 codes in order, each in the upper half of a 16-bit lane: two vectors' worth, to memory, from where the
 * conversion needs no shuffle. */
ALWAYS_INLINE void avx512_spread(__m512i codes, bool e5m2, bool patch, uint16_t *halves)
{
    codes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), codes);
    __m512i low = _mm512_unpacklo_epi8(_mm512_setzero_si512(), codes);
    __m512i high = _mm512_unpackhi_epi8(_mm512_setzero_si512(), codes);
    if (!e5m2) {
        low = avx512_to_fp16(low);
        high = avx512_to_fp16(high);
    }
    if (!e5m2 && patch) {
        low = avx512_patch_nan(low);
        high = avx512_patch_nan(high);
    }
    _mm512_store_si512(halves, low);
    _mm512_store_si512(halves + 32, high);
}

ALWAYS_INLINE __m512 avx512_widen(const uint16_t *halves)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)halves));
}

#endif
