/* Few rows, AVX-512 (F, BW, DQ, VL) in fp32: sixteen chains an element, lane i takes the k with k mod 16 = i.
 * NaN codes of b would decode as 480 / 256 here: the kernel notices and repairs its results.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512_codes.h"
#include "backend/cpu/avx512_lanes.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/nan_columns.h"
#include <fp8route/backend.h>

enum { LANES = 16, STEP = FP8R_CPU_BLOCK, ROWS = 6, COLUMNS = FP8R_CPU_SKINNY_COLUMNS };

static void decode_row(int form, const uint8_t *codes, int64_t count, float *to, int64_t pitch)
{
    _Alignas(64) uint16_t halves[STEP];
    for (int64_t i = 0; i < count; i += STEP, to += pitch * STEP) {
        avx512_spread(_mm512_maskz_loadu_epi8(avx512_tail_mask(count - i), codes + i),
                      form == FP8R_CPU_A_E5M2, true, halves);
        for (int v = 0; v < STEP / LANES; v++)
            _mm512_store_ps(to + v * pitch * LANES, _mm512_mul_ps(avx512_widen(halves + v * LANES),
                                                                  _mm512_set1_ps(avx512_factor_a(form))));
    }
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    (void)tables;
    for (int64_t r = 0; r < rows; r++)
        decode_row(form, codes + r * stride, count, (float *)panel + r * LANES, rows);
}

ALWAYS_INLINE void skinny_step(int rows, __m512i codes, const float *a, int c, __m512 sum[ROWS][COLUMNS],
                               __m512i *most)
{
    _Alignas(64) uint16_t halves[STEP];
    *most = _mm512_max_epu8(*most, _mm512_and_si512(codes, _mm512_set1_epi8(0x7F)));
    avx512_spread(codes, false, false, halves);
    for (int v = 0; v < STEP / LANES; v++) {
        __m512 column = avx512_widen(halves + v * LANES);
        for (int r = 0; r < rows; r++)
            sum[r][c] = _mm512_fmadd_ps(_mm512_load_ps(a + (v * rows + r) * LANES), column, sum[r][c]);
    }
}

ALWAYS_INLINE void skinny_rows(int rows, int64_t k, const float *a, const uint8_t *const b[4],
                               const uint8_t *const ahead[4], float *out, int64_t ld)
{
    __m512 sum[ROWS][COLUMNS];
    __m512i most = _mm512_setzero_si512();
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMNS; c++)
            sum[r][c] = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + STEP <= k; i += STEP, a += rows * STEP)
        for (int c = 0; c < COLUMNS; c++) {
            _mm_prefetch((const char *)(ahead[c] + i), _MM_HINT_T0);
            skinny_step(rows, _mm512_loadu_si512(b[c] + i), a, c, sum, &most);
        }
    for (int c = 0; c < COLUMNS && i < k; c++)
        skinny_step(rows, _mm512_maskz_loadu_epi8(avx512_tail_mask(k - i), b[c] + i), a, c, sum, &most);
    for (int r = 0; r < rows; r++)
        add_lanes(sum[r], out + r * ld);
    if (_mm512_cmpeq_epi8_mask(most, _mm512_set1_epi8(0x7F))) mark_nan_columns(rows, k, b, out, ld);
}

static void skinny(const struct fp8r_cpu_tables *tables, int rows, int64_t k, const void *a,
                   const uint8_t *const b[4], const uint8_t *const ahead[4], float *out, int64_t ld)
{
    (void)tables;
    switch (rows) {
    case 1:
        skinny_rows(1, k, a, b, ahead, out, ld);
        break;
    case 2:
        skinny_rows(2, k, a, b, ahead, out, ld);
        break;
    case 3:
        skinny_rows(3, k, a, b, ahead, out, ld);
        break;
    case 4:
        skinny_rows(4, k, a, b, ahead, out, ld);
        break;
    case 5:
        skinny_rows(5, k, a, b, ahead, out, ld);
        break;
    default:
        skinny_rows(6, k, a, b, ahead, out, ld);
    }
}

const struct fp8r_cpu_kernel fp8r_cpu_avx512_skinny = {
    .numerics = "cpu:fp32x16",
    .needs = "AVX-512 (F, BW, DQ, VL)",
    .features = FP8R_CPU_AVX512,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 4,
    .vector_codes = LANES,
    .decode_a = decode_a,
    .skinny = skinny,
    .epilogue = epilogue,
};
