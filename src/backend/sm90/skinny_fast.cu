/* The skinny family, raw tensor core accumulation: its kernels by width.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/kernels.h"
#include "backend/sm90/skinny.cuh"

const void *fp8r_sm90_skinny_fast(int tokens, bool e5m2)
{
    switch (tokens) {
#define KERNEL(width)                                                                                        \
    case width:                                                                                              \
        return e5m2 ? (const void *)skinny<width, false, FP8R_WGMMA_E4M3_E5M2>                               \
                    : (const void *)skinny<width, false, FP8R_WGMMA_E4M3_E4M3>;
        FP8R_SM90_SKINNY_FAST(KERNEL)
#undef KERNEL
    default:
        return NULL;
    }
}

const void *fp8r_sm90_skinny_halves(bool bf16)
{
    constexpr int tokens = FP8R_SM90_SKINNY_HALVES_TOKENS;
    return bf16 ? (const void *)skinny<tokens, false, FP8R_WGMMA_E4M3_E4M3, SKINNY_BF16>
                : (const void *)skinny<tokens, false, FP8R_WGMMA_E4M3_E4M3, SKINNY_FP16>;
}
