/* Loading the kernels onto the current device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_LOAD_H
#define FP8R_SM90_LOAD_H

#include <fp8route/backend.h>

/* False with the reason where the device does not take them. */
bool fp8r_sm90_load(fp8r_reason *reason);

#endif
