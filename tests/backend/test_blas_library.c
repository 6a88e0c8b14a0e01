/* Which BLAS libraries the blas backend takes and why not others, with small libraries of one fault each, and what it does
 * to a library's number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/blas/blas_library.h"
#include "base/reason.h"
#include "support/child.h"

static void takes_and_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        enum fp8r_blas_verdict verdict;
    } lines[] = {{"good", FP8R_BLAS_GOOD},     {"counting", FP8R_BLAS_GOOD}, {"without", FP8R_BLAS_ABSENT},
                 {"missing", FP8R_BLAS_ABSENT}, {"wide", FP8R_BLAS_WIDE},     {"wrong", FP8R_BLAS_WRONG},
                 {"deaf", FP8R_BLAS_WRONG},     {"reading", FP8R_BLAS_WRONG}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char path[512];
        struct fp8r_blas library;
        snprintf(path, sizeof path, "%s%s.so", FP8R_FAKE_BLAS, lines[i].kind);
        if (fp8r_blas_open(path, false, &library) != lines[i].verdict)
            fail_msg("%s was judged otherwise", lines[i].kind);
    }
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        int code;
        const char *words;
    } lines[] = {{"without", FP8R_REASON_LIBRARY_MISSING, "could not be loaded"},
                 {"missing", FP8R_REASON_LIBRARY_MISSING, "could not be loaded"},
                 {"wrong", FP8R_REASON_LIBRARY_BROKEN, "computed a wrong value"},
                 {"wide", FP8R_REASON_LIBRARY_BROKEN, "an LP64 build is needed"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char path[512], subject[640], sentence[800];
        struct fp8r_blas library;
        fp8r_reason reason = {0};
        snprintf(path, sizeof path, "%s%s.so", FP8R_FAKE_BLAS, lines[i].kind);
        assert_false(fp8r_blas_choose(path, &library, subject, sizeof subject, &reason));
        fp8r_reason_sentence(&reason, sentence, sizeof sentence);
        assert_int_equal(reason.code, lines[i].code);
        assert_non_null(strstr(sentence, lines[i].words));
        assert_non_null(strstr(sentence, "FP8ROUTE_BLAS"));
    }
}

static void holds_and_restores_the_count(void **state)
{
    (void)state;
    struct fp8r_blas library;
    assert_int_equal(fp8r_blas_open(FP8R_FAKE_BLAS "counting.so", false, &library), FP8R_BLAS_GOOD);
    assert_string_equal(library.name, "openblas (Fake) 9.8.7");
    assert_int_equal(library.process.get(), 3);
    fp8r_blas_hold(&library);
    fp8r_blas_hold(&library);
    assert_int_equal(library.process.get(), 1);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 1);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 3);
    /* What somebody sets in between counts. */
    fp8r_blas_hold(&library);
    library.process.set(2);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 2);
}

/* A library held at the moment of a fork is put back by the child's own next product. */
static void count_survives_fork(void **state)
{
    (void)state;
    struct fp8r_blas library;
    assert_int_equal(fp8r_blas_open(FP8R_FAKE_BLAS "counting.so", false, &library), FP8R_BLAS_GOOD);
    library.process.set(4);
    fp8r_blas_hold(&library);
    pid_t child = child_begin(60);
    assert_true(child >= 0);
    if (child == 0) {
        fp8r_blas_hold(&library);
        bool held = library.process.get() == 1;
        fp8r_blas_release(&library);
        _exit(held && library.process.get() == 4 ? 0 : 1);
    }
    assert_int_equal(child_end(child), 0);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 4);
}

/* Not the machine's: which one that is, and whether there is one, is its own business. */
static void names_the_file_without_a_version(void **state)
{
    (void)state;
    struct fp8r_blas library;
    assert_int_equal(fp8r_blas_open(FP8R_FAKE_BLAS "good.so", false, &library), FP8R_BLAS_GOOD);
    assert_string_equal(library.name, "fake_blas_good.so");
}

/* Opening a pipe for loading waits until somebody writes to it. */
static void waits_at_no_pipe(void **state)
{
    (void)state;
    char path[64];
    struct fp8r_blas library;
    snprintf(path, sizeof path, "/tmp/fp8r-test-blas-%ld", (long)getpid());
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* ends a process that waits */
    int verdict = (int)fp8r_blas_open(path, false, &library);
    alarm(0);
    unlink(path);
    assert_int_equal(verdict, FP8R_BLAS_ABSENT);
    assert_int_equal(fp8r_blas_open("/dev/null", false, &library), FP8R_BLAS_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_and_refuses),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(waits_at_no_pipe),
        cmocka_unit_test(holds_and_restores_the_count),
        cmocka_unit_test(count_survives_fork),
        cmocka_unit_test(names_the_file_without_a_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
