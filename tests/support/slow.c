/* Every format is sign, exponent, mantissa; a table holds the widths, and what the topmost exponent means.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/slow.h"

#include <math.h>
#include <string.h>

#include <fp8route/fp8route.h>

struct format {
    int exponent_bits, mantissa_bits, bias;
    int has_infinity;
};

static struct format format_of(int32_t dtype)
{
    switch (dtype) {
    case FP8R_DTYPE_E4M3:
        return (struct format){4, 3, 7, 0};
    case FP8R_DTYPE_E5M2:
        return (struct format){5, 2, 15, 1};
    case FP8R_DTYPE_BF16:
        return (struct format){8, 7, 127, 1};
    case FP8R_DTYPE_FP16:
        return (struct format){5, 10, 15, 1};
    default:
        return (struct format){8, 23, 127, 1};
    }
}

double slow_decode(int32_t dtype, uint32_t code)
{
    struct format f = format_of(dtype);
    uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
    uint32_t top = (1u << f.exponent_bits) - 1, exponent = code >> f.mantissa_bits & top;
    double sign = code >> (f.exponent_bits + f.mantissa_bits) & 1 ? -1.0 : 1.0;
    if (f.has_infinity && exponent == top)
        return mantissa ? NAN : sign * INFINITY;
    if (!f.has_infinity && exponent == top && mantissa == (1u << f.mantissa_bits) - 1)
        return NAN;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
    return sign * ldexp(mantissa + (1u << f.mantissa_bits), (int)exponent - f.bias - f.mantissa_bits);
}

/* Positive codes ascend with their values: binary search for the largest that is not above. */
uint32_t slow_encode(int32_t dtype, double value)
{
    struct format f = format_of(dtype);
    uint32_t sign = signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
    uint32_t top = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    uint32_t largest = f.has_infinity ? top - 1 : top + (1u << f.mantissa_bits) - 2;
    double magnitude = fabs(value);
    if (isnan(value))
        return sign | (f.has_infinity ? top | 1u << (f.mantissa_bits - 1) : largest + 1);
    uint32_t low = 0, high = largest;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (slow_decode(dtype, middle) <= magnitude)
            low = middle;
        else
            high = middle - 1;
    }
    double below = slow_decode(dtype, low);
    double above = low < largest ? slow_decode(dtype, low + 1)
                                 : below + (below - slow_decode(dtype, low - 1)); /* what would come next */
    double down = magnitude - below, up = above - magnitude;
    if (down > up || (!(down < up) && (low & 1)))
        low++;
    return sign | (low > largest && !f.has_infinity ? largest : low);
}

double slow_load(const void *data, int64_t index, int32_t dtype)
{
    uint32_t code = 0;
    uint16_t half;
    const unsigned char *at = (const unsigned char *)data + index * slow_bytes(dtype);
    if (slow_bytes(dtype) == 1) {
        code = *at;
    } else if (slow_bytes(dtype) == 2) {
        memcpy(&half, at, 2);
        code = half;
    } else {
        memcpy(&code, at, 4);
    }
    return slow_decode(dtype, code);
}

double slow_ulp(int32_t dtype, double value)
{
    struct format f = format_of(dtype);
    int exponent;
    (void)frexp(value, &exponent); /* |value| in [2^(exponent-1), 2^exponent) */
    int least = 1 - f.bias;
    return ldexp(1.0, (exponent - 1 > least ? exponent - 1 : least) - f.mantissa_bits);
}

int slow_bytes(int32_t dtype)
{
    return dtype == FP8R_DTYPE_FP32 ? 4 : dtype == FP8R_DTYPE_BF16 || dtype == FP8R_DTYPE_FP16 ? 2 : 1;
}
