/* e4m3 and e5m2 codes to bf16 with AVX-512 VBMI: two byte tables of 128 entries. Exact: both fit bf16, their
 * subnormals are bf16 normals, Inf and NaN are Inf and NaN. Included by ISA files only.
 *
 * vdpbf16ps treats subnormals as zero and flushes small results. Neither happens to such operands: codes are
 * normal or zero, every product is a multiple of 2^-25, and so is every sum. The scales come later, in
 * ordinary arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_AVX512BF16_CODES_H
#define FP8R_BACKEND_CPU_AVX512BF16_CODES_H

#include <immintrin.h>

#include "backend/cpu/kernel.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

struct bf16_tables {
    __m512i low0, low1, high0, high1;
};

ALWAYS_INLINE struct bf16_tables bf16_tables_load(const struct fp8r_cpu_tables *tables, int form)
{
    int which = form == FP8R_CPU_A_E5M2;
    return (struct bf16_tables){
        _mm512_loadu_si512(tables->bf16_low[which]), _mm512_loadu_si512(tables->bf16_low[which] + 64),
        _mm512_loadu_si512(tables->bf16_high[which]), _mm512_loadu_si512(tables->bf16_high[which] + 64)};
}

/* 64 codes as two vectors of bf16. Bytes are interleaved within 128-bit lanes: even holds codes 0-7, 16-23,
 * 32-39, 48-55, odd the others. */
ALWAYS_INLINE void bf16_decode(const struct bf16_tables *tables, __m512i codes, __m512i *even, __m512i *odd)
{
    __m512i low = _mm512_permutex2var_epi8(tables->low0, codes, tables->low1);
    __m512i high = _mm512_permutex2var_epi8(tables->high0, codes, tables->high1);
    /* high | (codes & sign) */
    high = _mm512_ternarylogic_epi32(high, codes, _mm512_set1_epi8((char)0x80), 0xF8);
    *even = _mm512_unpacklo_epi8(low, high);
    *odd = _mm512_unpackhi_epi8(low, high);
}

ALWAYS_INLINE __mmask64 bf16_tail_mask(int64_t codes)
{
    return codes >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << codes) - 1;
}

ALWAYS_INLINE __m512 bf16_multiply_add(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

#endif
