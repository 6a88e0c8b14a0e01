/* The wide family without the copy engine: its kernels by tile and accumulation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/kernels.h"
#include "backend/sm90/packed.cuh"

struct packed_entry {
    int groups, columns;
    bool promote, e5m2;
    const void *kernel;
};

#define ENTRY(groups, columns, promote, e5m2, types)                                                         \
    {groups, columns, promote, e5m2, (const void *)packed<groups, columns, promote, types>},
#define FAST(groups, columns)    ENTRY(groups, columns, false, false, FP8R_WGMMA_E4M3_E4M3)
#define PRECISE(groups, columns) ENTRY(groups, columns, true, false, FP8R_WGMMA_E4M3_E4M3)
#define E5M2(groups, columns)                                                                                \
    ENTRY(groups, columns, false, true, FP8R_WGMMA_E5M2_E4M3)                                                \
    ENTRY(groups, columns, true, true, FP8R_WGMMA_E5M2_E4M3)

static const struct packed_entry entries[] = {FP8R_SM90_PACKED_FAST(FAST) FP8R_SM90_PACKED_PRECISE(PRECISE)
                                                  FP8R_SM90_PACKED_E5M2(E5M2)};

const void *fp8r_sm90_packed(int groups, int columns, bool promote, bool e5m2)
{
    for (const struct packed_entry &entry : entries)
        if (entry.groups == groups && entry.columns == columns && entry.promote == promote &&
            entry.e5m2 == e5m2)
            return entry.kernel;
    return NULL;
}
