/* Quantising a line, once for every instruction set: contiguous lines go through fixed blocks that compilers vectorise.
 * Included by one file a set, which is compiled for it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_QUANTIZE_LINE_H
#define FP8R_BASE_QUANTIZE_LINE_H

#include <string.h>

#include "base/convert.h"
#include "base/quantize.h"
#include "base/sizes.h"

enum { BLOCK_ELEMS = 512 };

/* Widens up to a block of values; strided lines take the general path, as fp16 does. */
static void widen(const void *in, int32_t dtype, int64_t stride, int64_t first, int64_t count, float *block)
{
    if (stride == 1 && dtype == FP8R_DTYPE_BF16) {
        const uint16_t *codes = (const uint16_t *)in + first;
        for (int64_t i = 0; i < count; i++)
            block[i] = fp8r_from_bf16(codes[i]);
        return;
    }
    if (stride == 1 && dtype == FP8R_DTYPE_FP32) {
        memcpy(block, (const float *)in + first, (size_t)count * sizeof *block);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        block[i] = fp8r_load(in, (first + i) * stride, dtype);
}

static float line_amax(const void *in, int32_t dtype, int64_t stride, int64_t count, float so_far)
{
    float block[BLOCK_ELEMS];
    /* Magnitudes order like their bits; signed, because few instruction sets compare unsigned lanes. */
    int32_t largest = (int32_t)fp8r_float_bits(so_far);
    for (int64_t first = 0; first < count; first += BLOCK_ELEMS) {
        int64_t size = fp8r_size_min(BLOCK_ELEMS, count - first);
        widen(in, dtype, stride, first, size, block);
        for (int64_t i = 0; i < size; i++) {
            int32_t magnitude = (int32_t)(fp8r_float_bits(block[i]) & 0x7FFFFFFFu);
            magnitude = magnitude > 0x7F800000 ? 0 : magnitude;
            largest = magnitude > largest ? magnitude : largest;
        }
    }
    return fp8r_bits_float((uint32_t)largest);
}

static void line_codes(const void *in, int32_t dtype, int64_t stride, int64_t count, float inverse, uint8_t *codes,
                       int64_t code_stride)
{
    float block[BLOCK_ELEMS];
    uint8_t narrow[BLOCK_ELEMS];
    for (int64_t first = 0; first < count; first += BLOCK_ELEMS) {
        int64_t size = fp8r_size_min(BLOCK_ELEMS, count - first);
        widen(in, dtype, stride, first, size, block);
        for (int64_t i = 0; i < size; i++)
            narrow[i] = fp8r_quantize_code(block[i] * inverse);
        if (code_stride == 1)
            memcpy(codes + first, narrow, (size_t)size);
        for (int64_t i = 0; i < size && code_stride != 1; i++)
            codes[(first + i) * code_stride] = narrow[i];
    }
}

#endif
