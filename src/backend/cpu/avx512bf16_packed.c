/* Many rows, AVX-512 with VBMI and BF16: vdpbf16ps takes two k a step into one chain an element. Ahead of the
 * fp32 kernel where the processor gives it the rate of a fused multiply-add, behind where it gives it a
 * quarter.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512bf16_pairs.h"
#include "backend/cpu/avx512_sums.h"
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

typedef __m512i elements;
typedef int32_t element;
enum { ELEMENT_CODES = 2 };

ALWAYS_INLINE elements elements_load(const element *from)
{
    return _mm512_load_si512(from);
}

ALWAYS_INLINE elements elements_repeat(const element *from)
{
    return _mm512_set1_epi32(*from);
}

ALWAYS_INLINE vector multiply_add(vector sum, elements repeated, elements loaded)
{
    return bf16_multiply_add(sum, repeated, loaded);
}

#include "backend/cpu/packed_tile.h"
#include "backend/cpu/packed_panels.h"

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
