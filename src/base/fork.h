/* What a fork leaves behind: the child has one thread, and the locks as they happened to be.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_FORK_H
#define FP8R_BASE_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* How many forks lie between the first call of fp8r_fork_watch in an ancestor and this process. */
extern _Atomic uint64_t fp8r_fork_count;

/* Counts forks from now on; any number of calls. */
void fp8r_fork_watch(void);

/* A mutex that a child of fork finds free, even where another thread of its parent held it. What it guards must be fit
 * for use at every moment. */
struct fp8r_lock {
    pthread_mutex_t mutex;
    _Atomic uint64_t epoch; /* 2 * the fork count that mutex belongs to, + 1 while it is made anew */
};

void fp8r_lock_init(struct fp8r_lock *lock);
void fp8r_lock_fini(struct fp8r_lock *lock);
void fp8r_lock_take(struct fp8r_lock *lock);
void fp8r_lock_give(struct fp8r_lock *lock);

#endif
