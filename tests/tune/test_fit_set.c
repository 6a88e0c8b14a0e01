/* From samples to rules, and from rules to files: what is left out, machines apart, bands between measured M,
 * prices. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"
#include "tool/sample_maker.h"
#include "tune/fit_files.h"

static struct fp8r_tool_error error;

/* What a candidate takes; 0: it does not race. */
typedef double (*time_of)(int m, int n, int candidate);

static const int ms[] = {1, 4, 16, 64, 256};
static const int ns[] = {128, 256};

static void make(const char *path, const char *run, int threads, time_of time)
{
    const struct maker_machine machine = {.threads = threads, .library = "", .date = "2026-11-01"};
    FILE *file = maker_open(path);
    maker_run(file, run, &machine, 0.02);
    for (int i = 0; i < 10; i++) {
        char problem[32];
        int m = ms[i % 5], n = ns[i / 5];
        (void)snprintf(problem, sizeof problem, "%dx%dx64", m, n);
        maker_case(file, i, problem, 0);
        for (int round = 0; round < 9; round++)
            for (int candidate = 0; candidate < 3; candidate++)
                if (time(m, n, candidate) > 0)
                    maker_sample(file, i, candidate, "audit", round, time(m, n, candidate));
    }
    (void)fclose(file);
}

static double band(int m, int n, int candidate)
{
    (void)n;
    return candidate == 2 ? (m >= 4 && m <= 64 ? 80 : 150) : candidate == 1 ? 90 : 100;
}

static double many(int m, int n, int candidate)
{
    return candidate == 2 ? (m >= 64 ? 50 : 100.5) : n == 256 && candidate == 0 && m == 16 ? 0 : 100;
}

static void read_into(struct samples *samples, const char *name)
{
    assert_int_equal(samples_read_path(samples, scratch_path(name), &error), FP8R_EXIT_GOOD);
}

/* A fit with its rule; free with story_fini. */
struct told {
    struct samples samples;
    struct fp8r_fit_set set;
    struct fp8r_fit fit;
    struct fp8r_rule *rule;
    char text[FP8R_FIT_TEXT_MAX];
    struct fp8r_fit_story story;
};

static void tell(struct told *told, const char *x, const char *y, double bound)
{
    const struct fp8r_fit_options options = {.regret_max = bound, .boxes_max = 2};
    int code = fp8r_fit_set_init(&told->set, &told->samples, x, y, &error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_fit_find(told->set.cases, told->set.count, &options, &told->fit, &error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_fit_rule(&told->fit, &told->rule, &error);
    if (code != FP8R_EXIT_GOOD) fail_msg("%s", error.text);
    (void)fp8r_fit_text(&told->fit, told->text);
    told->story =
        (struct fp8r_fit_story){&told->fit, told->rule, told->text, &told->set, &told->samples, bound};
}

static void told_fini(struct told *told)
{
    fp8r_rule_destroy(told->rule);
    fp8r_fit_set_fini(&told->set);
    samples_fini(&told->samples);
}

/* cpu:one is the default, so "cpu" is cpu:one although cpu:two is faster; the table would take cpu:two. */
static void a_band_becomes_routes(void **state)
{
    (void)state;
    struct told told = {0};
    struct fp8r_route_file file;
    make(scratch_path("band.jsonl"), "1-1", 2, band);
    read_into(&told.samples, "band.jsonl");
    tell(&told, "blas", "cpu", 0.001);
    assert_string_equal(told.text, "4 <= m <= 64");
    struct fp8r_fit_price price = fp8r_fit_set_price(&told.set, &told.fit, 0);
    assert_true(fabs(price.mean - 0.4 * (100.0 / 90 - 1)) < 1e-9 &&
                fabs(price.worst - (100.0 / 90 - 1)) < 1e-9);
    assert_int_equal(fp8r_fit_routes(&told.story, 0, &file, &error), FP8R_EXIT_GOOD);
    assert_int_equal(file.table.count, 2);
    const struct fp8r_entry *entry = &file.table.entries[0];
    static const int64_t firsts[] = {1, 4, 65}, lasts[] = {3, 64, 256};
    assert_int_equal(entry->segment_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(entry->segments[i].m_first, firsts[i]);
        assert_int_equal(entry->segments[i].m_last, lasts[i]);
        assert_string_equal(entry->segments[i].backend, i == 1 ? "blas" : "cpu");
        assert_int_equal(entry->segments[i].is_clear, i == 1);
    }
    assert_true(fabs(entry->segments[1].median_us - 80) < 1e-9 &&
                fabs(entry->segments[1].gain_low - 1.25) < 1e-9);
    const char *path = scratch_path("band.routes");
    assert_int_equal(fp8r_route_file_write(path, &file), FP8R_OK); /* what is written reads back */
    fp8r_route_file_fini(&file);
    assert_int_equal(fp8r_route_file_read(path, &file), FP8R_OK);
    fp8r_route_file_fini(&file);
    told_fini(&told);
}

/* Both sides of both borders, of every family. */
static void locks_hold_both_sides(void **state)
{
    (void)state;
    static const int64_t wanted[][2] = {{3, 0}, {4, 1}, {64, 1}, {65, 0}};
    struct told told = {0};
    struct fp8r_fit_lock *locks;
    size_t count;
    read_into(&told.samples, "band.jsonl");
    tell(&told, "blas", "cpu", 0.001);
    assert_int_equal(fp8r_fit_locks(&told.story, &locks, &count, &error), FP8R_EXIT_GOOD);
    for (int family = 0; family < 2; family++)
        for (int i = 0; i < 4; i++) {
            int found = 0;
            for (size_t j = 0; j < count; j++)
                found += locks[j].m == wanted[i][0] && locks[j].n == ns[family] && locks[j].k == 64 &&
                         locks[j].holds == wanted[i][1];
            assert_int_equal(found, 1);
        }
    for (size_t j = 0; j < count; j++)
        assert_int_equal(locks[j].holds, fp8r_fit_holds(&told.fit, locks[j].m, locks[j].n, locks[j].k));
    free(locks);
    told_fini(&told);
}

static void two_machines_stay_apart(void **state)
{
    (void)state;
    struct told told = {0};
    make(scratch_path("many.jsonl"), "2-1", 8, many);
    read_into(&told.samples, "band.jsonl");
    read_into(&told.samples, "many.jsonl");
    tell(&told, "blas:sgemm", "cpu:one", 0.5);
    assert_int_equal(told.set.device_count, 2);
    assert_int_equal(told.set.count, 19); /* cpu:one did not race once */
    assert_int_equal(told.set.left_out, 1);
    for (size_t i = 0; i < told.set.count; i++)
        assert_int_equal(told.samples.cases[0].machine == told.set.origins[i].it->machine,
                         told.set.cases[i].device == told.set.cases[0].device);
    char *shapes = fp8r_fit_shapes(&told.story);
    assert_non_null(shapes);
    assert_non_null(strstr(shapes, "## Machine 2: "));
    free(shapes);
    told_fini(&told);
}

/* Without names: the two backends; the default's is what stays. */
static void names_are_found(void **state)
{
    (void)state;
    struct told told = {0};
    read_into(&told.samples, "band.jsonl");
    tell(&told, NULL, NULL, 0.001);
    assert_string_equal(told.set.x, "blas");
    assert_string_equal(told.set.y, "cpu");
    told_fini(&told);
}

static void what_cannot_be_fitted(void **state)
{
    (void)state;
    struct samples samples = {0};
    struct fp8r_fit_set set;
    assert_int_equal(fp8r_fit_set_init(&set, &samples, "a", "b", &error), FP8R_EXIT_UNMEASURED);
    read_into(&samples, "band.jsonl");
    assert_int_equal(fp8r_fit_set_init(&set, &samples, "a", "cpu", &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "a: no candidate"));
    assert_int_equal(fp8r_fit_set_init(&set, &samples, "cpu:one", "cpu:one", &error), FP8R_EXIT_UNMEASURED);
    samples_fini(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_band_becomes_routes), cmocka_unit_test(locks_hold_both_sides),
        cmocka_unit_test(two_machines_stay_apart), cmocka_unit_test(names_are_found),
        cmocka_unit_test(what_cannot_be_fitted)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
