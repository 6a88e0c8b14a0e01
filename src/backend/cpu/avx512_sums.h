/* The vector of sums that packed_tile.h keeps, for every AVX-512 kernel: sixteen fp32.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_AVX512_SUMS_H
#define FP8R_BACKEND_CPU_AVX512_SUMS_H

#include <immintrin.h>

typedef __m512 vector;

static inline __attribute__((always_inline)) vector vector_zero(void)
{
    return _mm512_setzero_ps();
}

static inline __attribute__((always_inline)) vector vector_load(const float *from)
{
    return _mm512_load_ps(from);
}

static inline __attribute__((always_inline)) void vector_store(float *to, vector sums)
{
    _mm512_store_ps(to, sums);
}

#endif
