/* Quantising a strided line of values to e4m3: the definition that every device and backend keeps byte for byte.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_QUANTIZE_H
#define FP8R_BASE_QUANTIZE_H

#include <stdint.h>

#include "base/convert.h"

/* The code of a value that is already divided by its scale. Which sign infinity times 0 gives to its NaN is the
 * processor's choice: all NaN get the code 0x7F. */
static inline uint8_t fp8r_quantize_code(float scaled)
{
    const uint8_t code = fp8r_to_e4m3(scaled);
    return code == 0xFFu ? 0x7Fu : code;
}

/* Largest magnitude among count values at in + i*stride, NaN not counted, and at least `so_far`. */
float fp8r_quantize_amax(const void *in, int32_t dtype, int64_t stride, int64_t count, float so_far);

/* max(amax / 448, 2^-126); 1 where amax is 0. */
float fp8r_quantize_scale(float amax);

/* codes[i*code_stride] = e4m3(in[i*stride] * inverse), inverse = 1 / scale in fp32. */
void fp8r_quantize_codes(const void *in, int32_t dtype, int64_t stride, int64_t count, float inverse, uint8_t *codes,
                         int64_t code_stride);

/* One row of a product's bf16/fp16 a: packed codes; returns the scale. */
float fp8r_quantize_row(const void *in, int32_t dtype, int64_t stride, int64_t count, uint8_t *codes);

/* The same for a processor: other instructions, the same bytes. */
struct fp8r_quantizer {
    float (*amax)(const void *in, int32_t dtype, int64_t stride, int64_t count, float so_far);
    void (*codes)(const void *in, int32_t dtype, int64_t stride, int64_t count, float inverse, uint8_t *codes,
                  int64_t code_stride);
};

/* The quantiser for these FP8R_CPU_* features. */
const struct fp8r_quantizer *fp8r_quantizer_of(uint32_t cpu_features);

/* NULL where this build is for another architecture. */
const struct fp8r_quantizer *fp8r_quantizer_avx512(void);

float fp8r_quantizer_row(const struct fp8r_quantizer *quantizer, const void *in, int32_t dtype, int64_t stride, int64_t count,
                         uint8_t *codes);

#endif
