/* Few rows, plain C for any processor: codes are looked up, sums are kept in short vectors that compilers map
 * to what there is. Eight chains an element, chain i takes the k with k mod 8 = i.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { LANES = 8, ROWS = 2, COLUMNS = FP8R_CPU_SKINNY_COLUMNS, STEP = FP8R_CPU_BLOCK };

typedef float quad __attribute__((vector_size(16)));

struct chains {
    quad low, high;
};

ALWAYS_INLINE struct chains load(const float *from)
{
    struct chains values;
    memcpy(&values, from, sizeof values);
    return values;
}

/* The tree of all eight-lane kernels: halves, then pairs, then the last two. */
ALWAYS_INLINE float add_lanes(struct chains sum)
{
    quad four = sum.low + sum.high;
    return (four[0] + four[2]) + (four[1] + four[3]);
}

static void look_up(const float *table, const uint8_t *codes, int64_t count, float *to, int64_t pitch)
{
    for (int64_t i = 0; i < STEP; i += LANES, to += pitch * LANES)
        for (int64_t l = 0; l < LANES; l++)
            to[l] = i + l < count ? table[codes[i + l]] : 0.0f;
}

static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    const float *table = form == FP8R_CPU_A_E5M2 ? tables->e5m2 : tables->e4m3;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < count; i += STEP)
            look_up(table, codes + r * stride + i, count - i, (float *)panel + rows * i + r * LANES, rows);
}

/* Codes go through a small panel, a block of K at a time: looking up and multiplying in one loop keeps
 * neither fast. */
ALWAYS_INLINE void skinny_rows(int rows, const struct fp8r_cpu_tables *tables, int64_t k, const float *a,
                               const uint8_t *const b[4], const uint8_t *const ahead[4], float *out,
                               int64_t ld)
{
    struct chains sum[ROWS][COLUMNS] = {0};
    for (int64_t i = 0; i < k; i += STEP) {
        float panel[STEP * COLUMNS];
        for (int c = 0; c < COLUMNS; c++) {
            __builtin_prefetch(ahead[c] + i);
            look_up(tables->e4m3, b[c] + i, k - i, panel + c * LANES, COLUMNS);
        }
        for (int v = 0; v < STEP / LANES; v++, a += rows * LANES)
            for (int r = 0; r < rows; r++) {
                struct chains row = load(a + r * LANES);
                for (int c = 0; c < COLUMNS; c++) {
                    struct chains column = load(panel + (v * COLUMNS + c) * LANES);
                    sum[r][c].low += row.low * column.low;
                    sum[r][c].high += row.high * column.high;
                }
            }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMNS; c++)
            out[r * ld + c] = add_lanes(sum[r][c]);
}

static void skinny(const struct fp8r_cpu_tables *tables, int rows, int64_t k, const void *a,
                   const uint8_t *const b[4], const uint8_t *const ahead[4], float *out, int64_t ld)
{
    if (rows == 1)
        skinny_rows(1, tables, k, a, b, ahead, out, ld);
    else
        skinny_rows(2, tables, k, a, b, ahead, out, ld);
}

const struct fp8r_cpu_kernel fp8r_cpu_portable_skinny = {
    .numerics = "cpu:fp32x8",
    .needs = "a processor",
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 4,
    .vector_codes = LANES,
    .decode_a = decode_a,
    .skinny = skinny,
    .epilogue = epilogue,
};
