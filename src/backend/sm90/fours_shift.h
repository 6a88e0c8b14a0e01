/* Where rows of b by fours begin, for the map and for the kernel that reads it. Shared by host and device code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_FOURS_SHIFT_H
#define FP8R_SM90_FOURS_SHIFT_H

#include <stdint.h>

#ifdef __CUDACC__
__host__ __device__
#endif
/* Bytes in front of a row that its class (row % 4) begins in the map, which starts at multiples of 16 bytes: 0 to 40. first:
 * b's address; pitch: bytes from one row to the next, a multiple of 4. */
static inline int fp8r_sm90_fours_shift(uint64_t first, int64_t pitch, int class_)
{
    return (int)(first % 16) + (class_ & 1 ? (int)(pitch % 16) : 0) + (class_ & 2 ? (int)(2 * (pitch % 8)) : 0);
}

#endif
