/* How the wide kernels of one accumulation are found by tile; each has a file of its own, so that they compile
 * side by side. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_TABLE_CUH
#define FP8R_SM90_WIDE_TABLE_CUH

#include "backend/sm90/kernels.h"
#include "backend/sm90/wide.cuh"

struct wide_entry {
    int groups, tiles, columns;
    bool e5m2;
    const void *kernel;
};

/* For the lists of limits.h; `promote` is a constant of the file. */
#define WIDE_E4M3(groups, tiles, columns)                                                                    \
    {groups, tiles, columns, false,                                                                          \
     (const void *)wide<groups, tiles, columns, promote, FP8R_WGMMA_E4M3_E4M3>},
#define WIDE_E5M2(groups, tiles, columns)                                                                    \
    {groups, tiles, columns, true,                                                                           \
     (const void *)wide<groups, tiles, columns, promote, FP8R_WGMMA_E5M2_E4M3>},

template <int COUNT>
static const void *wide_find(const struct wide_entry (&entries)[COUNT], int groups, int tiles, int columns,
                             bool e5m2)
{
    for (const struct wide_entry &entry : entries)
        if (entry.groups == groups && entry.tiles == tiles && entry.columns == columns && entry.e5m2 == e5m2)
            return entry.kernel;
    return NULL;
}

#endif
