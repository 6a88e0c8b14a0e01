/* fp8route trace summary as a user runs it, on what another run of the program has traced.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "program.h"
#include "scratch.h"

static void expect_in(const char *text, const char *wanted)
{
    if (!strstr(text, wanted)) fail_msg("\"%s\" is not in:\n%s", wanted, text);
}

#define LINE(problem, count, captured, process)                                                                        \
    "{\"problem\": \"" problem "\", \"count\": " #count ", \"captured\": " #captured ", \"process\": " #process            \
    ", \"context\": 1}\n"

static const char sample[] = LINE("1x4096x1024", 96, true, 7) LINE("1x4096x1024", 4, false, 7) LINE("512x4096x1024", 10, false, 7)
    LINE("16x128x64", 290, false, 8) "{\"problem\": \"9x";

static void summary_sums_up(void **state)
{
    (void)state;
    const char *path = scratch_path("trace.jsonl");
    scratch_write(path, sample, sizeof sample - 1);
    struct program run = program_run((const char *const[]){"trace", "summary", path, NULL});
    assert_int_equal(run.exit_code, 0);
    assert_string_equal(run.errors, "");
    expect_in(run.output, "400 calls of 3 problems in 2 families by 2 processes, 24.0 % of them captured into graphs\n"
                          "the last line of 1 file was cut off and is left out\n");
    expect_in(run.output, "problem        calls  of calls  of weight  captured\n"
                          "1x4096x1024      100    25.0 %");
    expect_in(run.output, "Mx4096x1024  2  1..512      110    27.5 %     99.3 %");
    expect_in(run.output, "\n512..1023     10     2.5 %     28.3 %  ###########\n");
    const char *heaviest = strstr(run.output, "512x4096x1024"), *most = strstr(run.output, "16x128x64");
    assert_true(heaviest && most && heaviest < most);
    program_fini(&run);
    run = program_run((const char *const[]){"trace", "summary", "--by", "calls", "--top", "1", path, NULL});
    assert_int_equal(run.exit_code, 0);
    expect_in(run.output, "16x128x64");
    assert_null(strstr(run.output, "512x4096x1024"));
    expect_in(run.output, "and 2 more (--top N)\n");
    program_fini(&run);
}

static void json_says_the_same(void **state)
{
    (void)state;
    json_error_t error;
    const char *path = scratch_path("trace.jsonl");
    scratch_write(path, sample, sizeof sample - 1);
    struct program run = program_run((const char *const[]){"trace", "summary", "--json", path, path, NULL});
    assert_int_equal(run.exit_code, 0);
    json_t *root = json_loads(run.output, JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("%s in:\n%s", error.text, run.output);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "fp8route.trace_summary/1");
    assert_int_equal(json_integer_value(json_object_get(root, "calls")), 800);
    assert_int_equal(json_integer_value(json_object_get(root, "captured")), 192);
    assert_int_equal(json_integer_value(json_object_get(root, "torn_count")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "process_count")), 4);
    json_t *first = json_array_get(json_object_get(root, "problems"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "problem")), "1x4096x1024");
    assert_int_equal(json_integer_value(json_object_get(first, "captured")), 192);
    json_t *family = json_array_get(json_object_get(root, "families"), 0);
    assert_string_equal(json_string_value(json_object_get(family, "family")), "Mx4096x1024");
    assert_int_equal(json_integer_value(json_object_get(family, "m_last")), 512);
    json_t *buckets = json_object_get(root, "m_histogram");
    assert_int_equal(json_array_size(buckets), 3);
    double sum = 0;
    for (size_t i = 0; i < 3; i++)
        sum += json_real_value(json_object_get(json_array_get(buckets, i), "weight_share"));
    assert_true(sum > 0.999999 && sum < 1.000001);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(buckets, 2), "m_last")), 1023);
    json_decref(root);
    program_fini(&run);
}

/* The library writes it, the program reads it. */
static void a_run_is_traced(void **state)
{
    (void)state;
    const char *path = scratch_path("own.jsonl");
    assert_int_equal(setenv("FP8ROUTE_TRACE", path, 1), 0);
    struct program run = program_run((const char *const[]){"run", "3x64x32", NULL});
    assert_int_equal(run.exit_code, 0);
    program_fini(&run);
    assert_int_equal(unsetenv("FP8ROUTE_TRACE"), 0);
    run = program_run((const char *const[]){"trace", "summary", path, NULL});
    assert_int_equal(run.exit_code, 0);
    expect_in(run.output, " of 1 problem in 1 family by 1 process, 0.0 % of them captured");
    expect_in(run.output, "Mx64x32  1  3   ");
    program_fini(&run);
}

static void bad_calls_are_refused(void **state)
{
    (void)state;
    const char *bad = scratch_path("bad.jsonl");
    scratch_write(bad, "{}\n", 3);
    const struct {
        const char *words[6];
        int code;
        const char *message;
    } cases[] = {{{"trace", "summary"}, 2, "something is missing: fp8route trace summary FILE..."},
                 {{"trace", "show", "x"}, 2, "unknown action \"show\": fp8route trace summary FILE..."},
                 {{"trace", "summary", "x", "--by", "name"}, 2, "--by is \"name\": it must be weight or calls"},
                 {{"trace", "summary", "/nowhere"}, 5, "/nowhere cannot be opened"},
                 {{"trace", "summary", bad}, 5, "bad.jsonl, line 1: expected problem, count"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i].words, cases[i].code, (const char *const[]){cases[i].message, NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(summary_sums_up), cmocka_unit_test(json_says_the_same),
                                       cmocka_unit_test(a_run_is_traced), cmocka_unit_test(bad_calls_are_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
