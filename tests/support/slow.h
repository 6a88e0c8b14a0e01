/* The oracle's own arithmetic: conversions written from the formats' definitions, with ldexp and search instead of bit
 * tricks, so that they share no mistake with the library's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_SLOW_H
#define FP8R_TESTS_SUPPORT_SLOW_H

#include <stdint.h>

/* The value of a code of any FP8R_DTYPE_*. */
double slow_decode(int32_t dtype, uint32_t code);

/* The code nearest to value, ties to even; e4m3 saturates, the others overflow to infinity. NaN gives a NaN. */
uint32_t slow_encode(int32_t dtype, double value);

/* Element `index` of data. */
double slow_load(const void *data, int64_t index, int32_t dtype);

/* The distance between neighbouring values around `value`. */
double slow_ulp(int32_t dtype, double value);

int slow_bytes(int32_t dtype);

#endif
