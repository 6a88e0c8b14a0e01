/* The thread pool. A loop is published by writing its fields and then the ticket: (epoch, next index) in one word. A
 * worker takes an index by compare-and-swap on the ticket, so a late worker can never take one of a loop that has ended,
 * and the fields of a loop cannot change while one of its indices is taken and not yet done.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/fork.h"
#include "base/sizes.h"

enum {
    SPIN_LIMIT = 400,       /* about 20-50 us of pauses: the next product of a layer usually comes sooner */
    LOOP_LIMIT = 1 << 30    /* indices a ticket can count */
};

struct fp8r_pool {
    _Atomic int threads; /* the caller counted */
    int started;         /* workers running, guarded by `owner` */
    _Atomic uint64_t owner; /* 2 * fork count + 1 while a loop runs */
    _Atomic uint64_t ticket; /* epoch << 32 | next index */
    _Atomic int64_t count, remaining;
    void (*_Atomic task)(void *, int64_t);
    void *_Atomic arg;
    _Atomic int sleepers;
    _Atomic bool stop;
    uint64_t generation; /* fork count that the workers belong to */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t *workers;
};

/* Runs indices of the present loop until none is left. */
static void drain(struct fp8r_pool *pool)
{
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    for (;;) {
        int64_t index = (int64_t)(ticket & UINT32_MAX);
        if (index >= atomic_load_explicit(&pool->count, memory_order_acquire))
            return;
        void (*task)(void *, int64_t) = atomic_load_explicit(&pool->task, memory_order_relaxed);
        void *arg = atomic_load_explicit(&pool->arg, memory_order_relaxed);
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket + 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        task(arg, index);
        atomic_fetch_sub_explicit(&pool->remaining, 1, memory_order_acq_rel);
        ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
}

static uint64_t epoch_of(struct fp8r_pool *pool)
{
    return atomic_load(&pool->ticket) >> 32;
}

/* Waits for an epoch other than `seen`; false when the pool ends. */
static bool await(struct fp8r_pool *pool, uint64_t seen)
{
    for (int spin = 0; spin < SPIN_LIMIT; spin++) {
        if (epoch_of(pool) != seen || atomic_load(&pool->stop))
            return !atomic_load(&pool->stop);
        fp8r_spin_hint();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (epoch_of(pool) == seen && !atomic_load(&pool->stop))
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
    return !atomic_load(&pool->stop);
}

static void *work(void *argument)
{
    struct fp8r_pool *pool = argument;
    uint64_t seen = 0;
    while (await(pool, seen)) {
        seen = epoch_of(pool);
        drain(pool);
    }
    return NULL;
}

/* Starts the workers that are missing. A machine that gives fewer makes the pool smaller, not wrong. */
static void start(struct fp8r_pool *pool)
{
    while (pool->started < pool->threads - 1) {
        if (pthread_create(&pool->workers[pool->started], NULL, work, pool) != 0) {
            pool->threads = pool->started + 1;
            return;
        }
        pool->started++;
    }
}

/* In a child the workers are gone and the lock may be held by one of them: both are made anew. */
static void renew(struct fp8r_pool *pool, uint64_t generation)
{
    pool->generation = generation;
    pool->started = 0;
    atomic_store(&pool->sleepers, 0);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
}

/* Makes this caller the one whose loop runs. */
static bool acquire(struct fp8r_pool *pool, uint64_t generation)
{
    uint64_t owner = atomic_load_explicit(&pool->owner, memory_order_acquire), mine = 2 * generation + 1;
    while (owner != mine) { /* free, or held by a thread that a fork left behind */
        if (atomic_compare_exchange_weak_explicit(&pool->owner, &owner, mine, memory_order_acq_rel,
                                                  memory_order_acquire))
            return true;
    }
    return false;
}

static void run_loop(struct fp8r_pool *pool, int64_t count, void (*task)(void *, int64_t), void *arg)
{
    /* Close the ticket first: a late worker of the last loop may hold the index at which that one ended, and the new count
     * may be larger. Its compare-and-swap fails, since whoever reads the new count also sees the closed ticket. */
    atomic_store(&pool->ticket, epoch_of(pool) << 32 | UINT32_MAX);
    atomic_store_explicit(&pool->count, count, memory_order_release);
    atomic_store_explicit(&pool->remaining, count, memory_order_relaxed);
    atomic_store_explicit(&pool->task, task, memory_order_relaxed);
    atomic_store_explicit(&pool->arg, arg, memory_order_relaxed);
    atomic_store(&pool->ticket, (epoch_of(pool) + 1) << 32);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    drain(pool);
    for (int spin = 0; atomic_load_explicit(&pool->remaining, memory_order_acquire) > 0; spin++) {
        if (spin < SPIN_LIMIT)
            fp8r_spin_hint();
        else
            sched_yield();
    }
}

void fp8r_pool_parallel(void *argument, int64_t count, void (*task)(void *arg, int64_t index), void *arg)
{
    struct fp8r_pool *pool = argument;
    uint64_t generation = atomic_load_explicit(&fp8r_fork_count, memory_order_relaxed);
    if (count <= 1 || count > LOOP_LIMIT ||
        atomic_load_explicit(&pool->threads, memory_order_relaxed) == 1 || !acquire(pool, generation)) {
        for (int64_t i = 0; i < count; i++)
            task(arg, i);
        return;
    }
    if (pool->generation != generation)
        renew(pool, generation);
    start(pool);
    run_loop(pool, count, task, arg);
    atomic_store_explicit(&pool->owner, 2 * generation, memory_order_release);
}

struct fp8r_pool *fp8r_pool_create(int threads)
{
    fp8r_fork_watch();
    struct fp8r_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->workers = calloc((size_t)fp8r_size_max(threads, 1), sizeof *pool->workers);
    if (!pool->workers) {
        free(pool);
        return NULL;
    }
    pool->threads = threads;
    atomic_store(&pool->ticket, (uint64_t)1 << 32 | UINT32_MAX);
    uint64_t generation = atomic_load(&fp8r_fork_count);
    atomic_store(&pool->owner, 2 * generation);
    renew(pool, generation);
    return pool;
}

void fp8r_pool_destroy(struct fp8r_pool *pool)
{
    if (!pool)
        return;
    if (pool->generation == atomic_load(&fp8r_fork_count)) {
        pthread_mutex_lock(&pool->mutex);
        atomic_store(&pool->stop, true);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
        for (int i = 0; i < pool->started; i++)
            pthread_join(pool->workers[i], NULL);
        pthread_mutex_destroy(&pool->mutex);
        pthread_cond_destroy(&pool->wake);
    }
    free(pool->workers);
    free(pool);
}
