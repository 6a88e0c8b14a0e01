/* A parallel loop that knows whether every index ran once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_LOOP_H
#define FP8R_TESTS_SUPPORT_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/pool.h"

enum { MOST = 5000 };

struct loop {
    _Atomic int seen[MOST];
    _Atomic int64_t total;
};

static inline void count(void *arg, int64_t index)
{
    struct loop *loop = arg;
    atomic_fetch_add(&loop->seen[index], 1);
    atomic_fetch_add(&loop->total, index);
}

static inline bool counts_once(struct fp8r_pool *pool, int64_t indices)
{
    static _Thread_local struct loop loop;
    memset(&loop, 0, sizeof loop);
    fp8r_pool_parallel(pool, indices, count, &loop);
    for (int64_t i = 0; i < MOST; i++)
        if (loop.seen[i] != (i < indices))
            return false;
    return loop.total == indices * (indices - 1) / 2;
}

#endif
