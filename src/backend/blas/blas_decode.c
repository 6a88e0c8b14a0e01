/* Decoding by table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/blas/blas_decode.h"

#include "base/convert.h"
#include "base/dtype.h"
#include "base/quantize.h"
#include "base/sizes.h"

enum { CHUNK_ELEMS = 512 };

void fp8r_blas_table_init(float table[256], int32_t dtype)
{
    for (int code = 0; code < 256; code++)
        table[code] = dtype == FP8R_DTYPE_E5M2 ? fp8r_from_e5m2((uint8_t)code) : fp8r_from_e4m3((uint8_t)code);
}

void fp8r_blas_decode(const float table[256], const uint8_t *codes, int64_t stride, int64_t count, float *values)
{
    if (stride == 1) { /* a loop of its own: one load, one look-up and one store an element */
        for (int64_t i = 0; i < count; i++)
            values[i] = table[codes[i]];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = table[codes[i * stride]];
}

void fp8r_blas_decode_half(const float table[256], const void *in, int32_t dtype, int64_t stride, int64_t count,
                           float inverse, float *values)
{
    uint8_t codes[CHUNK_ELEMS];
    for (int64_t first = 0; first < count; first += CHUNK_ELEMS) {
        int64_t size = fp8r_size_min(CHUNK_ELEMS, count - first);
        const uint8_t *from = (const uint8_t *)in + first * stride * fp8r_dtype_bytes(dtype);
        fp8r_quantize_codes(from, dtype, stride, size, inverse, codes, 1);
        fp8r_blas_decode(table, codes, 1, size, values + first);
    }
}
