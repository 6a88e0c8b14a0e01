/* Few rows, AVX-512 with VBMI and BF16: vdpbf16ps multiplies 32 codes at a time into sixteen chains of pairs.
 * The order of k is permuted within 64 codes, in the same way for both operands.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512_lanes.h"
#include "backend/cpu/avx512bf16_codes.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

enum { VECTOR_BYTES = 64, ROWS = 6, COLUMNS = FP8R_CPU_SKINNY_COLUMNS };

static void decode_row(const struct bf16_tables *bytes, const uint8_t *codes, int64_t count, char *to,
                       int64_t pitch)
{
    for (int64_t i = 0; i < count; i += FP8R_CPU_BLOCK, to += 2 * pitch * VECTOR_BYTES) {
        __m512i even, odd;
        bf16_decode(bytes, _mm512_maskz_loadu_epi8(bf16_tail_mask(count - i), codes + i), &even, &odd);
        _mm512_store_si512(to, even);
        _mm512_store_si512(to + pitch * VECTOR_BYTES, odd);
    }
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    struct bf16_tables bytes = bf16_tables_load(tables, form);
    for (int64_t r = 0; r < rows; r++)
        decode_row(&bytes, codes + r * stride, count, (char *)panel + r * VECTOR_BYTES, rows);
}

ALWAYS_INLINE void skinny_block(int rows, const struct bf16_tables *bytes, __m512i codes, const char *a,
                                int c, __m512 sum[ROWS][COLUMNS])
{
    __m512i even, odd;
    bf16_decode(bytes, codes, &even, &odd);
    for (int r = 0; r < rows; r++)
        sum[r][c] = bf16_multiply_add(sum[r][c], _mm512_load_si512(a + r * VECTOR_BYTES), even);
    for (int r = 0; r < rows; r++)
        sum[r][c] = bf16_multiply_add(sum[r][c], _mm512_load_si512(a + (rows + r) * VECTOR_BYTES), odd);
}

ALWAYS_INLINE void skinny_rows(int rows, const struct fp8r_cpu_tables *tables, int64_t k, const char *a,
                               const uint8_t *const b[4], const uint8_t *const ahead[4], float *out,
                               int64_t ld)
{
    struct bf16_tables bytes = bf16_tables_load(tables, FP8R_CPU_B_E4M3);
    __m512 sum[ROWS][COLUMNS];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMNS; c++)
            sum[r][c] = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + FP8R_CPU_BLOCK <= k; i += FP8R_CPU_BLOCK, a += 2 * rows * VECTOR_BYTES)
        for (int c = 0; c < COLUMNS; c++) {
            _mm_prefetch((const char *)(ahead[c] + i), _MM_HINT_T0);
            skinny_block(rows, &bytes, _mm512_loadu_si512(b[c] + i), a, c, sum);
        }
    if (i < k)
        for (int c = 0; c < COLUMNS; c++)
            skinny_block(rows, &bytes, _mm512_maskz_loadu_epi8(bf16_tail_mask(k - i), b[c] + i), a, c, sum);
    for (int r = 0; r < rows; r++)
        add_lanes(sum[r], out + r * ld);
}

static void skinny(const struct fp8r_cpu_tables *tables, int rows, int64_t k, const void *a,
                   const uint8_t *const b[4], const uint8_t *const ahead[4], float *out, int64_t ld)
{
    switch (rows) {
    case 1:
        skinny_rows(1, tables, k, a, b, ahead, out, ld);
        break;
    case 2:
        skinny_rows(2, tables, k, a, b, ahead, out, ld);
        break;
    case 3:
        skinny_rows(3, tables, k, a, b, ahead, out, ld);
        break;
    case 4:
        skinny_rows(4, tables, k, a, b, ahead, out, ld);
        break;
    case 5:
        skinny_rows(5, tables, k, a, b, ahead, out, ld);
        break;
    default:
        skinny_rows(6, tables, k, a, b, ahead, out, ld);
    }
}

const struct fp8r_cpu_kernel fp8r_cpu_avx512bf16_skinny = {
    .numerics = "cpu:bf16x16",
    .needs = "AVX-512 with VBMI and BF16",
    .features = FP8R_CPU_AVX512 | FP8R_CPU_AVX512_VBMI | FP8R_CPU_AVX512_BF16,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 2,
    .vector_codes = 32,
    .decode_a = decode_a,
    .skinny = skinny,
    .epilogue = epilogue,
};
