/* The quantiser for AVX-512 (F, BW, DQ, VL): the portable one's code, compiled for it.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__AVX512F__) && defined(__AVX512BW__)
#include "base/quantize_line.h"

static const struct fp8r_quantizer avx512 = {line_amax, line_codes};

const struct fp8r_quantizer *fp8r_quantizer_avx512(void)
{
    return &avx512;
}
#else
#include <stddef.h>

#include "base/quantize.h"

const struct fp8r_quantizer *fp8r_quantizer_avx512(void)
{
    return NULL;
}
#endif
