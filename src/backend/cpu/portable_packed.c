/* Many rows, plain C for any processor: one chain an element in ascending k. Products of two codes are exact
 * in fp32 (4 + 4 bits of mantissa), so a fused and an unfused multiply-add agree, and this file, the AVX2 one
 * and the AVX-512 one have the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { ROWS = 4, COLUMNS = 8 };

typedef float quad __attribute__((vector_size(16)));

/* One line along k, spread out to the pitch of its panel. */
static void look_up(const float *table, const uint8_t *codes, int64_t count, float *to, int64_t pitch)
{
    int64_t i = 0;
    for (; i < count; i++)
        to[i * pitch] = table[codes[i]];
    for (; i % FP8R_CPU_BLOCK; i++)
        to[i * pitch] = 0.0f;
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    for (int64_t r = 0; r < rows; r++)
        look_up(form == FP8R_CPU_A_E5M2 ? tables->e5m2 : tables->e4m3, codes + r * stride, count,
                (float *)panel + r, rows);
}

static void decode_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                     int64_t columns, int64_t count, void *panel)
{
    for (int64_t c = 0; c < COLUMNS; c++)
        look_up(tables->e4m3, codes + (c < columns ? c : columns - 1) * stride, count, (float *)panel + c,
                COLUMNS);
}

ALWAYS_INLINE void packed_rows(int rows, int64_t count, const float *a, const float *b, float *sums,
                               int64_t ld, bool first)
{
    quad sum[ROWS][2] = {0};
    for (int r = 0; r < rows && !first; r++)
        memcpy(sum[r], sums + r * ld, sizeof sum[r]);
    for (int64_t i = 0; i < count; i++, a += rows, b += COLUMNS) {
        quad column[2];
        memcpy(column, b, sizeof column);
        for (int r = 0; r < rows; r++) {
            sum[r][0] += a[r] * column[0];
            sum[r][1] += a[r] * column[1];
        }
    }
    for (int r = 0; r < rows; r++)
        memcpy(sums + r * ld, sum[r], sizeof sum[r]);
}

#include "backend/cpu/packed_panels.h"

const struct fp8r_cpu_kernel fp8r_cpu_portable_packed = {
    .numerics = "cpu:fp32x1",
    .needs = "a processor",
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 4,
    .vector_codes = 1,
    .decode_a = decode_a,
    .decode_b = decode_b,
    .packed = packed,
    .epilogue = epilogue,
};
