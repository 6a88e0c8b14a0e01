/* A kernel that lets its dependents start at once, sleeps, and only then writes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_LATE_COPY_H
#define FP8R_TESTS_LATE_COPY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queues it: after about `late_us`, `bytes` of `from` are copied to `to`. Returns a cudaError_t. */
int late_copy(void *to, const void *from, size_t bytes, unsigned late_us, void *stream);

#ifdef __cplusplus
}
#endif
#endif
