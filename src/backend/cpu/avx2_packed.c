/* Many rows, AVX2 with FMA and F16C: one chain an element in ascending k, the bits of portable_packed.c. The
 * factor 256 of the decoding is given back on a's side, exactly.
 *
 * Tile: 6 rows x 2 vectors of columns = 12 chains of 16 registers, two vectors of b, one or two broadcasts of
 * a.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/avx2_codes.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

enum { LANES = 8, STEP = 32, ROWS = 6, COLUMNS = 2 * LANES, LINES = 16 };

/* Sixteen lines (rows of a or columns of b) of 32 codes along k, a vector each -> in 128-bit lane l of vector
 * j the sixteen lines at k = 16 l + j. Four perfect shuffles swap the four bits of the line's number with
 * those of k's place in its lane. */
ALWAYS_INLINE void transpose(__m256i block[LINES])
{
    for (int stage = 0; stage < 4; stage++) {
        __m256i next[LINES];
        for (int i = 0; i < LINES / 2; i++) {
            next[2 * i] = _mm256_unpacklo_epi8(block[i], block[i + 8]);
            next[2 * i + 1] = _mm256_unpackhi_epi8(block[i], block[i + 8]);
        }
        for (int i = 0; i < LINES; i++)
            block[i] = next[i];
    }
}

/* 32 codes of up to sixteen lines, transposed; the last line stands in for those beyond. Never reads past a
 * line's end. */
ALWAYS_INLINE void load_block(const uint8_t *codes, int64_t stride, int64_t lines, int64_t count,
                              __m256i block[LINES])
{
    for (int64_t c = 0; c < LINES; c++) {
        const uint8_t *line = codes + (c < lines ? c : lines - 1) * stride;
        _mm_prefetch((const char *)line + FP8R_CPU_CHUNK, _MM_HINT_T1);
        uint8_t rest[STEP] = {0};
        if (count < STEP) {
            memcpy(rest, line, (size_t)count);
            line = rest;
        }
        block[c] = _mm256_loadu_si256((const __m256i *)line);
    }
    transpose(block);
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    (void)tables;
    float *to = panel;
    const __m256 factor = _mm256_set1_ps(avx2_factor_a(form));
    const __m256i mask =
        _mm256_cmpgt_epi32(_mm256_set1_epi32((int)rows), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    int64_t i = 0;
    for (; i < count; i += STEP, to += STEP * rows) {
        __m256i block[LINES];
        load_block(codes + i, stride, rows, count - i, block);
        for (int j = 0; j < LINES; j++) {
            _Alignas(32) uint16_t halves[STEP];
            avx2_spread(block[j], form == FP8R_CPU_A_E5M2, true, halves);
            for (int l = 0; l < 2; l++)
                _mm256_maskstore_ps(to + (16 * l + j) * rows, mask,
                                    _mm256_mul_ps(avx2_widen(halves + 8 * l), factor));
        }
    }
    if (i % FP8R_CPU_BLOCK) memset(to, 0, (size_t)(STEP * rows) * sizeof *to);
}

static void decode_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                     int64_t columns, int64_t count, void *panel)
{
    (void)tables;
    float *to = panel;
    int64_t i = 0;
    for (; i < count; i += STEP, to += STEP * COLUMNS) {
        __m256i block[LINES];
        load_block(codes + i, stride, columns, count - i, block);
        for (int j = 0; j < LINES; j++) {
            _Alignas(32) uint16_t halves[STEP]; /* columns 0-7 of two k, columns 8-15 of them */
            avx2_spread(block[j], false, true, halves);
            for (int l = 0; l < 2; l++)
                for (int h = 0; h < 2; h++)
                    _mm256_store_ps(to + (16 * l + j) * COLUMNS + LANES * h,
                                    avx2_widen(halves + 16 * h + 8 * l));
        }
    }
    if (i % FP8R_CPU_BLOCK) memset(to, 0, STEP * COLUMNS * sizeof *to);
}

typedef __m256 vector;
typedef __m256 elements;
typedef float element;
enum { ELEMENT_CODES = 1 };

ALWAYS_INLINE vector vector_zero(void)
{
    return _mm256_setzero_ps();
}

ALWAYS_INLINE vector vector_load(const float *from)
{
    return _mm256_load_ps(from);
}

ALWAYS_INLINE void vector_store(float *to, vector sums)
{
    _mm256_store_ps(to, sums);
}

ALWAYS_INLINE elements elements_load(const element *from)
{
    return _mm256_load_ps(from);
}

ALWAYS_INLINE elements elements_repeat(const element *from)
{
    return _mm256_broadcast_ss(from);
}

ALWAYS_INLINE vector multiply_add(vector sum, elements repeated, elements loaded)
{
    return _mm256_fmadd_ps(repeated, loaded, sum);
}

#include "backend/cpu/packed_tile.h"
#include "backend/cpu/packed_panels.h"

const struct fp8r_cpu_kernel fp8r_cpu_avx2_packed = {
    .numerics = "cpu:fp32x1",
    .needs = "AVX2, FMA and F16C",
    .features = FP8R_CPU_AVX2 | FP8R_CPU_FMA | FP8R_CPU_F16C,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 4,
    .vector_codes = 1,
    .decode_a = decode_a,
    .decode_b = decode_b,
    .packed = packed,
    .epilogue = epilogue,
};
