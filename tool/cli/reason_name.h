/* The stable names of the catalogue of refusals.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_REASON_NAME_H
#define FP8R_REASON_NAME_H

#include <stdint.h>

/* "ARCH" for FP8R_REASON_ARCH; "NONE" for 0, NULL for a number that the catalogue has not. */
const char *fp8r_reason_name_of(int32_t code);

#endif
