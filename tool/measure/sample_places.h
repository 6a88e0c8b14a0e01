/* Which elements of a large result are looked at: one in every tile, the corners of tiles, the last row and
 * column. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SAMPLE_PLACES_H
#define FP8R_SAMPLE_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "measure/verify.h"

/* At least `wanted` (1 to 2^40) places of a [batch, rows, cols] result, all of them where there are not four
 * times as many, ordered by batch, then column, then row. Owned by the caller (free); NULL when out of
 * memory. */
struct fp8r_place *fp8r_sample_places(int64_t batch, int64_t rows, int64_t cols, int64_t wanted,
                                      uint64_t seed, size_t *count);

#endif
