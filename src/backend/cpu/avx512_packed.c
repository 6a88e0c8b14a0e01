/* Many rows, AVX-512 (F, BW, DQ, VL) in fp32: one chain an element in ascending k, the bits of
 * portable_packed.c.
 *
 * Tile: 14 rows x 2 vectors of columns = 28 chains in registers, two vectors of b and one broadcast of a make
 * 31 of 32; 28 fused multiply-adds need 16 loads, two an add pair: both multiply ports can be kept busy.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512_codes.h"
#include "backend/cpu/avx512_sums.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

enum { LANES = 16, STEP = FP8R_CPU_BLOCK, ROWS = 14, COLUMNS = 2 * LANES, LINES = 16 };

/* Sixteen lines (rows of a or columns of b) of 64 codes along k, a vector each -> in 128-bit lane l of vector
 * j the sixteen lines at k = 16 l + j. Four perfect shuffles swap the four bits of the line's number with
 * those of k's place in its lane. */
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

/* 64 steps of a panel: `pitch` values each, of which the masks' are written. */
struct target {
    float *to;
    int64_t pitch;
    __mmask8 low, high;
    __m256 factor;
};

ALWAYS_INLINE void widen_block(const __m512i block[LINES], bool e5m2, bool patch, bool all,
                               const struct target *target)
{
    for (int j = 0; j < LINES; j++) {
        _Alignas(64) uint16_t halves[2][32]; /* lines 0-7 of four k, lines 8-15 of them */
        for (int h = 0; h < 2; h++) {
            __m512i lanes = h ? _mm512_unpackhi_epi8(_mm512_setzero_si512(), block[j])
                              : _mm512_unpacklo_epi8(_mm512_setzero_si512(), block[j]);
            lanes = e5m2 ? lanes : avx512_to_fp16(lanes);
            _mm512_store_si512(halves[h], patch && !e5m2 ? avx512_patch_nan(lanes) : lanes);
        }
        for (int l = 0; l < 4; l++) {
            float *to = target->to + (16 * l + j) * target->pitch;
            __m256 low = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(halves[0] + 8 * l)));
            __m256 high = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(halves[1] + 8 * l)));
            if (all) {
                _mm256_store_ps(to, low);
                _mm256_store_ps(to + 8, high);
            } else {
                _mm256_mask_storeu_ps(to, target->low, _mm256_mul_ps(low, target->factor));
                _mm256_mask_storeu_ps(to + 8, target->high, _mm256_mul_ps(high, target->factor));
            }
        }
    }
}

/* Up to sixteen lines of up to 64 codes; the last one stands in for those beyond. True where a NaN code (of
 * e4m3) is among them: rare enough to look first and to patch only then. */
ALWAYS_INLINE bool load_block(const uint8_t *codes, int64_t stride, int64_t lines, int64_t count,
                              __m512i block[LINES])
{
    __m512i most = _mm512_setzero_si512();
    for (int64_t c = 0; c < LINES; c++) {
        const uint8_t *line = codes + (c < lines ? c : lines - 1) * stride;
        _mm_prefetch((const char *)line + FP8R_CPU_CHUNK, _MM_HINT_T1);
        block[c] = _mm512_maskz_loadu_epi8(avx512_tail_mask(count), line);
        most = _mm512_max_epu8(most, _mm512_and_si512(block[c], _mm512_set1_epi8(0x7F)));
    }
    return _mm512_cmpeq_epi8_mask(most, _mm512_set1_epi8(0x7F)) != 0;
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    (void)tables;
    uint32_t mask = (1u << rows) - 1;
    struct target target = {.to = panel,
                            .pitch = rows,
                            .low = (__mmask8)mask,
                            .high = (__mmask8)(mask >> 8),
                            .factor = _mm256_set1_ps(avx512_factor_a(form))};
    for (int64_t i = 0; i < count; i += STEP, target.to += STEP * rows) {
        __m512i block[LINES];
        (void)load_block(codes + i, stride, rows, count - i, block);
        transpose(block);
        widen_block(block, form == FP8R_CPU_A_E5M2, true, false, &target);
    }
}

static void decode_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                     int64_t columns, int64_t count, void *panel)
{
    (void)tables;
    for (int64_t first = 0; first < COLUMNS && first < columns; first += LINES)
        for (int64_t i = 0; i < count; i += STEP) {
            struct target target = {.to = (float *)panel + i * COLUMNS + first, .pitch = COLUMNS};
            __m512i block[LINES];
            bool nan = load_block(codes + first * stride + i, stride, columns - first, count - i, block);
            transpose(block);
            if (nan)
                widen_block(block, false, true, true, &target);
            else
                widen_block(block, false, false, true, &target);
        }
}

typedef __m512 elements;
typedef float element;
enum { ELEMENT_CODES = 1 };

ALWAYS_INLINE elements elements_load(const element *from)
{
    return _mm512_load_ps(from);
}

ALWAYS_INLINE elements elements_repeat(const element *from)
{
    return _mm512_set1_ps(*from);
}

ALWAYS_INLINE vector multiply_add(vector sum, elements repeated, elements loaded)
{
    return _mm512_fmadd_ps(repeated, loaded, sum);
}

#include "backend/cpu/packed_tile.h"
#include "backend/cpu/packed_panels.h"

const struct fp8r_cpu_kernel fp8r_cpu_avx512_packed = {
    .numerics = "cpu:fp32x1",
    .needs = "AVX-512 (F, BW, DQ, VL)",
    .features = FP8R_CPU_AVX512,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 4,
    .vector_codes = 1,
    .decode_a = decode_a,
    .decode_b = decode_b,
    .packed = packed,
    .epilogue = epilogue,
};
