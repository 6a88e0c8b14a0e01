/* fp8 codes to fp32 through a table of 256 values: exact, for every type and stride, and without the arithmetic on
 * subnormals that decoding by multiplication costs (or loses, where the caller's thread flushes them).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_BLAS_DECODE_H
#define FP8R_BACKEND_BLAS_DECODE_H

#include <stdint.h>

/* table[code] = its value; dtype e4m3 or e5m2. */
void fp8r_blas_table_init(float table[256], int32_t dtype);

/* values[i] = table[codes[i * stride]] */
void fp8r_blas_decode(const float table[256], const uint8_t *codes, int64_t stride, int64_t count, float *values);

/* The same for values of a bf16 or fp16 row, quantised with inverse = 1 / scale on the way. */
void fp8r_blas_decode_half(const float table[256], const void *in, int32_t dtype, int64_t stride, int64_t count,
                           float inverse, float *values);

#endif
