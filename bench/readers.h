/* Plain readers: how fast can this machine read memory at all, with these threads?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BENCH_READERS_H
#define FP8R_BENCH_READERS_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_READERS = 3 };

extern const char *const bench_reader_names[BENCH_READERS];

/* Reads all bytes (a multiple of 512) and returns something that depends on each. */
uint64_t bench_read(int reader, const void *memory, size_t bytes);

#endif
