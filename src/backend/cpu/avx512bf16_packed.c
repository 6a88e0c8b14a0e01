/* Many rows, AVX-512 with VBMI and BF16: vdpbf16ps takes two k a step into one chain an element. Ahead of the
 * fp32 kernel where the processor gives it the rate of a fused multiply-add, behind where it gives it a
 * quarter.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512bf16_pairs.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

enum { LANES = 16, ROWS = 14, COLUMNS = 2 * LANES };

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    struct bf16_tables bytes = bf16_tables_load(tables, form);
    bf16_pairs(&bytes, codes, stride, rows, count, (__mmask16)((1u << rows) - 1), panel, rows);
}

static void decode_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                     int64_t columns, int64_t count, void *panel)
{
    bf16_pairs_b(tables, codes, stride, columns, count, panel, COLUMNS);
}

ALWAYS_INLINE void packed_rows(int rows, int64_t count, const int32_t *a, const int32_t *b, float *sums,
                               int64_t ld, bool first)
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

#define CASE(n)                                                                                              \
    case n:                                                                                                  \
        packed_rows(n, count, a, b, sums, ld, first);                                                        \
        break;

static void packed_panel(int rows, int64_t count, const void *a, const void *b, float *sums, int64_t ld,
                         bool first)
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

static void packed(int rows, int64_t count, const void *a, const void *b, int64_t panels, int64_t panel_bytes,
                   float *sums, int64_t ld, bool first)
{
    for (int64_t p = 0; p < panels; p++)
        packed_panel(rows, count, a, (const char *)b + p * panel_bytes, sums + p * COLUMNS, ld, first);
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
