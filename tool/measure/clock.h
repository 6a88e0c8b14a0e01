/* The one clock of all measurements: monotonic nanoseconds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CLOCK_H
#define FP8R_CLOCK_H

#include <stdint.h>

/* Since some fixed point in the past; never goes back. */
int64_t fp8r_clock_ns(void);

#endif
