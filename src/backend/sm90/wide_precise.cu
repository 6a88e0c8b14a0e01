/* The wide family, partial sums promoted to fp32: its kernels by tile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/kernels.h"
#include "backend/sm90/wide.cuh"

struct entry {
    int groups, tiles, columns;
    bool e5m2;
    const void *kernel;
};

static const struct entry entries[] = {
#define KERNEL(groups, tiles, columns)                                                                       \
    {groups, tiles, columns, false, (const void *)wide<groups, tiles, columns, true, FP8R_WGMMA_E4M3_E4M3>},
    FP8R_SM90_WIDE_PRECISE(KERNEL)
#undef KERNEL
#define KERNEL(groups, tiles, columns)                                                                       \
    {groups, tiles, columns, true, (const void *)wide<groups, tiles, columns, true, FP8R_WGMMA_E5M2_E4M3>},
        FP8R_SM90_WIDE_E5M2(KERNEL)
#undef KERNEL
};

const void *fp8r_sm90_wide_precise(int groups, int tiles, int columns, bool e5m2)
{
    for (const struct entry &entry : entries)
        if (entry.groups == groups && entry.tiles == tiles && entry.columns == columns && entry.e5m2 == e5m2)
            return entry.kernel;
    return NULL;
}
