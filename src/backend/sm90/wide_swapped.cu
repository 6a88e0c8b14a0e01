/* The wide family with swapped operands: its kernels by tile. SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/kernels.h"
#include "backend/sm90/wide_swapped.cuh"

const void *fp8r_sm90_wide_swapped(int groups, int tokens)
{
#define KERNEL(groups_, parts_, n_)                                                                          \
    if (groups == (groups_) && tokens == (parts_) * (n_))                                                    \
        return (const void *)wide_swapped<groups_, parts_, n_>;
    FP8R_SM90_WIDE_SWAPPED(KERNEL)
#undef KERNEL
    return NULL;
}
