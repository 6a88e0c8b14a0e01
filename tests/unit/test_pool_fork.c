/* The thread pool across fork: threads of the parent do not exist in the child. Apart from the other tests of the pool
 * because the thread sanitizer cannot follow threads that are started behind a fork.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/child.h"
#include "support/loop.h"

enum { THREADS = 3 };

static struct fp8r_pool *shared;

static void meet(void *present, int64_t index)
{
    (void)index;
    atomic_fetch_add((_Atomic int *)present, 1);
    while (atomic_load((_Atomic int *)present) < THREADS)
        sched_yield();
}

/* All threads run. One that is only starting may be inside of the allocator, whose locks the address sanitizer of gcc 12
 * hands to a child as they are. */
static void all_meet(struct fp8r_pool *pool)
{
    _Atomic int present = 0;
    fp8r_pool_parallel(pool, THREADS, meet, &present);
}

/* 0 where the child works with the pool as its parent did. */
static int in_child(struct fp8r_pool *pool, int depth)
{
    pid_t child = child_begin(60);
    if (child == 0) {
        bool good = true;
        for (int round = 0; round < 20; round++)
            good &= counts_once(pool, 200);
        all_meet(pool);
        good &= depth == 0 || in_child(pool, depth - 1) == 0;
        fp8r_pool_destroy(pool);
        _exit(good ? 0 : 1);
    }
    return child_end(child);
}

static void children_of_a_fork_have_threads_anew(void **state)
{
    (void)state;
    for (int used = 0; used < 2; used++) {
        struct fp8r_pool *pool = fp8r_pool_create(THREADS);
        if (used) {
            assert_true(counts_once(pool, 200));
            all_meet(pool);
        }
        assert_int_equal(in_child(pool, 2), 0);
        assert_true(counts_once(pool, 200)); /* and the parent goes on */
        fp8r_pool_destroy(pool);
    }
}

static _Atomic bool is_calling, stop_calling;

static void *keep_busy(void *argument)
{
    (void)argument;
    all_meet(shared);
    atomic_store(&is_calling, true);
    while (!atomic_load(&stop_calling))
        (void)counts_once(shared, 30);
    return NULL;
}

/* Forked while another thread's loop holds the pool: the child's loop must not wait for a thread that is not there. */
static void a_fork_in_the_middle_of_a_loop(void **state)
{
    pthread_t thread;
    (void)state;
    shared = fp8r_pool_create(THREADS);
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, NULL), 0);
    while (!atomic_load(&is_calling))
        sched_yield();
    for (int i = 0; i < 20; i++)
        assert_int_equal(in_child(shared, 0), 0);
    atomic_store(&stop_calling, true);
    pthread_join(thread, NULL);
    fp8r_pool_destroy(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_of_a_fork_have_threads_anew),
        cmocka_unit_test(a_fork_in_the_middle_of_a_loop),
    };
    (void)alarm(300); /* a hang is a failure */
    return cmocka_run_group_tests_name("pool fork", tests, NULL, NULL);
}
