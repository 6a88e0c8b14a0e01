/* The wide family, raw tensor core accumulation: its kernels by tile.
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
    {groups, tiles, columns, false, (const void *)wide<groups, tiles, columns, false, FP8R_WGMMA_E4M3_E4M3>},
    FP8R_SM90_WIDE_FAST(KERNEL)
#undef KERNEL
#define KERNEL(groups, tiles, columns)                                                                       \
    {groups, tiles, columns, true, (const void *)wide<groups, tiles, columns, false, FP8R_WGMMA_E5M2_E4M3>},
        FP8R_SM90_WIDE_E5M2(KERNEL)
#undef KERNEL
};

const void *fp8r_sm90_wide_fast(int groups, int tiles, int columns, bool e5m2)
{
    for (const struct entry &entry : entries)
        if (entry.groups == groups && entry.tiles == tiles && entry.columns == columns && entry.e5m2 == e5m2)
            return entry.kernel;
    return NULL;
}

const void *fp8r_sm90_wide_alternating(int tiles, int columns)
{
#define KERNEL(tiles_, columns_)                                                                             \
    if (tiles == (tiles_) && columns == (columns_))                                                          \
        return (const void *)wide<2, tiles_, columns_, false, FP8R_WGMMA_E4M3_E4M3, true>;
    FP8R_SM90_WIDE_ALTERNATING(KERNEL)
#undef KERNEL
    return NULL;
}
