/* Conversions between fp32 and the narrow types, in plain integer and fp32 arithmetic, the same bits on every machine.
 * All of them assume the default rounding mode and subnormals that are not flushed.
 *
 * Encodings: e4m3fn = 1.4.3, bias 7, no infinity, S.1111.111 NaN (OCP 8-bit floating point, v1.0); e5m2 = 1.5.2, bias 15,
 * IEEE-like; fp16 = IEEE binary16; bf16 = the upper half of an fp32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_CONVERT_H
#define FP8R_BASE_CONVERT_H

#include <stdint.h>
#include <string.h>

#include <fp8route/fp8route.h>

static inline uint32_t fp8r_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float fp8r_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- Decoding: exact ---- */

static inline float fp8r_from_bf16(uint16_t code)
{
    return fp8r_bits_float((uint32_t)code << 16);
}

static inline float fp8r_from_fp16(uint16_t code)
{
    uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = code & 0x7FFFu;
    if (magnitude >= 0x7C00u) /* Inf and NaN keep their payload */
        return fp8r_bits_float(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
    /* As an fp32 whose exponent is 112 too small; the exact product with 2^112 also turns subnormals into normals. */
    float value = fp8r_bits_float(magnitude << 13) * 0x1p112f;
    return fp8r_bits_float(fp8r_float_bits(value) | sign);
}

static inline float fp8r_from_e5m2(uint8_t code)
{
    return fp8r_from_fp16((uint16_t)(code << 8)); /* e5m2 is the upper half of an fp16 */
}

static inline float fp8r_from_e4m3(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7Fu;
    if (magnitude == 0x7Fu)
        return fp8r_bits_float(sign | 0x7FC00000u);
    float value = fp8r_bits_float(magnitude << 20) * 0x1p120f; /* exponent 120 = 127 - 7 too small, as above */
    return fp8r_bits_float(fp8r_float_bits(value) | sign);
}

/* ---- Encoding: round to nearest even, once ---- */

static inline uint16_t fp8r_to_bf16(float value)
{
    uint32_t bits = fp8r_float_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* quiet: the payload's upper bits could all be 0 */
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* Overflow gives infinity. */
static inline uint16_t fp8r_to_fp16(float value)
{
    uint32_t bits = fp8r_float_bits(value), sign = bits >> 16 & 0x8000u;
    bits &= 0x7FFFFFFFu;
    if (bits > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | (bits >> 13 & 0x3FFu));
    if (bits >= 0x477FF000u) /* 65520: half way between the largest finite and the next, which rounds up */
        return (uint16_t)(sign | 0x7C00u);
    if (bits < 0x38800000u) { /* below 2^-14: 0.5 has an ulp of 2^-24, so the sum rounds to subnormal steps */
        float shifted = fp8r_bits_float(bits) + 0.5f;
        return (uint16_t)(sign | (fp8r_float_bits(shifted) - fp8r_float_bits(0.5f)));
    }
    return (uint16_t)(sign | (((bits + 0xFFFu + (bits >> 13 & 1u)) >> 13) - (112u << 10)));
}

/* Saturating: anything beyond 448, infinity too, becomes +-448; NaN stays NaN. 464 is the tie that would round away. */
static inline uint8_t fp8r_to_e4m3(float value)
{
    uint32_t bits = fp8r_float_bits(value), sign = bits >> 24 & 0x80u;
    bits &= 0x7FFFFFFFu;
    /* Three candidates without branches, so that loops over this function vectorise. 2^14 has an ulp of 2^-9, the step
     * of e4m3's subnormals. */
    uint32_t normal = ((bits + 0x7FFFFu + (bits >> 20 & 1u)) >> 20) - (120u << 3);
    uint32_t small = fp8r_float_bits(fp8r_bits_float(bits < 0x3C800000u ? bits : 0u) + 0x1p14f) - 0x46800000u;
    uint32_t code = bits < 0x3C800000u ? small : normal; /* 2^-6: smallest normal */
    code = bits >= 0x43E00000u ? 0x7Eu : code;           /* 448 and beyond */
    code = bits > 0x7F800000u ? 0x7Fu : code;
    return (uint8_t)(sign | code);
}

/* ---- By type ---- */

static inline float fp8r_load(const void *data, int64_t index, int32_t dtype)
{
    switch (dtype) {
    case FP8R_DTYPE_E4M3:
        return fp8r_from_e4m3(((const uint8_t *)data)[index]);
    case FP8R_DTYPE_E5M2:
        return fp8r_from_e5m2(((const uint8_t *)data)[index]);
    case FP8R_DTYPE_BF16:
        return fp8r_from_bf16(((const uint16_t *)data)[index]);
    case FP8R_DTYPE_FP16:
        return fp8r_from_fp16(((const uint16_t *)data)[index]);
    default:
        return ((const float *)data)[index];
    }
}

/* dtype is a wide one, or e4m3. */
static inline void fp8r_store(void *data, int64_t index, int32_t dtype, float value)
{
    switch (dtype) {
    case FP8R_DTYPE_E4M3:
        ((uint8_t *)data)[index] = fp8r_to_e4m3(value);
        break;
    case FP8R_DTYPE_BF16:
        ((uint16_t *)data)[index] = fp8r_to_bf16(value);
        break;
    case FP8R_DTYPE_FP16:
        ((uint16_t *)data)[index] = fp8r_to_fp16(value);
        break;
    default:
        ((float *)data)[index] = value;
    }
}

#endif
