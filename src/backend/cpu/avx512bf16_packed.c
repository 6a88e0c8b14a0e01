/* Many rows, AVX-512 with VBMI and BF16: vdpbf16ps takes two k a step into one chain an element. Ahead of the fp32 kernel
 * where the processor gives it the rate of a fused multiply-add, behind where it gives it a quarter.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512bf16_codes.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

enum { LANES = 16, STEP = FP8R_CPU_BLOCK, ROWS = 14, COLUMNS = 2 * LANES, LINES = 16 };

/* Sixteen lines (rows of a or columns of b) of 64 codes along k, a vector each -> in 128-bit lane l of vector j the sixteen
 * lines at k = 16 l + j. Four perfect shuffles swap the four bits of the line's number with those of k's place in its lane. */
ALWAYS_INLINE void transpose(__m512i block[LINES])
{
    for (int stage = 0; stage < 4; stage++) {
        __m512i next[LINES];
        for (int i = 0; i < LINES / 2; i++) {
            next[2 * i] = _mm512_unpacklo_epi8(block[i], block[i + 8]);
            next[2 * i + 1] = _mm512_unpackhi_epi8(block[i], block[i + 8]);
        }
        for (int i = 0; i < LINES; i++)
            block[i] = next[i];
    }
}

/* Two neighbouring k, four of each (one a lane), of sixteen lines: pairs of bf16, in four steps of the panel, eight apart. */
ALWAYS_INLINE void decode_pairs(const struct bf16_tables *bytes, __m512i first, __m512i second, __mmask16 mask, uint32_t *to,
                                int64_t pitch)
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
ALWAYS_INLINE void decode_lines(const struct bf16_tables *bytes, const uint8_t *codes, int64_t stride, int64_t lines,
                                int64_t count, __mmask16 mask, uint32_t *to, int64_t pitch)
{
    for (int64_t i = 0; i < count; i += STEP, to += STEP / 2 * pitch) {
        __m512i block[LINES];
        for (int64_t c = 0; c < LINES; c++) {
            const uint8_t *line = codes + (c < lines ? c : lines - 1) * stride + i;
            _mm_prefetch((const char *)line + FP8R_CPU_AHEAD, _MM_HINT_T1);
            block[c] = _mm512_maskz_loadu_epi8(bf16_tail_mask(count - i), line);
        }
        transpose(block);
        for (int j = 0; j < LINES; j += 2)
            decode_pairs(bytes, block[j], block[j + 1], mask, to + j / 2 * pitch, pitch);
    }
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride, int64_t rows,
                     int64_t count, void *panel)
{
    struct bf16_tables bytes = bf16_tables_load(tables, form);
    decode_lines(&bytes, codes, stride, rows, count, (__mmask16)((1u << rows) - 1), panel, rows);
}

static void decode_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride, int64_t columns,
                     int64_t count, void *panel)
{
    struct bf16_tables bytes = bf16_tables_load(tables, FP8R_CPU_B_E4M3);
    for (int64_t first = 0; first < COLUMNS && first < columns; first += LINES)
        decode_lines(&bytes, codes + first * stride, stride, columns - first, count, 0xFFFF, (uint32_t *)panel + first,
                     COLUMNS);
}

ALWAYS_INLINE void packed_rows(int rows, int64_t count, const int32_t *a, const int32_t *b, float *sums, int64_t ld,
                               bool first)
{
    __m512 sum[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        sum[r][0] = first ? _mm512_setzero_ps() : _mm512_load_ps(sums + r * ld);
        sum[r][1] = first ? _mm512_setzero_ps() : _mm512_load_ps(sums + r * ld + LANES);
    }
    for (int64_t i = 0; i < count; i += 2, a += rows, b += COLUMNS) {
        __m512i left = _mm512_load_si512(b), right = _mm512_load_si512(b + LANES);
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            __m512i row = _mm512_set1_epi32(a[r]);
            sum[r][0] = bf16_multiply_add(sum[r][0], row, left);
            sum[r][1] = bf16_multiply_add(sum[r][1], row, right);
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        _mm512_store_ps(sums + r * ld, sum[r][0]);
        _mm512_store_ps(sums + r * ld + LANES, sum[r][1]);
    }
}

#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        packed_rows(n, count, a, b, sums, ld, first);                                                                  \
        break;

static void packed(int rows, int64_t count, const void *a, const void *b, float *sums, int64_t ld, bool first)
{
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
    default:
        packed_rows(ROWS, count, a, b, sums, ld, first);
    }
}

const struct fp8r_cpu_kernel fp8r_cpu_avx512bf16_packed = {
    .numerics = "cpu:bf16x1",
    .needs = "AVX-512 with VBMI and BF16",
    .features = FP8R_CPU_AVX512 | FP8R_CPU_AVX512_VBMI | FP8R_CPU_AVX512_BF16,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 2,
    .vector_codes = 2,
    .decode_a = decode_a,
    .decode_b = decode_b,
    .packed = packed,
    .epilogue = epilogue,
};
