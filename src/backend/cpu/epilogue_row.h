/* A row's epilogue in loops that compilers vectorise; each ISA file includes it and compiles it for its
 * instruction set. It knows the order of base/epilogue.h and nothing of tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_EPILOGUE_ROW_H
#define FP8R_BACKEND_CPU_EPILOGUE_ROW_H

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "backend/cpu/kernel.h"
#include "base/convert.h"

enum { EPILOGUE_BLOCK = 64 };

static inline void epilogue_scale(const struct fp8r_cpu_row *row, int64_t first, int64_t count, const float *sums,
                                  float *restrict values)
{
    const float *scale = row->scale_b, scale_a = row->scale_a;
    if (scale && row->scale_b_stride == 1) {
        for (int64_t i = 0; i < count; i++)
            values[i] = sums[first + i] * scale[first + i] * scale_a;
    } else {
        for (int64_t i = 0; i < count; i++)
            values[i] = sums[first + i] * (scale ? scale[(first + i) * row->scale_b_stride] : 1.0f) * scale_a;
    }
}

static inline void epilogue_bias(const struct fp8r_cpu_row *row, int64_t first, int64_t count, float *restrict values)
{
    if (!row->bias) return;
    if (row->bias_stride == 1 && row->bias_dtype == FP8R_DTYPE_BF16) {
        const uint16_t *bias = (const uint16_t *)row->bias + first;
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] + fp8r_from_bf16(bias[i]);
    } else if (row->bias_stride == 1 && row->bias_dtype == FP8R_DTYPE_FP32) {
        const float *bias = (const float *)row->bias + first;
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] + bias[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] + fp8r_load(row->bias, (first + i) * row->bias_stride, row->bias_dtype);
    }
}

static inline uint16_t epilogue_bf16(float value)
{
    uint32_t bits = fp8r_float_bits(value), rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u : rounded);
}

static inline void epilogue_store(const struct fp8r_cpu_row *row, int64_t first, int64_t count,
                                  const float *values)
{
    if (row->out_stride != 1) {
        for (int64_t i = 0; i < count; i++)
            fp8r_store(row->out, (first + i) * row->out_stride, row->out_dtype, values[i]);
    } else if (row->out_dtype == FP8R_DTYPE_BF16) {
        uint16_t *out = (uint16_t *)row->out + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = epilogue_bf16(values[i]);
    } else { /* fp16: packed fp32 is made in place */
        uint16_t *out = (uint16_t *)row->out + first;
        int64_t i = 0;
#if defined(__F16C__)
        for (; i + 8 <= count; i += 8)
            _mm_storeu_si128((__m128i *)(out + i),
                             _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT));
#endif
        for (; i < count; i++)
            out[i] = fp8r_to_fp16(values[i]);
    }
}

static void epilogue(const struct fp8r_cpu_row *row, const float *sums, int64_t count)
{
    bool in_place = row->out_dtype == FP8R_DTYPE_FP32 && row->out_stride == 1;
    float block[EPILOGUE_BLOCK];
    for (int64_t first = 0; first < count; first += EPILOGUE_BLOCK) {
        int64_t size = count - first < EPILOGUE_BLOCK ? count - first : EPILOGUE_BLOCK;
        float *values = in_place ? (float *)row->out + first : block;
        epilogue_scale(row, first, size, sums, values);
        epilogue_bias(row, first, size, values);
        if (!in_place) epilogue_store(row, first, size, values);
    }
}

#endif
