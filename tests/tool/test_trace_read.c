/* Traces: counts added up over processes, contexts and restarts, torn lines, what is refused, and the families to tune.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/trace.h"
#include "scratch.h"
#include "tune/trace_read.h"

static struct fp8r_traced traced;
static struct fp8r_tool_error failure;

static const char *write_text(const char *name, const char *text)
{
    const char *path = scratch_path(name);
    scratch_write(path, text, strlen(text));
    return path;
}

static int read_paths(const char *const *paths, size_t count)
{
    fp8r_traced_fini(&traced);
    failure = (struct fp8r_tool_error){0};
    return fp8r_trace_read(&traced, paths, count, &failure);
}

static int read_text(const char *text)
{
    const char *path = write_text("trace.jsonl", text);
    return read_paths(&path, 1);
}

#define LINE(problem, count, captured, process, context)                                                               \
    "{\"problem\": \"" problem "\", \"count\": " #count ", \"captured\": " #captured ", \"process\": " #process            \
    ", \"context\": " #context "}\n"

static const struct fp8r_trace_problem *problem_of(const char *text)
{
    for (size_t i = 0; i < traced.count; i++)
        if (strcmp(traced.problems[i].text, text) == 0) return &traced.problems[i];
    fail_msg("no problem %s", text);
    return NULL;
}

/* Counts grow within a process; contexts, processes and capture are counted apart; a number that comes again restarts. */
static void counts_add_up(void **state)
{
    (void)state;
    assert_int_equal(read_text(LINE("4x64x64", 1, false, 7, 1) LINE("4x64x64", 1, false, 7, 2) LINE("4x64x64", 1, true, 7, 1)
                               LINE("4x64x64", 2, false, 7, 1) LINE("4x64x64", 1, false, 9, 1) LINE("8x64x64", 1, true, 9, 1)
                               LINE("4x64x64", 4, false, 7, 1) LINE("4x64x64", 5, false, 7, 1)
                               /* process 7 again, another one */
                               LINE("4x64x64", 1, false, 7, 1) LINE("4x64x64", 2, false, 7, 1)),
                     0);
    const struct fp8r_trace_problem *four = problem_of("4x64x64"), *eight = problem_of("8x64x64");
    assert_int_equal(four->calls, 5 + 2 + 1 + 1 + 1);
    assert_int_equal(four->captured, 1);
    assert_int_equal(four->m, 4);
    assert_int_equal(eight->calls, 1);
    assert_int_equal(eight->captured, 1);
    assert_int_equal(traced.calls, 11);
    assert_int_equal(traced.captured, 2);
    assert_int_equal(traced.processes, 2);
    assert_int_equal(traced.lines, 10);
    assert_int_equal(traced.torn, 0);
    assert_true(fp8r_key_equal(&four->key, &eight->key));
}

/* The same process number in two files is two processes. */
static void files_are_counted_apart(void **state)
{
    (void)state;
    const char *paths[2] = {write_text("one.jsonl", LINE("4x64x64", 1, false, 1, 1) LINE("4x64x64", 2, false, 1, 1)),
                            write_text("two.jsonl", LINE("4x64x64", 1, false, 1, 1) LINE("4x64x64", 8, false, 1, 1))};
    assert_int_equal(read_paths(paths, 2), 0);
    assert_int_equal(traced.calls, 10);
    assert_int_equal(traced.processes, 2);
    assert_int_equal(traced.count, 1);
}

/* What the library writes is what is read. */
static void the_librarys_own_lines(void **state)
{
    (void)state;
    const char *path = scratch_path("own.jsonl");
    static const char *const texts[] = {"4x64x64", "16*128x512x128:fp16:tensor", "7x5x3:lda=5:ldo=6"};
    struct fp8r_trace *trace = NULL;
    assert_int_equal(fp8r_trace_create(path, &trace), FP8R_OK);
    for (int i = 0; i < 3; i++) {
        fp8r_matmul matmul;
        struct fp8r_product product;
        assert_int_equal(fp8r_matmul_parse(texts[i], &matmul), FP8R_OK);
        assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
        for (int j = 0; j < 11 * (i + 1); j++) fp8r_trace_count(trace, &product.problem, j == 0);
    }
    fp8r_trace_destroy(trace);
    assert_int_equal(read_paths(&path, 1), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(problem_of(texts[i])->calls, 11 * (i + 1));
        assert_int_equal(problem_of(texts[i])->captured, 1);
    }
    assert_int_equal(traced.calls, 66);
    assert_int_equal(traced.processes, 1);
}

static void a_torn_last_line_is_left_out(void **state)
{
    (void)state;
    static const char whole[] = LINE("4x64x64", 1, false, 7, 1) LINE("8x64x64", 1, false, 7, 1);
    size_t first = (size_t)(strchr(whole, '\n') - whole) + 1, length = sizeof whole - 1;
    const char *path = scratch_path("torn.jsonl");
    for (size_t size = first; size <= length; size++) {
        scratch_write(path, whole, size);
        assert_int_equal(read_paths(&path, 1), 0);
        assert_int_equal(traced.count, 1 + (size == length));
        assert_int_equal(traced.torn, size > first && size < length);
    }
    assert_int_equal(read_text(""), 0);
    assert_int_equal(traced.count, 0);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {LINE("4x64x64", 1, false, 7, 1) "{\"problem\"\n", "trace.jsonl, line 2: bad JSON"},
        {"[1]\n", "line 1: the JSON is an array"},
        {"\n", "line 1: bad JSON"},
        {"{\"problem\": \"4x64x64\"}\n", "line 1: expected problem, count (at least 1), captured, process and context"},
        {LINE("4x64x64", 0, false, 7, 1), "expected problem, count (at least 1)"},
        {LINE("4x64x64", 1.5, false, 7, 1), "expected problem, count (at least 1)"},
        {LINE("4x64x64", 1, 0, 7, 1), "expected problem"},
        {LINE("4x64", 1, false, 7, 1), "line 1: problem \"4x64\", position 5: expected x between N and K"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_text(cases[i].text), FP8R_EXIT_BAD_DATA);
        if (!strstr(failure.text, cases[i].message)) fail_msg("no \"%s\" in \"%s\"", cases[i].message, failure.text);
    }
    const char *nowhere = "/nowhere/trace.jsonl";
    assert_int_equal(read_paths(&nowhere, 1), FP8R_EXIT_BAD_DATA);
    assert_non_null(strstr(failure.text, "/nowhere/trace.jsonl cannot be opened"));
}

static void sums_stay_in_range(void **state)
{
    (void)state;
    assert_int_equal(read_text(LINE("4x64x64", 9223372036854775807, false, 1, 1)
                               LINE("4x64x64", 9223372036854775807, true, 2, 1)), 0);
    assert_int_equal(traced.calls, INT64_MAX);
    assert_int_equal(problem_of("4x64x64")->calls, INT64_MAX);
}

static void large_products_weigh_more(void **state)
{
    (void)state;
    assert_int_equal(read_text(LINE("1x64x64", 1, false, 1, 1) LINE("1x128x64", 1, false, 1, 1)
                               LINE("8192x4096x4096", 1, false, 1, 1) LINE("2*1x64x64", 1, false, 1, 1)), 0);
    double one = problem_of("1x64x64")->cost;
    assert_true(one == 64 + 64 * 64 + 2 * 64); /* bytes: a, b, bf16 out */
    assert_true(problem_of("1x128x64")->cost > one);
    assert_true(problem_of("2*1x64x64")->cost == 2 * one);
    assert_true(problem_of("8192x4096x4096")->cost == 2.0 * 8192 * 4096 * 4096 / 256); /* operations */
    assert_true(traced.cost == one * 3 + problem_of("1x128x64")->cost + problem_of("8192x4096x4096")->cost);
}

/* ---- Families ---- */

static void families_are_what_was_met(void **state)
{
    (void)state;
    struct fp8r_tune_families families = {0};
    assert_int_equal(read_text(LINE("4x64x64", 8, false, 1, 1) LINE("1x64x64", 1, false, 1, 1) LINE("9x64x64:bias", 2, false, 1, 1)
                               LINE("0x64x64", 5, false, 1, 1) LINE("4x64x0", 5, false, 1, 1)), 0);
    assert_int_equal(fp8r_families_add_traced(&families, &traced, 0, &failure), 0);
    assert_int_equal(families.count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_bias = strcmp(families.items[i].text, "Mx64x64:bias") == 0;
        assert_true(is_bias || strcmp(families.items[i].text, "Mx64x64") == 0);
        assert_int_equal(families.items[i].m_count, is_bias ? 1 : 2);
        assert_int_equal(families.items[i].ms[0], is_bias ? 9 : 1);
        struct fp8r_key key = families.items[i].key;
        assert_int_equal(fp8r_trace_calls(&traced, &key, is_bias ? 9 : 4), is_bias ? 2 : 8);
        key.mode = FP8R_MODE_GRAPH;
        assert_int_equal(fp8r_trace_calls(&traced, &key, is_bias ? 9 : 4), is_bias ? 2 : 8);
        assert_int_equal(fp8r_trace_calls(&traced, &key, 5), 0);
    }
    fp8r_families_fini(&families);
    assert_int_equal(read_text(LINE("4x64x64:lda=96", 8, false, 1, 1) LINE("4x64x64:lda=80", 1, false, 1, 1)), 0);
    assert_int_equal(fp8r_trace_calls(&traced, &traced.problems[0].key, 4), 9); /* one family, one case */
}

/* Of many M: both ends, and those that weigh most. */
static void the_heaviest_rows_are_taken(void **state)
{
    (void)state;
    struct fp8r_tune_families families = {0};
    static const int64_t taken[] = {1, 30, 40, 100};
    char text[100 * 128];
    size_t used = 0;
    for (int m = 1; m <= 100; m++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"problem\": \"%dx64x64\", \"count\": %d, \"captured\": false, \"process\": 1, \"context\": 1}\n",
                                 m, m == 30 || m == 40 ? 1000 : 2);
    assert_int_equal(read_text(text), 0);
    assert_int_equal(fp8r_families_add_traced(&families, &traced, 4, &failure), 0);
    assert_int_equal(families.count, 1);
    assert_int_equal(families.items[0].m_count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(families.items[0].ms[i], taken[i]);
    fp8r_families_fini(&families);
    assert_int_equal(fp8r_families_add_traced(&families, &traced, 1, &failure), 0);
    assert_int_equal(families.items[0].m_count, 1);
    fp8r_families_fini(&families);
}

static int teardown(void **state)
{
    fp8r_traced_fini(&traced);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_add_up),
        cmocka_unit_test(files_are_counted_apart),
        cmocka_unit_test(the_librarys_own_lines),
        cmocka_unit_test(a_torn_last_line_is_left_out),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(sums_stay_in_range),
        cmocka_unit_test(large_products_weigh_more),
        cmocka_unit_test(families_are_what_was_met),
        cmocka_unit_test(the_heaviest_rows_are_taken),
    };
    return cmocka_run_group_tests(tests, scratch_setup, teardown);
}
