/* The thread pool: every index once, nested and concurrent loops, every thread count.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "support/loop.h"

static void every_index_runs_once(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, MOST};
    (void)state;
    for (int threads = 1; threads <= 9; threads++) {
        struct fp8r_pool *pool = fp8r_pool_create(threads);
        assert_non_null(pool);
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                assert_true(counts_once(pool, sizes[i]));
        fp8r_pool_destroy(pool);
    }
    fp8r_pool_destroy(NULL);
}

/* A pool that was never used has started no thread and ends at once. */
static void unused_pools_end(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        fp8r_pool_destroy(fp8r_pool_create(8));
}

/* Many short loops, one behind the other: a late worker must never take an index of a loop that has ended. */
static void short_loops_follow_each_other(void **state)
{
    struct fp8r_pool *pool = fp8r_pool_create(4);
    (void)state;
    for (int round = 0; round < 3000; round++)
        assert_true(counts_once(pool, 1 + round % 5));
    fp8r_pool_destroy(pool);
}

static void add_index(void *arg, int64_t index)
{
    atomic_fetch_add_explicit((_Atomic int64_t *)arg, index + 1, memory_order_relaxed);
}

/* A worker that comes late to a short loop, while a longer one is being set up behind it, must not take an index that only
 * the longer one has. */
static void longer_loops_follow_shorter_ones(void **state)
{
    (void)state;
    for (int threads = 2; threads <= 4; threads++) {
        struct fp8r_pool *pool = fp8r_pool_create(threads);
        for (int64_t round = 0; round < 100000; round++) {
            _Atomic int64_t sum = 0;
            int64_t count = round % 2 ? 60 : 2;
            fp8r_pool_parallel(pool, count, add_index, (void *)&sum);
            assert_int_equal(sum, count * (count + 1) / 2);
        }
        fp8r_pool_destroy(pool);
    }
}

/* Waits long enough that the workers sleep, then calls again. */
static void sleepers_wake(void **state)
{
    struct fp8r_pool *pool = fp8r_pool_create(3);
    (void)state;
    for (int round = 0; round < 5; round++) {
        assert_true(counts_once(pool, 100));
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    fp8r_pool_destroy(pool);
}

static struct fp8r_pool *shared;

static void *call_often(void *argument)
{
    _Atomic int *faults = argument;
    for (int round = 0; round < 300; round++)
        if (!counts_once(shared, 50))
            atomic_fetch_add(faults, 1);
    return NULL;
}

/* A busy pool makes the other callers do their own work. */
static void several_callers_at_once(void **state)
{
    pthread_t threads[5];
    _Atomic int faults = 0;
    (void)state;
    shared = fp8r_pool_create(3);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &faults), 0);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(faults, 0);
    fp8r_pool_destroy(shared);
}

struct nest {
    struct fp8r_pool *pool;
    _Atomic int64_t inner;
};

static void inner(void *arg, int64_t index)
{
    (void)index;
    atomic_fetch_add(&((struct nest *)arg)->inner, 1);
}

static void outer(void *arg, int64_t index)
{
    (void)index;
    fp8r_pool_parallel(((struct nest *)arg)->pool, 10, inner, arg);
}

/* Not asked for, but it must not hang: the inner loop finds the pool busy and runs where it is. */
static void nested_loops_run_in_place(void **state)
{
    struct nest nest = {.pool = fp8r_pool_create(3)};
    (void)state;
    fp8r_pool_parallel(nest.pool, 20, outer, &nest);
    assert_int_equal(nest.inner, 200);
    fp8r_pool_destroy(nest.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once),
        cmocka_unit_test(unused_pools_end),
        cmocka_unit_test(short_loops_follow_each_other),
        cmocka_unit_test(longer_loops_follow_shorter_ones),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(several_callers_at_once),
        cmocka_unit_test(nested_loops_run_in_place),
    };
    (void)alarm(300); /* a hang is a failure */
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
