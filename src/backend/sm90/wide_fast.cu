/* The wide family, raw tensor core accumulation: its kernels by tile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/wide_table.cuh"

static constexpr bool promote = false;
static const struct wide_entry entries[] = {FP8R_SM90_WIDE_FAST(WIDE_E4M3) FP8R_SM90_WIDE_E5M2(WIDE_E5M2)};

const void *fp8r_sm90_wide_fast(int groups, int tiles, int columns, bool e5m2)
{
    return wide_find(entries, groups, tiles, columns, e5m2);
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
