/* A traced program's products, tuned: families, M and weights are the trace's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"
#include "scratch.h"
#include "tune/samples.h"

#define LINE(problem, count)                                                                                           \
    "{\"problem\": \"" problem "\", \"count\": " #count ", \"captured\": false, \"process\": 1, \"context\": 1}\n"

static void a_trace_is_measured(void **state)
{
    (void)state;
    static const char trace[] = LINE("2x64x32", 40) LINE("1x64x32", 7) LINE("0x64x32", 9);
    const char *path = scratch_path("trace.jsonl"), *folder = scratch_path("samples");
    struct samples samples = {0};
    struct fp8r_tool_error error = {0};
    scratch_write(path, trace, sizeof trace - 1);
    struct program run = program_run((const char *const[]){"tune", "--trace", path, "--warm", "--samples", folder, "--out",
                                                           scratch_path("x.routes"), NULL});
    if (run.exit_code != 0) fail_msg("exit code %d: %s", run.exit_code, run.errors);
    program_fini(&run);
    if (samples_read_path(&samples, folder, &error) != 0) fail_msg("%s", error.text);
    assert_int_equal(samples.case_count, 2);
    const struct sample_case *one = samples_find(&samples, 0, "1x64x32"), *two = samples_find(&samples, 0, "2x64x32");
    assert_non_null(one);
    assert_non_null(two);
    assert_true(one->is_done && two->is_done);
    assert_true(one->weight == 7);
    assert_true(two->weight == 40);
    samples_fini(&samples);
}

static void bad_traces_are_refused(void **state)
{
    (void)state;
    const char *path = scratch_path("bad.jsonl"), *empty = scratch_path("empty.jsonl");
    scratch_write(path, "{}\n", 3);
    scratch_write(empty, "", 0);
    expect_refusal((const char *const[]){"tune", "--quick", "--trace", path, NULL}, 5,
                   (const char *const[]){"bad.jsonl, line 1: expected problem, count", NULL});
    expect_refusal((const char *const[]){"tune", "--quick", "--trace", empty, NULL}, 4,
                   (const char *const[]){"the trace holds no product: nothing to tune", NULL});
    expect_refusal((const char *const[]){"tune", "--quick", NULL}, 2, (const char *const[]){"--trace FILE says what", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_trace_is_measured), cmocka_unit_test(bad_traces_are_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
