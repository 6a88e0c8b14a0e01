/* Panels of pairs: two neighbouring k of a line in one 32-bit lane, as vdpbf16ps and the AMX tiles take them.
 * Included by ISA files only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_AVX512BF16_PAIRS_H
#define FP8R_BACKEND_CPU_AVX512BF16_PAIRS_H

#include "backend/cpu/avx512bf16_codes.h"

enum { BF16_LINES = 16 };

/* Sixteen lines (rows of a or columns of b) of 64 codes along k, a vector each -> in 128-bit lane l of vector
 * j the sixteen lines at k = 16 l + j. Four perfect shuffles swap the four bits of the line's number with
 * those of k's place in its lane. */
ALWAYS_INLINE void bf16_transpose(__m512i block[BF16_LINES])
{
    for (int stage = 0; stage < 4; stage++) {
        __m512i next[BF16_LINES];
        for (int i = 0; i < BF16_LINES / 2; i++) {
            next[2 * i] = _mm512_unpacklo_epi8(block[i], block[i + 8]);
            next[2 * i + 1] = _mm512_unpackhi_epi8(block[i], block[i + 8]);
        }
        for (int i = 0; i < BF16_LINES; i++)
            block[i] = next[i];
    }
}

/* Two neighbouring k, four of each (one a lane), of sixteen lines: pairs of bf16, in four steps of the panel,
 * eight apart. */
ALWAYS_INLINE void bf16_decode_pairs(const struct bf16_tables *bytes, __m512i first, __m512i second,
                                     __mmask16 mask, uint32_t *to, int64_t pitch)
{
    __m512i left[2], right[2];
    bf16_decode(bytes, first, &left[0], &left[1]);
    bf16_decode(bytes, second, &right[0], &right[1]);
    __m512i q0 = _mm512_unpacklo_epi16(left[0], right[0]), q1 = _mm512_unpackhi_epi16(left[0], right[0]);
    __m512i q2 = _mm512_unpacklo_epi16(left[1], right[1]), q3 = _mm512_unpackhi_epi16(left[1], right[1]);
    __m512i low01 = _mm512_shuffle_i32x4(q0, q1, 0x44), high01 = _mm512_shuffle_i32x4(q0, q1, 0xEE);
    __m512i low23 = _mm512_shuffle_i32x4(q2, q3, 0x44), high23 = _mm512_shuffle_i32x4(q2, q3, 0xEE);
    _mm512_mask_storeu_epi32(to, mask, _mm512_shuffle_i32x4(low01, low23, 0x88));
    _mm512_mask_storeu_epi32(to + 8 * pitch, mask, _mm512_shuffle_i32x4(low01, low23, 0xDD));
    _mm512_mask_storeu_epi32(to + 16 * pitch, mask, _mm512_shuffle_i32x4(high01, high23, 0x88));
    _mm512_mask_storeu_epi32(to + 24 * pitch, mask, _mm512_shuffle_i32x4(high01, high23, 0xDD));
}

/* Up to sixteen lines of count codes into a panel of that pitch. */
ALWAYS_INLINE void bf16_pairs(const struct bf16_tables *bytes, const uint8_t *codes, int64_t stride,
                              int64_t lines, int64_t count, __mmask16 mask, uint32_t *to, int64_t pitch)
{
    for (int64_t i = 0; i < count; i += FP8R_CPU_BLOCK, to += FP8R_CPU_BLOCK / 2 * pitch) {
        __m512i block[BF16_LINES];
        for (int64_t c = 0; c < BF16_LINES; c++) {
            const uint8_t *line = codes + (c < lines ? c : lines - 1) * stride + i;
            _mm_prefetch((const char *)line + FP8R_CPU_CHUNK, _MM_HINT_T1);
            block[c] = _mm512_maskz_loadu_epi8(bf16_tail_mask(count - i), line);
        }
        bf16_transpose(block);
        for (int j = 0; j < BF16_LINES; j += 2)
            bf16_decode_pairs(bytes, block[j], block[j + 1], mask, to + j / 2 * pitch, pitch);
    }
}

/* What a packed kernel's decode_b does, for panels of so many columns. */
ALWAYS_INLINE void bf16_pairs_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                                int64_t columns, int64_t count, uint32_t *panel, int64_t panel_columns)
{
    struct bf16_tables bytes = bf16_tables_load(tables, FP8R_CPU_B_E4M3);
    for (int64_t first = 0; first < panel_columns && first < columns; first += BF16_LINES)
        bf16_pairs(&bytes, codes + first * stride, stride, columns - first, count, 0xFFFF, panel + first,
                   panel_columns);
}

#endif
