/* The one definition of what happens to a sum: scale_b, scale_a, bias, each rounded to fp32, then one rounding to out's
 * type. This order is what cuBLASLt's row-wise mode computes; every backend keeps it bit for bit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_EPILOGUE_H
#define FP8R_BASE_EPILOGUE_H

#include "base/convert.h"

/* Absent scales are 1 and an absent bias is skipped, not added as 0: -0 would become +0. Compiled without contraction. */
static inline float fp8r_epilogue(float sum, float scale_b, float scale_a, const float *bias)
{
    float result = sum * scale_b;
    result = result * scale_a;
    if (bias)
        result = result + *bias;
    return result;
}

#endif
