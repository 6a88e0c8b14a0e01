/* Audits and fits without memory: the n-th allocation fails, for every n. Linked with --wrap for the
 * allocation functions. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "scratch.h"
#include "tool/sample_maker.h"
#include "tune/audit.h"
#include "tune/fit_files.h"
#include "tune/picker.h"
#include "support/refusal.h"

static struct samples samples;

/* Two families, three M; blas is better from M = 8 on. */
static int read_samples(void **state)
{
    static const struct maker_machine machine = {.threads = 2, .library = "", .date = "2026-11-01"};
    struct fp8r_tool_error error;
    if (scratch_setup(state) != 0) return -1;
    const char *path = scratch_path("samples.jsonl");
    FILE *file = maker_open(path);
    uint64_t noise = 1;
    maker_run(file, "1-1", &machine, 0.02);
    for (int i = 0; i < 6; i++) {
        static const int ms[] = {1, 8, 64};
        char problem[32];
        (void)snprintf(problem, sizeof problem, "%dx%dx64", ms[i % 3], i < 3 ? 128 : 256);
        maker_case(file, i, problem, 0);
        for (int round = 0; round < 40; round++)
            for (int candidate = 0; candidate < 3; candidate++)
                maker_sample(
                    file, i, candidate, "audit", round,
                    maker_noise(&noise, candidate == 2 ? (i % 3 > 0 ? 70 : 200) : 100 + 20 * candidate));
    }
    (void)fclose(file);
    return samples_read_path(&samples, path, &error);
}

static int forget_samples(void **state)
{
    samples_fini(&samples);
    return scratch_teardown(state);
}

static int audit_rule(struct fp8r_tool_error *error)
{
    struct fp8r_picker picker = {0};
    struct fp8r_audit_questions questions = {0};
    struct fp8r_audit audit = {0};
    struct fp8r_audit_rules rules = {.margin = 0.02, .comparisons = 12, .phase = SAMPLE_PHASES};
    int code = fp8r_picker_init_rule(&picker, "m >= 8", "blas", "cpu", error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_audit_ask_samples(&questions, &picker, true, &samples, 0, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_audit_init(&audit, &rules, &samples, 0, &questions, error);
    if (code == FP8R_EXIT_GOOD) assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_GOOD);
    fp8r_audit_fini(&audit);
    fp8r_audit_questions_fini(&questions);
    fp8r_picker_fini(&picker);
    return code;
}

static int audit_picks(struct fp8r_tool_error *error)
{
    static const char lines[] = "{\"problem\": \"1x128x64\", \"pick\": \"cpu:one\"}\n"
                                "{\"problem\": \"64x256x64\", \"pick\": \"blas:sgemm\"}\n";
    struct fp8r_picker picker = {0};
    struct fp8r_audit_questions questions = {0};
    const char *path = scratch_path("picks.jsonl");
    scratch_write(path, lines, sizeof lines - 1);
    int code = fp8r_picker_init_list(&picker, path, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_audit_ask_list(&questions, &picker, error);
    if (code == FP8R_EXIT_GOOD) assert_int_equal(questions.count, 2);
    fp8r_audit_questions_fini(&questions);
    fp8r_picker_fini(&picker);
    return code;
}

static int fit_and_write(struct fp8r_tool_error *error)
{
    static const struct fp8r_fit_options options = {.regret_max = 0.01, .boxes_max = 2};
    struct fp8r_fit_set set = {0};
    struct fp8r_fit fit;
    struct fp8r_rule *rule = NULL;
    char text[FP8R_FIT_TEXT_MAX] = "";
    int code = fp8r_fit_set_init(&set, &samples, NULL, NULL, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_fit_find(set.cases, set.count, &options, &fit, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_fit_rule(&fit, &rule, error);
    if (code == FP8R_EXIT_GOOD) {
        struct fp8r_fit_story story = {&fit, rule, text, &set, &samples, 0.01};
        (void)fp8r_fit_text(&fit, text);
        code = fp8r_fit_write(&story, scratch_path("made"), error);
    }
    if (code == FP8R_EXIT_GOOD) assert_string_equal(text, "m >= 8");
    fp8r_rule_destroy(rule);
    fp8r_fit_set_fini(&set);
    return code;
}

/* Whatever allocation fails: INTERNAL with a line, or (where the C library allocates behind a file) all is
 * well. */
static void refuse_each(int (*work)(struct fp8r_tool_error *error))
{
    struct fp8r_tool_error error;
    long refused = 0;
    for (long n = 0;; n++) {
        error = (struct fp8r_tool_error){0};
        allocations_left = n;
        int code = work(&error);
        bool is_done = allocations_left >= 0; /* fewer than n were asked for */
        allocations_left = -1;
        if (is_done) {
            assert_int_equal(code, FP8R_EXIT_GOOD);
            break;
        }
        if (code != FP8R_EXIT_INTERNAL) fail_msg("allocation %ld: exit code %d: %s", n, code, error.text);
        assert_true(error.text[0] != '\0');
        refused++;
    }
    assert_true(refused > 5);
}

static void rule(void **state)
{
    (void)state;
    refuse_each(audit_rule);
}

static void picks(void **state)
{
    (void)state;
    refuse_each(audit_picks);
}

static void fit(void **state)
{
    (void)state;
    refuse_each(fit_and_write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rule), cmocka_unit_test(picks),
                                       cmocka_unit_test(fit)};
    return cmocka_run_group_tests(tests, read_samples, forget_samples);
}
