/* The portable quantiser, and which one a processor gets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/quantize.h"

#include <fp8route/backend.h>

#include "base/quantize_line.h"

static const struct fp8r_quantizer portable = {line_amax, line_codes};

const struct fp8r_quantizer *fp8r_quantizer_of(uint32_t cpu_features)
{
    const struct fp8r_quantizer *wide = fp8r_quantizer_avx512();
    return wide && (cpu_features & FP8R_CPU_AVX512) ? wide : &portable;
}

float fp8r_quantize_amax(const void *in, int32_t dtype, int64_t stride, int64_t count, float so_far)
{
    return line_amax(in, dtype, stride, count, so_far);
}

void fp8r_quantize_codes(const void *in, int32_t dtype, int64_t stride, int64_t count, float inverse, uint8_t *codes,
                         int64_t code_stride)
{
    line_codes(in, dtype, stride, count, inverse, codes, code_stride);
}

float fp8r_quantize_scale(float amax)
{
    if (amax == 0.0f)
        return 1.0f;
    float scale = amax / 448.0f;
    return scale > 0x1p-126f ? scale : 0x1p-126f;
}

float fp8r_quantize_row(const void *in, int32_t dtype, int64_t stride, int64_t count, uint8_t *codes)
{
    return fp8r_quantizer_row(&portable, in, dtype, stride, count, codes);
}

float fp8r_quantizer_row(const struct fp8r_quantizer *quantizer, const void *in, int32_t dtype, int64_t stride, int64_t count,
                         uint8_t *codes)
{
    float scale = fp8r_quantize_scale(quantizer->amax(in, dtype, stride, count, 0.0f));
    quantizer->codes(in, dtype, stride, count, 1.0f / scale, codes, 1);
    return scale;
}
