/* The thread pool: every index once, nested and concurrent loops, every thread count, fork.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"

enum { MOST = 5000 };

struct loop {
    _Atomic int seen[MOST];
    _Atomic int64_t total;
};

static void count(void *arg, int64_t index)
{
    struct loop *loop = arg;
    atomic_fetch_add(&loop->seen[index], 1);
    atomic_fetch_add(&loop->total, index);
}

static bool counts_once(struct fp8r_pool *pool, int64_t indices)
{
    static _Thread_local struct loop loop;
    memset(&loop, 0, sizeof loop);
    fp8r_pool_parallel(pool, indices, count, &loop);
    for (int64_t i = 0; i < MOST; i++)
        if (loop.seen[i] != (i < indices))
            return false;
    return loop.total == indices * (indices - 1) / 2;
}

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

/* 0 where the child works with the pool as its parent did. */
static int in_child(struct fp8r_pool *pool, int depth)
{
    pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (int round = 0; round < 20; round++)
            good &= counts_once(pool, 200);
        good &= depth == 0 || in_child(pool, depth - 1) == 0;
        fp8r_pool_destroy(pool);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static void children_of_a_fork_have_threads_anew(void **state)
{
    (void)state;
    for (int used = 0; used < 2; used++) {
        struct fp8r_pool *pool = fp8r_pool_create(3);
        if (used)
            assert_true(counts_once(pool, 200));
        assert_int_equal(in_child(pool, 2), 0);
        assert_true(counts_once(pool, 200)); /* and the parent goes on */
        fp8r_pool_destroy(pool);
    }
}

static _Atomic bool stop_calling;

static void *keep_busy(void *argument)
{
    (void)argument;
    while (!atomic_load(&stop_calling))
        (void)counts_once(shared, 30);
    return NULL;
}

/* Forked while another thread's loop holds the pool: the child's loop must not wait for a thread that is not there. */
static void a_fork_in_the_middle_of_a_loop(void **state)
{
    pthread_t thread;
    (void)state;
    shared = fp8r_pool_create(3);
    atomic_store(&stop_calling, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(in_child(shared, 0), 0);
    atomic_store(&stop_calling, true);
    pthread_join(thread, NULL);
    fp8r_pool_destroy(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once),
        cmocka_unit_test(unused_pools_end),
        cmocka_unit_test(short_loops_follow_each_other),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(several_callers_at_once),
        cmocka_unit_test(nested_loops_run_in_place),
        cmocka_unit_test(children_of_a_fork_have_threads_anew),
        cmocka_unit_test(a_fork_in_the_middle_of_a_loop),
    };
    (void)alarm(300); /* a hang is a failure */
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
