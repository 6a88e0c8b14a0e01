/* How fast this machine's memory can be read: the limit of every product with few rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_READ_SPEED_H
#define FP8R_READ_SPEED_H

#include <stdint.h>

/* The best speed at which any stretch of `bytes` was read, in several passes by so many threads, each over its own part, in
 * GB/s (1e9 bytes). 0 where memory or threads cannot be had. */
double fp8r_read_speed_gbs(int64_t bytes, int threads);

#endif
