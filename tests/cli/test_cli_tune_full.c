/* The full tune from outside: killed again and again it goes on and loses nothing; many at once leave each other alone.
 * Takes a minute or two. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/samples.h"

static char folder[] = "/tmp/fp8route-tune-XXXXXX";
static char routes[64];

static pid_t start(const char *samples, const char *out)
{
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execl(FP8R_PROGRAM, "fp8route", "tune", "--family", "128x256", "256x128", "--m", "1,16,64", "--warm", "--samples", samples,
              "--out", out, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int finish(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Samples, and finished cases, that the folder holds. */
static size_t count_samples(const char *samples, size_t *done)
{
    struct samples all = {0};
    struct fp8r_tool_error error;
    size_t count = 0;
    *done = 0;
    assert_int_equal(samples_read_path(&all, samples, &error), FP8R_EXIT_GOOD);
    for (size_t i = 0; i < all.case_count; i++) {
        *done += all.cases[i].is_done;
        for (int j = 0; j < all.cases[i].count; j++)
            count += all.cases[i].candidates[j].count;
    }
    samples_fini(&all);
    return count;
}

static void wait_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&left, NULL);
}

static void a_kill_loses_nothing(void **state)
{
    (void)state;
    size_t before = 0, done = 0;
    srand(7);
    for (int i = 0; i < 10; i++) {
        pid_t child = start(folder, routes);
        wait_ms(100 + rand() % 1500);
        kill(child, SIGKILL);
        (void)finish(child);
        size_t now = count_samples(folder, &done);
        assert_true(now >= before);
        before = now;
    }
    assert_int_equal(finish(start(folder, routes)), 0);
    size_t whole = count_samples(folder, &done);
    assert_true(whole >= before && done >= 6);
    assert_int_equal(finish(start(folder, routes)), 0); /* nothing is left to do */
    assert_int_equal(count_samples(folder, &done), whole);
}

static void a_signal_ends_it_resumable(void **state)
{
    (void)state;
    char samples[] = "/tmp/fp8route-tune-XXXXXX";
    size_t done;
    assert_non_null(mkdtemp(samples));
    pid_t child = start(samples, routes);
    wait_ms(1500);
    kill(child, SIGINT);
    int code = finish(child);
    assert_true(code == 75 || code == 0); /* 0: it had already finished */
    (void)count_samples(samples, &done);
}

static void many_at_once_leave_each_other_alone(void **state)
{
    (void)state;
    enum { TUNERS = 16 };
    char samples[] = "/tmp/fp8route-tune-XXXXXX";
    pid_t children[TUNERS];
    size_t done;
    assert_non_null(mkdtemp(samples));
    for (int i = 0; i < TUNERS; i++)
        children[i] = start(samples, routes);
    wait_ms(3000);
    kill(children[5], SIGKILL);
    for (int i = 0; i < TUNERS; i++)
        assert_int_equal(finish(children[i]), i == 5 ? -SIGKILL : 0);
    assert_true(count_samples(samples, &done) > 0);
    assert_true(done >= 6);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(routes, sizeof routes, "%s/out.routes", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_loses_nothing),
        cmocka_unit_test(a_signal_ends_it_resumable),
        cmocka_unit_test(many_at_once_leave_each_other_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
