/* fp8route table build, diff, merge and export as a user runs them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "program.h"
#include "scratch.h"
#include "tool/sample_maker.h"

static char *out, *err; /* of the last run */

static int table(const char *const *words)
{
    const char *all[16] = {"table"};
    free(out);
    free(err);
    for (size_t i = 0; words[i]; i++) all[i + 1] = words[i];
    struct program run = program_run(all);
    out = run.output;
    err = run.errors;
    return run.exit_code;
}

#define TABLE(...) table((const char *const[]){__VA_ARGS__, NULL})

static void expect_in(const char *text, const char *wanted)
{
    if (!strstr(text, wanted)) fail_msg("\"%s\" is not in:\n%s", wanted, text);
}

static char *content_of(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return program_text(file);
}

static json_t *output_json(const char *schema)
{
    json_error_t error;
    json_t *root = json_loads(out, JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("%s in:\n%s", error.text, out);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), schema);
    return root;
}

/* One run: cpu:one, the default, is slower than the candidate `fast` at M=4 and fastest at M=64. */
static const char *write_samples(const char *name, const char *id, int threads, int fast)
{
    const char *path = scratch_path(name);
    FILE *file = maker_open(path);
    maker_run(file, id, &(struct maker_machine){threads, "openblas 0.3.21", "2026-11-29", NULL}, 0.02);
    for (int i = 0; i < 2; i++) {
        maker_case(file, i, i ? "64x256x128" : "4x256x128", 0);
        for (int round = 0; round < 60; round++)
            for (int j = 0; j < 3; j++) {
                double us = j == 0 ? 100 : i == 0 && j == fast ? 50 : 150 + j;
                maker_sample(file, i, j, "grid", round, us);
                if (j == 0 || j == fast) maker_sample(file, i, j, "confirm", round, us);
            }
        maker_done(file, i, 0);
    }
    maker_case(file, 2, "9x256x128", 0); /* not finished */
    (void)fclose(file);
    return path;
}

static void build_makes_routes(void **state)
{
    (void)state;
    const char *samples = write_samples("a.jsonl", "a", 2, 1), *routes = scratch_path("new/a.routes");
    assert_int_equal(TABLE("build", samples, "--out", routes), 0);
    expect_in(out, "a.routes: 1 family, 2 segments; from 600 samples of 2 cases in 1 run\n");
    expect_in(out, "1 case is not finished and left out");
    char *text = content_of(routes);
    expect_in(text, "entry Mx256x128\n  m=4..16 backend=cpu config=two rev=r1 median_us=50 runner_up=cpu:one runner_up_us=100 "
                    "gain=2..2 verdict=clear\n  m=17..64 backend=cpu config=one rev=r1 median_us=100 runner_up=cpu:two "
                    "runner_up_us=151 gain=1..1 verdict=clear\n");
    assert_int_equal(TABLE("build", samples), 0);
    assert_string_equal(out, text);
    expect_in(err, "1 family");
    assert_int_equal(TABLE("build", "--json", samples), 0);
    assert_string_equal(err, "");
    json_t *root = output_json("fp8route.table_build/1");
    assert_string_equal(json_string_value(json_object_get(root, "text")), text);
    assert_int_equal(json_integer_value(json_object_get(root, "sample_count")), 600);
    assert_int_equal(json_integer_value(json_object_get(root, "unfinished_count")), 1);
    assert_true(json_is_null(json_object_get(root, "path")));
    json_decref(root);
    assert_int_equal(TABLE("check", routes), 1); /* cpu:two is nobody's configuration: the file is well formed */
    expect_in(out, "well formed, 1 entry\n");
    free(text);
}

/* What comes from the samples is told from what the file holds. */
static void build_says_what_it_adds(void **state)
{
    (void)state;
    const char *samples = write_samples("a.jsonl", "a", 2, 1), *routes = scratch_path("added.routes");
    assert_int_equal(TABLE("build", samples, "--out", routes), 0);
    char *text = content_of(routes), *family = strstr(text, "entry Mx256x128");
    assert_non_null(family);
    memcpy(family, "entry Mx256x192", 15);
    FILE *file = fopen(routes, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(text);
    assert_int_equal(TABLE("build", samples, "--into", routes), 0);
    expect_in(out, "added.routes: 1 family, 2 segments added, 2 families in the file now; from 600 samples of 2 cases in 1 run\n");
}

static void build_never_pools_machines(void **state)
{
    (void)state;
    const char *two = write_samples("two.jsonl", "a", 2, 1), *four = write_samples("four.jsonl", "b", 4, 2);
    static const char *const named[] = {"of 2 machines, which are never pooled", "1: cpu features=avx2+fma threads=2 ",
                                        "2: cpu features=avx2+fma threads=4 ", NULL};
    expect_refusal((const char *const[]){"table", "build", four, two, NULL}, 5, named);
    expect_refusal((const char *const[]){"table", "build", "--machine", "3", two, four, NULL}, 2,
                   (const char *const[]){"--machine is 3: these samples are of 2 machines", NULL});
    assert_int_equal(TABLE("build", "--machine", "2", two, four), 0);
    expect_in(out, "threads=4");
    expect_in(out, "backend=blas config=sgemm");
}

/* One machine, but in one of the files half of the calls stood behind another kernel. */
static void build_never_pools_protocols(void **state)
{
    (void)state;
    const char *itself = write_samples("itself.jsonl", "a", 2, 1), *other = write_samples("other.jsonl", "b", 2, 2);
    const char *both = scratch_path("both.jsonl"), *routes = scratch_path("itself.routes");
    static const char *const named[] = {"of 2 machines, which are never pooled", "full eager cold; ",
                                        "full eager cold behind=both", NULL};
    char *text = content_of(other), *at = strstr(text, "operands=cold");
    assert_non_null(at);
    at += strlen("operands=cold");
    FILE *file = fopen(both, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%.*s behind=both%s", (int)(at - text), text, at) > 0);
    assert_int_equal(fclose(file), 0);
    free(text);
    expect_refusal((const char *const[]){"table", "build", itself, both, NULL}, 5, named);
    assert_int_equal(TABLE("build", itself, "--out", routes), 0);
    expect_refusal((const char *const[]){"table", "build", both, "--into", routes, NULL}, 5,
                   (const char *const[]){"measured behind themselves, and now half behind another kernel", NULL});
    assert_int_equal(TABLE("build", both), 0);
    expect_in(out, "protocol full mode=eager operands=cold behind=both\n");
}

static void diff_judges_by_its_exit_code(void **state)
{
    (void)state;
    const char *a = scratch_path("a.routes"), *b = scratch_path("b.routes");
    assert_int_equal(TABLE("build", write_samples("a.jsonl", "a", 2, 1), "--out", a), 0);
    assert_int_equal(TABLE("build", write_samples("b.jsonl", "b", 2, 2), "--out", b), 0);
    assert_int_equal(TABLE("diff", a, a), 0);
    expect_in(out, "another choice at 0 of 5 grid points (powers of two measured in both, 0.0 %), on 0.0 % of log M");
    expect_in(out, ": 0 ranges");
    assert_null(strstr(out, "family"));
    assert_int_equal(TABLE("diff", a, b), 1);
    expect_in(out, "Mx256x128  4..16  backend  cpu:two  clear 2.00..2.00x  blas:sgemm  clear 2.00..2.00x  clear in both, for "
                   "different choices\n");
    expect_in(out, "another choice at 3 of 5 grid points");
    expect_in(out, ": 1 range\n");
    assert_int_equal(TABLE("diff", "--json", a, b), 1);
    json_t *root = output_json("fp8route.table_diff/1"), *ranges = json_object_get(root, "ranges");
    assert_int_equal(json_array_size(ranges), 2);
    json_t *first = json_array_get(ranges, 0);
    assert_string_equal(json_string_value(json_object_get(first, "change")), "backend");
    assert_true(json_is_true(json_object_get(first, "contradiction")));
    assert_string_equal(json_string_value(json_object_get(json_object_get(first, "new"), "config")), "sgemm");
    assert_int_equal(json_integer_value(json_object_get(root, "contradiction_count")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "ranges_by_change"), "same")), 1);
    assert_true(json_real_value(json_object_get(root, "changed_point_share")) == 0.6);
    json_decref(root);
}

/* Of one machine nothing is said; of two, what differs, on standard error and in the object. */
static void diff_names_another_machine(void **state)
{
    (void)state;
    const char *a = scratch_path("a.routes"), *b = scratch_path("b.routes");
    assert_int_equal(TABLE("build", write_samples("a.jsonl", "a", 2, 1), "--out", a), 0);
    assert_int_equal(TABLE("build", write_samples("b.jsonl", "b", 4, 1), "--out", b), 0);
    assert_int_equal(TABLE("diff", a, a), 0);
    assert_string_equal(err, "");
    assert_int_equal(TABLE("diff", a, b), 0);
    expect_in(err, "fp8route table diff: the files are of different machines: ");
    expect_in(err, "threads=2");
    expect_in(err, "threads=4");
    assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
    assert_int_equal(TABLE("diff", "--json", a, b), 0);
    json_t *root = output_json("fp8route.table_diff/1");
    assert_true(json_is_false(json_object_get(root, "same_machine")));
    expect_in(json_string_value(json_object_get(root, "misfit")), "threads");
    json_decref(root);
    assert_int_equal(TABLE("diff", "--json", a, a), 0);
    root = output_json("fp8route.table_diff/1");
    assert_true(json_is_true(json_object_get(root, "same_machine")));
    assert_true(json_is_null(json_object_get(root, "misfit")));
    json_decref(root);
}

static void merge_takes_any_order(void **state)
{
    (void)state;
    const char *a = scratch_path("a.routes"), *b = scratch_path("b.routes"), *ab = scratch_path("ab.routes");
    assert_int_equal(TABLE("build", write_samples("a.jsonl", "a", 2, 1), "--out", a), 0);
    assert_int_equal(TABLE("build", write_samples("b.jsonl", "b", 2, 2), "--out", b), 0);
    assert_int_equal(TABLE("merge", a, b, "--out", ab), 0);
    expect_in(out, "ab.routes: 1 family\nin several files with different content: 1 (build");
    char *text = content_of(ab);
    assert_int_equal(TABLE("merge", b, a, ab), 0);
    assert_string_equal(out, text);
    assert_int_equal(TABLE("merge", "--json", b, a), 0);
    json_t *root = output_json("fp8route.table_merge/1");
    assert_string_equal(json_string_value(json_object_get(root, "text")), text);
    assert_int_equal(json_integer_value(json_object_get(root, "contested_count")), 1);
    json_decref(root);
    free(text);
    expect_refusal((const char *const[]){"table", "merge", a, scratch_path("a.jsonl"), NULL}, 2,
                   (const char *const[]){"samples are merged by reading them together: fp8route table build", NULL});
    expect_refusal((const char *const[]){"table", "merge", scratch_root, NULL}, 2,
                   (const char *const[]){"merge is for route files", NULL});
    assert_int_equal(TABLE("build", write_samples("four.jsonl", "c", 4, 2), "--out", b), 0);
    expect_refusal((const char *const[]){"table", "merge", a, b, NULL}, 5,
                   (const char *const[]){"never merged", "threads=2", "threads=4", NULL});
}

static void export_writes_source(void **state)
{
    (void)state;
    const char *a = scratch_path("a.routes"), *source = scratch_path("new/folder/route.c");
    assert_int_equal(TABLE("build", write_samples("a.jsonl", "a", 2, 1), "--out", a), 0);
    assert_int_equal(TABLE("export", a, "--language", "c", "--out", source), 0);
    expect_in(out, "route.c: function fp8_route, 1 family\n");
    char *text = content_of(source);
    assert_int_equal(TABLE("export", a, "--language", "c"), 0);
    assert_string_equal(out, text);
    expect_in(text, "int fp8_route(int kind, int64_t batch, int64_t m, int64_t n, int64_t k,");
    expect_in(text, " *   machine  cpu features=avx2+fma threads=2 llc_bytes=1048576, blas openblas 0.3.21, full eager cold\n");
    free(text);
    assert_int_equal(TABLE("export", a, "--language", "python", "--function", "pick", "--json"), 0);
    json_t *root = output_json("fp8route.table_export/1");
    expect_in(json_string_value(json_object_get(root, "text")), "\ndef pick(options, batch, m, n, k):\n");
    json_decref(root);
    expect_refusal((const char *const[]){"table", "export", a, NULL}, 2,
                   (const char *const[]){"--language is missing: c or python", NULL});
    expect_refusal((const char *const[]){"table", "export", a, "--language", "rust", NULL}, 2,
                   (const char *const[]){"--language is \"rust\"", NULL});
    expect_refusal((const char *const[]){"table", "export", a, "--language", "c", "--function", "a b", NULL}, 2,
                   (const char *const[]){"--function is \"a b\"", NULL});
    expect_refusal((const char *const[]){"table", "export", a, "--language", "c", "--out", "/proc/x.c", NULL}, 5,
                   (const char *const[]){"/proc/x.c", NULL});
}

static void bad_calls_are_refused(void **state)
{
    (void)state;
    const char *bad = scratch_path("bad.jsonl"), *empty = scratch_path("empty.jsonl");
    scratch_write(bad, "{\"record\":\"case\"}\n", 18);
    scratch_write(empty, "", 0);
    const struct {
        const char *words[8];
        int code;
        const char *message;
    } cases[] = {{{"table", "build"}, 2, "something is missing: fp8route table build SAMPLES..."},
                 {{"table", "diff", "a"}, 2, "something is missing: fp8route table diff OLD NEW"},
                 {{"table", "diff", "a", "b", "c"}, 2, "unexpected \"c\": fp8route table diff OLD NEW"},
                 {{"table", "show", "x", "--out", "y"}, 2, "--out says nothing to table show"},
                 {{"table", "merge", "x", "--machine", "1"}, 2, "--machine says nothing to table merge"},
                 {{"table", "build", "x", "--function", "f"}, 2, "--function says nothing to table build"},
                 {{"table", "build", bad}, 5, "bad.jsonl, line 1: expected a run before anything else"},
                 {{"table", "build", empty}, 4, "no case of these samples is finished"},
                 {{"table", "build", "/nowhere"}, 5, "/nowhere cannot be opened"},
                 {{"table", "diff", "/nowhere", "/nowhere"}, 5, "/nowhere: cannot be opened"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i].words, cases[i].code, (const char *const[]){cases[i].message, NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build_makes_routes),           cmocka_unit_test(build_never_pools_machines),
        cmocka_unit_test(build_never_pools_protocols),
        cmocka_unit_test(build_says_what_it_adds),
        cmocka_unit_test(diff_judges_by_its_exit_code), cmocka_unit_test(diff_names_another_machine),
        cmocka_unit_test(merge_takes_any_order),
        cmocka_unit_test(export_writes_source),         cmocka_unit_test(bad_calls_are_refused),
    };
    int failures = cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
    free(out);
    free(err);
    return failures;
}
