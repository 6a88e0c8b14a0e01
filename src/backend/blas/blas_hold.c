/* Holding a BLAS library to one thread while products of ours run in it.
 *
 * Why one: the parallelism is our pool's, a panel a task. A library's own threads would be a second set that fights for
 * the same cores; OpenMP builds hang in a child of fork once the parent has used them; and a decoded panel stays in the
 * cache of the core that multiplies it. Beside each other, two products take two threads' worth, not two pools'.
 *
 * While the library is held, products that the rest of the process gives it run on one thread too. A library without
 * any control of its threads (reference BLAS has no threads; ATLAS fixes them at build) is used as it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "backend/blas/blas_library.h"

/* One library a process (the tests' others have no threads), so one state. The lock is held for a few instructions; it
 * also guards a library that must be called by one thread at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int holders;
static bool is_held; /* `before` is what to put back */
static int before;

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Holders of other threads are not here any more. What they held stays down until a hold of this process ends: setting
 * it here could start threads in the middle of fork. */
static void after_fork_child(void)
{
    holders = 0;
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* OpenMP builds of OpenBLAS also set the calling thread's OpenMP number; that one is the thread's own business. */
static void set_process(const struct fp8r_blas *library, int threads)
{
    int own = library->thread.set ? library->thread.get() : 0;
    library->process.set(threads);
    if (library->thread.set)
        library->thread.set(own);
}

void fp8r_blas_hold(const struct fp8r_blas *library)
{
    if (!library->process.set)
        return;
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
    if (holders++ == 0 && !is_held) {
        before = library->process.get();
        is_held = before != 1;
        if (is_held)
            set_process(library, 1);
    }
    pthread_mutex_unlock(&lock);
}

void fp8r_blas_release(const struct fp8r_blas *library)
{
    if (!library->process.set)
        return;
    pthread_mutex_lock(&lock);
    if (--holders == 0 && is_held) {
        if (library->process.get() == 1) /* else somebody has set it meanwhile, and that counts */
            set_process(library, before);
        is_held = false;
    }
    pthread_mutex_unlock(&lock);
}

/* Returns what to put back; 0 = nothing. */
static int hold_thread(const struct fp8r_blas *library)
{
    if (library->swap)
        return library->swap(1);
    if (!library->thread.set)
        return 0;
    int threads = library->thread.get();
    if (threads == 1)
        return 0;
    library->thread.set(1);
    return threads;
}

static void release_thread(const struct fp8r_blas *library, int threads)
{
    if (library->swap)
        (void)library->swap(threads); /* 0 = follow the process again */
    else if (threads != 0)
        library->thread.set(threads);
}

void fp8r_blas_multiply(const struct fp8r_blas *library, int trans_a, int trans_b, int m, int n, int k, const float *a,
                        int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    int threads = hold_thread(library);
    if (library->one_at_a_time) {
        pthread_once(&fork_once, watch_forks);
        pthread_mutex_lock(&lock);
    }
    library->sgemm(FP8R_BLAS_ROW_MAJOR, trans_a, trans_b, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
    if (library->one_at_a_time)
        pthread_mutex_unlock(&lock);
    release_thread(library, threads);
}
