/* What the outside backends of the tests have in common: a product in plain loops, one element at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_PLUGINS_LOOPS_H
#define FP8R_TESTS_PLUGINS_LOOPS_H

#include <fp8route/backend.h>

#include <string.h>

static float values[256]; /* of the codes; filled when the list of backends is asked for, before anything runs */

static inline float from_e4m3(int code)
{
    int exponent = code >> 3 & 15, mantissa = code & 7;
    if ((code & 0x7F) == 0x7F) return __builtin_nanf("");
    float value = exponent == 0 ? (float)mantissa / 8 / 64 : 1 + (float)mantissa / 8;
    for (; exponent > 7; exponent--)
        value *= 2;
    for (; exponent > 0 && exponent < 7; exponent++)
        value /= 2;
    return code & 0x80 ? -value : value;
}

static inline void fill_values(void)
{
    for (int code = 0; code < 256; code++)
        values[code] = from_e4m3(code);
}

static inline uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* 1 where the operand is absent. */
static inline float scale_at(const float *scale, const fp8r_operand *operand, int64_t batch, int64_t row,
                             int64_t col)
{
    int64_t at = batch * operand->batch_stride + row * operand->row_stride + col * operand->col_stride;
    return scale ? scale[at] : 1.0f;
}

/* Over the first k_end of K. */
static inline double dot(const fp8r_problem *p, const fp8r_pointers *at, int64_t batch, int64_t row,
                         int64_t col, int64_t k_end)
{
    const uint8_t *a = (const uint8_t *)at->a + batch * p->a.batch_stride + row * p->a.row_stride;
    const uint8_t *b = (const uint8_t *)at->b + batch * p->b.batch_stride + col * p->b.col_stride;
    double sum = 0;
    for (int64_t k = 0; k < k_end; k++)
        sum += (double)values[a[k * p->a.col_stride]] * (double)values[b[k * p->b.row_stride]];
    return sum;
}

static inline int64_t out_index(const fp8r_problem *p, int64_t batch, int64_t row, int64_t col)
{
    return batch * p->out.batch_stride + row * p->out.row_stride + col * p->out.col_stride;
}

#endif
