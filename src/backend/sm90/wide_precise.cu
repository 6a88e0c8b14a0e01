/* The wide family, partial sums promoted to fp32: its kernels by tile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/wide_table.cuh"

static constexpr bool promote = true;
static const struct wide_entry entries[] = {FP8R_SM90_WIDE_PRECISE(WIDE_E4M3) FP8R_SM90_WIDE_E5M2(WIDE_E5M2)};

const void *fp8r_sm90_wide_precise(int groups, int tiles, int columns, bool e5m2)
{
    return wide_find(entries, groups, tiles, columns, e5m2);
}
