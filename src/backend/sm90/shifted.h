/* Where the host finds the kernels over rows of b by eights, and the one that copies a. NULL: there is none such.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SHIFTED_H
#define FP8R_SM90_SHIFTED_H

#ifdef __cplusplus
extern "C" {
#endif

const void *fp8r_sm90_shifted(int groups, int tokens);
const void *fp8r_sm90_shifted_copy(void);

#ifdef __cplusplus
}
#endif
#endif
