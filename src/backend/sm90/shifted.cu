/* The wide family over rows of b by eights: its kernels by tile. SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/shifted.cuh"
#include "backend/sm90/shifted.h"

const void *fp8r_sm90_shifted(int groups, int tokens)
{
#define KERNEL(groups_, tokens_)                                                                             \
    if (groups == (groups_) && tokens == (tokens_)) return (const void *)shifted<groups_, tokens_>;
    FP8R_SM90_SHIFTED(KERNEL)
#undef KERNEL
    return NULL;
}
