/* Checked arithmetic on sizes that come from users. Every product or sum of user numbers goes through here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_SIZES_H
#define FP8R_BASE_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *result = a * b; false (and *result undefined) on overflow. Arguments are not negative. */
static inline bool fp8r_size_mul(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

static inline bool fp8r_size_add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

/* *offset = (e0-1)*s0 + (e1-1)*s1 + (e2-1)*s2, the last element's place; extents >= 1. */
static inline bool fp8r_size_last(const int64_t extents[3], const int64_t strides[3], int64_t *offset)
{
    int64_t outer, middle, inner, sum;
    return fp8r_size_mul(extents[0] - 1, strides[0], &outer) && fp8r_size_mul(extents[1] - 1, strides[1], &middle) &&
           fp8r_size_mul(extents[2] - 1, strides[2], &inner) && fp8r_size_add(outer, middle, &sum) &&
           fp8r_size_add(sum, inner, offset);
}

static inline int64_t fp8r_size_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t fp8r_size_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The smallest multiple of `unit` that is >= value; the caller knows that it fits. */
static inline int64_t fp8r_size_round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static inline int64_t fp8r_size_blocks(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit;
}

#endif
