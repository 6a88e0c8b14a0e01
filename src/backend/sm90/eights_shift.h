/* Where rows of b by eights begin, for the map and for the kernel that reads it. Shared by host and device code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_EIGHTS_SHIFT_H
#define FP8R_SM90_EIGHTS_SHIFT_H

#include <stdint.h>

/* The copy engine is faster by half at addresses that are a multiple of a sector of the L2 (docs/worklog.md, sm90 30). */
#define FP8R_SM90_SECTOR_BYTES 32

#ifdef __CUDACC__
__host__ __device__
#endif
/* Bytes in front of a row that its class (row % 8) begins in the map, each of whose steps is whole sectors: 0 to 112.
 * first: b's address; pitch: bytes from one row to the next; multiples of 4. */
static inline int fp8r_sm90_eights_shift(uint64_t first, int64_t pitch, int class_)
{
    int shift = (int)(first % FP8R_SM90_SECTOR_BYTES);
    for (int step = 1; step < 8; step *= 2)
        if (class_ & step) shift += (int)(step * (pitch % FP8R_SM90_SECTOR_BYTES) % FP8R_SM90_SECTOR_BYTES);
    return shift;
}

#endif
