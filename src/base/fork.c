/* Counting forks, and locks that survive them. Each user compares its own number with the count: a handler that walks
 * all locks would have to take them in one order with those of the vendor libraries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fork.h"

#include <sched.h>

_Atomic uint64_t fp8r_fork_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add(&fp8r_fork_count, 1);
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

void fp8r_fork_watch(void)
{
    pthread_once(&once, watch);
}

void fp8r_lock_init(struct fp8r_lock *lock)
{
    fp8r_fork_watch();
    pthread_mutex_init(&lock->mutex, NULL);
    atomic_store(&lock->epoch, 2 * atomic_load(&fp8r_fork_count));
}

void fp8r_lock_fini(struct fp8r_lock *lock)
{
    if (atomic_load(&lock->epoch) == 2 * atomic_load(&fp8r_fork_count)) /* else somebody may hold it who is not here */
        pthread_mutex_destroy(&lock->mutex);
}

/* The first thread of a child that comes here makes the mutex; others wait for that. */
static void renew(struct fp8r_lock *lock, uint64_t present)
{
    uint64_t epoch = atomic_load(&lock->epoch);
    while (epoch != present) {
        if (epoch != present + 1 && atomic_compare_exchange_strong(&lock->epoch, &epoch, present + 1)) {
            pthread_mutex_init(&lock->mutex, NULL);
            atomic_store(&lock->epoch, present);
            return;
        }
        sched_yield();
        epoch = atomic_load(&lock->epoch);
    }
}

void fp8r_lock_take(struct fp8r_lock *lock)
{
    uint64_t present = 2 * atomic_load(&fp8r_fork_count);
    if (atomic_load(&lock->epoch) != present)
        renew(lock, present);
    pthread_mutex_lock(&lock->mutex);
}

void fp8r_lock_give(struct fp8r_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
