/* Few rows, AVX2 with FMA and F16C: eight chains an element, lane i takes the k with k mod 8 = i, as
 * portable_skinny.c does; products of two codes are exact in fp32 and the factor of the decoding is a power
 * of two, so both have the same bits. NaN codes of b would decode as 480 / 256 here: the kernel notices and
 * repairs its results.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/avx2_codes.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/nan_columns.h"
#include <fp8route/backend.h>

enum { LANES = 8, STEP = 32, ROWS = 3, COLUMNS = FP8R_CPU_SKINNY_COLUMNS };

ALWAYS_INLINE void decode_step(int form, __m256i codes, float *to, int64_t pitch)
{
    _Alignas(32) uint16_t halves[STEP];
    avx2_spread(codes, form == FP8R_CPU_A_E5M2, true, halves);
    for (int v = 0; v < STEP / LANES; v++)
        _mm256_store_ps(to + v * pitch * LANES, _mm256_mul_ps(avx2_widen(halves + avx2_place(v)),
                                                              _mm256_set1_ps(avx2_factor_a(form))));
}

static void decode_row(int form, const uint8_t *codes, int64_t count, float *to, int64_t pitch)
{
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP, to += pitch * STEP)
        decode_step(form, _mm256_loadu_si256((const __m256i *)(codes + i)), to, pitch);
    for (; i < count || i % FP8R_CPU_BLOCK; i += STEP, to += pitch * STEP) {
        uint8_t rest[STEP] = {0};
        if (i < count) memcpy(rest, codes + i, (size_t)(count - i));
        decode_step(form, _mm256_loadu_si256((const __m256i *)rest), to, pitch);
    }
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    (void)tables;
    for (int64_t r = 0; r < rows; r++)
        decode_row(form, codes + r * stride, count, (float *)panel + r * LANES, rows);
}

/* The tree of portable_skinny.c for four columns at once. */
ALWAYS_INLINE void add_lanes(const __m256 *sums, float *out)
{
    __m128 four[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        four[c] = _mm_add_ps(_mm256_castps256_ps128(sums[c]), _mm256_extractf128_ps(sums[c], 1));
    __m128 ab = _mm_add_ps(_mm_unpacklo_ps(four[0], four[1]), _mm_unpackhi_ps(four[0], four[1]));
    __m128 cd = _mm_add_ps(_mm_unpacklo_ps(four[2], four[3]), _mm_unpackhi_ps(four[2], four[3]));
    _mm_storeu_ps(out, _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)));
}

/* 32 codes of column c times all rows. The fp16s go through memory, in level 1 just written: vcvtph2ps from
 * memory leaves the shuffle port free, from a register's upper half it would need it twice. */
ALWAYS_INLINE void skinny_step(int rows, __m256i codes, const float *a, int c, __m256 sum[ROWS][COLUMNS],
                               __m256i *most)
{
    _Alignas(32) uint16_t halves[STEP];
    *most = _mm256_max_epu8(*most, _mm256_and_si256(codes, _mm256_set1_epi8(0x7F)));
    avx2_spread(codes, false, false, halves);
    for (int v = 0; v < STEP / LANES; v++) {
        __m256 column = avx2_widen(halves + avx2_place(v));
        for (int r = 0; r < rows; r++)
            sum[r][c] = _mm256_fmadd_ps(_mm256_load_ps(a + (v * rows + r) * LANES), column, sum[r][c]);
    }
}

ALWAYS_INLINE void skinny_rows(int rows, int64_t k, const float *a, const uint8_t *const b[4],
                               const uint8_t *const ahead[4], float *out, int64_t ld)
{
    __m256 sum[ROWS][COLUMNS];
    __m256i most = _mm256_setzero_si256();
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMNS; c++)
            sum[r][c] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + STEP <= k; i += STEP, a += rows * STEP)
        for (int c = 0; c < COLUMNS; c++) {
            _mm_prefetch((const char *)(ahead[c] + i), _MM_HINT_T0);
            skinny_step(rows, _mm256_loadu_si256((const __m256i *)(b[c] + i)), a, c, sum, &most);
        }
    for (int c = 0; c < COLUMNS && i < k; c++) {
        uint8_t rest[STEP] = {0};
        memcpy(rest, b[c] + i, (size_t)(k - i));
        skinny_step(rows, _mm256_loadu_si256((const __m256i *)rest), a, c, sum, &most);
    }
    for (int r = 0; r < rows; r++)
        add_lanes(sum[r], out + r * ld);
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(most, _mm256_set1_epi8(0x7F)))) mark_nan_columns(rows, k, b, out, ld);
}

static void skinny(const struct fp8r_cpu_tables *tables, int rows, int64_t k, const void *a,
                   const uint8_t *const b[4], const uint8_t *const ahead[4], float *out, int64_t ld)
{
    (void)tables;
    if (rows == 1)
        skinny_rows(1, k, a, b, ahead, out, ld);
    else if (rows == 2)
        skinny_rows(2, k, a, b, ahead, out, ld);
    else
        skinny_rows(3, k, a, b, ahead, out, ld);
}

const struct fp8r_cpu_kernel fp8r_cpu_avx2_skinny = {
    .numerics = "cpu:fp32x8",
    .needs = "AVX2, FMA and F16C",
    .features = FP8R_CPU_AVX2 | FP8R_CPU_FMA | FP8R_CPU_F16C,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 4,
    .vector_codes = LANES,
    .decode_a = decode_a,
    .skinny = skinny,
    .epilogue = epilogue,
};
