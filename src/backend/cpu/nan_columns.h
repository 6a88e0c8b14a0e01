/* What the skinny kernels that decode NaN codes of b as numbers do once they have seen one: find its columns again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_NAN_COLUMNS_H
#define FP8R_BACKEND_CPU_NAN_COLUMNS_H

#include <stdbool.h>

#include "backend/cpu/kernel.h"
#include "base/convert.h"

/* A NaN code anywhere in a column of b makes the whole column NaN. */
static __attribute__((noinline)) void mark_nan_columns(int rows, int64_t k, const uint8_t *const b[4],
                                                       float *out, int64_t ld)
{
    for (int c = 0; c < FP8R_CPU_SKINNY_COLUMNS; c++) {
        bool nan = false;
        for (int64_t i = 0; i < k; i++)
            nan |= (b[c][i] & 0x7F) == 0x7F;
        for (int r = 0; r < rows && nan; r++)
            out[r * ld + c] = fp8r_bits_float(0x7FC00000u);
    }
}

#endif
