/* Where the host finds the kernels: by tile, accumulation and type of a. NULL: there is none such.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_KERNELS_H
#define FP8R_SM90_KERNELS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

const void *fp8r_sm90_skinny_fast(int tokens, bool e5m2);
const void *fp8r_sm90_skinny_precise(int tokens, bool e5m2);
const void *fp8r_sm90_skinny_halves(bool bf16); /* which quantise a themselves */
const void *fp8r_sm90_wide_fast(int groups, int tiles, int columns, bool e5m2);
const void *fp8r_sm90_wide_alternating(int tiles, int columns);
const void *fp8r_sm90_wide_swapped(int groups, int tokens);
const void *fp8r_sm90_wide_precise(int groups, int tiles, int columns, bool e5m2);
const void *fp8r_sm90_packed(int groups, int columns, bool promote, bool e5m2);

#ifdef __cplusplus
}
#endif
#endif
