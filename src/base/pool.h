/* The thread pool: one parallel loop at a time, the caller works too, a busy pool makes the loop run in its caller.
 * Threads start with the first loop and are started anew after a fork.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_POOL_H
#define FP8R_BASE_POOL_H

#include <stdint.h>

struct fp8r_pool;

/* threads >= 1 counts the caller. NULL when out of memory. */
struct fp8r_pool *fp8r_pool_create(int threads);
void fp8r_pool_destroy(struct fp8r_pool *pool);

/* The `parallel` of fp8r_services: pool is a struct fp8r_pool. */
void fp8r_pool_parallel(void *pool, int64_t count, void (*task)(void *arg, int64_t index), void *arg);

#endif
