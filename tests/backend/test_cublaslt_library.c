/* Which cuBLASLt libraries the cublaslt row takes, in which order it looks for them, and why not others, with
 * small libraries of one fault each.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dlfcn.h>

#include <cmocka.h>

#include "backend/cublaslt/cublaslt_library.h"
#include "base/reason.h"
#include "support/child.h"

#define FAKE(kind) FP8R_FAKE_CUBLASLT kind ".so"

static void takes_and_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        enum fp8r_cublaslt_verdict verdict;
    } lines[] = {{FAKE("good"), FP8R_CUBLASLT_GOOD},
                 {FAKE("other"), FP8R_CUBLASLT_GOOD},
                 {FAKE("old"), FP8R_CUBLASLT_OLD},
                 {FAKE("without"), FP8R_CUBLASLT_INCOMPLETE},
                 {FAKE("missing"), FP8R_CUBLASLT_ABSENT}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct fp8r_cublaslt library;
        if (fp8r_cublaslt_open(lines[i].file, false, &library) != lines[i].verdict)
            fail_msg("%s was judged otherwise", lines[i].file);
    }
}

static void knows_version_and_path(void **state)
{
    (void)state;
    struct fp8r_cublaslt library;
    assert_int_equal(fp8r_cublaslt_open(FAKE("other"), false, &library), FP8R_CUBLASLT_GOOD);
    assert_int_equal(library.version, 140203);
    assert_string_equal(library.name, "cublaslt 14.2.3");
    assert_string_equal(library.path, FAKE("other"));
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *named;
        int code;
        const char *words[2];
    } lines[] = {
        {FAKE("missing"), FP8R_REASON_LIBRARY_MISSING, {"FP8ROUTE_CUBLASLT", "could not be loaded"}},
        {FAKE("without"), FP8R_REASON_LIBRARY_MISSING, {"FP8ROUTE_CUBLASLT", "cublasLtMatmulAlgoCheck"}},
        {FAKE("old"), FP8R_REASON_LIBRARY_VERSION, {"120900", "120805"}},
        {NULL, FP8R_REASON_LIBRARY_MISSING, {"libcublasLt.so.13", "could not be loaded"}}};
    static const char *const none[] = {FAKE("missing"), NULL};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char subject[640], sentence[800];
        struct fp8r_cublaslt library;
        fp8r_reason reason = {0};
        assert_false(fp8r_cublaslt_choose(lines[i].named, none, &library, subject, sizeof subject, &reason));
        fp8r_reason_sentence(&reason, sentence, sizeof sentence);
        assert_int_equal(reason.code, lines[i].code);
        for (int j = 0; j < 2; j++)
            if (!strstr(sentence, lines[i].words[j]))
                fail_msg("\"%s\" does not say %s", sentence, lines[i].words[j]);
    }
}

/* In a process that has none of them yet: `resident` is loaded first, then one of the list is chosen. */
static const char *choice(const char *resident, const char *const *files, const char *wanted)
{
    pid_t child = child_begin(60);
    assert_true(child >= 0);
    if (child == 0) {
        char subject[640];
        struct fp8r_cublaslt library;
        fp8r_reason reason = {0};
        if (resident && !dlopen(resident, RTLD_NOW | RTLD_LOCAL)) _exit(2);
        bool is_found = fp8r_cublaslt_choose(NULL, files, &library, subject, sizeof subject, &reason);
        _exit(is_found == (wanted != NULL) && (!wanted || strcmp(library.path, wanted) == 0) ? 0 : 1);
    }
    const int code = child_end(child);
    return code == 0 ? "as wanted" : code == 1 ? "another" : "failed";
}

static void prefers_the_one_that_is_here(void **state)
{
    (void)state;
    static const char *const both[] = {FAKE("good"), FAKE("other"), NULL};
    static const char *const old_first[] = {FAKE("old"), FAKE("without"), FAKE("good"), NULL};
    static const char *const bad[] = {FAKE("old"), FAKE("missing"), NULL};
    assert_string_equal(choice(NULL, both, FAKE("good")), "as wanted");
    assert_string_equal(choice(FAKE("other"), both, FAKE("other")), "as wanted");
    assert_string_equal(choice(FAKE("good"), both, FAKE("good")), "as wanted");
    assert_string_equal(choice(FAKE("old"), old_first, FAKE("good")), "as wanted");
    assert_string_equal(choice(NULL, bad, NULL), "as wanted");
}

/* Opening a pipe for loading waits until somebody writes to it. */
static void waits_at_no_pipe(void **state)
{
    (void)state;
    char path[64];
    struct fp8r_cublaslt library;
    snprintf(path, sizeof path, "/tmp/fp8r-test-cublaslt-%ld", (long)getpid());
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* ends a process that waits */
    int verdict = (int)fp8r_cublaslt_open(path, false, &library);
    alarm(0);
    unlink(path);
    assert_int_equal(verdict, FP8R_CUBLASLT_ABSENT);
    assert_int_equal(fp8r_cublaslt_open("/dev/null", false, &library), FP8R_CUBLASLT_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefers_the_one_that_is_here), /* first: the others load libraries */
        cmocka_unit_test(takes_and_refuses),
        cmocka_unit_test(knows_version_and_path),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(waits_at_no_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
