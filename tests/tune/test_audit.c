/* Audits of samples whose truth is known: each verdict, the error over many problems, sums, stretches, exit
 * codes. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/noise.h"
#include "tune/audit.h"
#include "tune/picker.h"
#include "tune/samples_grow.h"

static struct fp8r_tool_error error;
static struct noise source;

static void setup_case(struct sample_case *it, int count, const char *const *names)
{
    *it = (struct sample_case){.weight = 1, .m = 1, .count = count};
    (void)snprintf(it->problem, sizeof it->problem, "1x64x64");
    it->candidates = calloc((size_t)count, sizeof *it->candidates);
    assert_non_null(it->candidates);
    for (int i = 0; i < count; i++)
        (void)snprintf(it->candidates[i].name, sizeof it->candidates[i].name, "%s", names[i]);
}

static void add_sample(struct sample_case *it, int candidate, int phase, int round, double us)
{
    struct sample_candidate *to = &it->candidates[candidate];
    assert_true(samples_grow(&to->samples, to->count, &to->capacity));
    to->samples[to->count++] = (struct sample){.us = us, .round = round, .phase = (int16_t)phase};
}

/* Rounds in which candidate i takes times_us[i], off by the noise; 0: it takes no part. */
static void add_rounds(struct sample_case *it, int phase, int first, int rounds, const double *times_us,
                       double noise)
{
    for (int round = first; round < first + rounds; round++)
        for (int i = 0; i < it->count; i++)
            if (times_us[i] > 0)
                add_sample(it, i, phase, round, times_us[i] * exp(noise * noise_normal(&source)));
}

static void free_case(struct sample_case *it)
{
    for (int i = 0; i < it->count; i++)
        free(it->candidates[i].samples);
    free(it->candidates);
}

static const char *const three[] = {"cpu:skinny", "blas:sgemm", "cpu:packed"};

static struct fp8r_audit_result judged(const struct sample_case *it, const char *pick, const char *rival,
                                       int comparisons)
{
    static struct fp8r_audit_question question;
    struct fp8r_audit_rules rules = {.margin = 0.02, .comparisons = comparisons, .phase = SAMPLE_PHASES};
    struct fp8r_audit_result result;
    question = (struct fp8r_audit_question){.weight = 1, .m = 1};
    (void)snprintf(question.pick, sizeof question.pick, "%s", pick);
    (void)snprintf(question.rival, sizeof question.rival, "%s", rival);
    assert_int_equal(fp8r_audit_judge(&rules, &question, it, &result, &error), FP8R_EXIT_GOOD);
    return result;
}

static void a_slow_pick_is_lost(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 3, three);
    add_rounds(&it, SAMPLE_AUDIT, 0, 45, (const double[]){100, 150, 120}, 0.02);
    struct fp8r_audit_result result = judged(&it, "blas:sgemm", "", 40);
    assert_int_equal(result.verdict, FP8R_AUDIT_LOST);
    assert_string_equal(result.other, "cpu:skinny");
    assert_true(result.low > 1.4 && result.low < result.ratio && result.ratio < result.high &&
                result.high < 1.6);
    assert_int_equal(result.pairs, 30); /* the first look settles it */
    assert_true(result.is_settled && !result.is_partial && fabs(result.regret - 0.5) < 0.05);
    assert_true(fabs(result.pick_us - 150) < 5);
    result = judged(&it, "blas:sgemm", "cpu:packed", 40); /* the rule's other answer alone */
    assert_string_equal(result.other, "cpu:packed");
    result = judged(&it, "cpu:skinny", "", 40);
    assert_int_equal(result.verdict, FP8R_AUDIT_FINE);
    assert_string_equal(result.other, "cpu:packed");
    assert_true(result.ratio < 1 && result.is_settled && result.regret == 0);
    free_case(&it);
}

/* Within the margin: nothing is lost, however sure it is. */
static void a_small_loss_is_no_loss(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 2, three);
    add_rounds(&it, SAMPLE_AUDIT, 0, 120, (const double[]){100, 101}, 0.002);
    assert_int_equal(judged(&it, "blas:sgemm", "", 10).verdict, FP8R_AUDIT_FINE);
    free_case(&it);
}

static void noise_leaves_it_open(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 2, three);
    add_rounds(&it, SAMPLE_AUDIT, 0, 120, (const double[]){100, 108}, 0.4);
    struct fp8r_audit_result result = judged(&it, "blas:sgemm", "", 100);
    assert_int_equal(result.verdict, result.ratio > 1.02 ? FP8R_AUDIT_OPEN : FP8R_AUDIT_FINE);
    assert_true(result.is_settled);
    free_case(&it);
}

/* Few pairs: an interval at the split error, or none. */
static void few_pairs(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 2, three);
    add_rounds(&it, SAMPLE_GRID, 0, 9, (const double[]){100, 150}, 0.01);
    struct fp8r_audit_result result = judged(&it, "blas:sgemm", "", 1);
    assert_int_equal(result.verdict, FP8R_AUDIT_LOST);
    assert_true(result.low > 1.4 && !result.is_settled);
    result = judged(&it, "blas:sgemm", "", 1000); /* nine coins cannot say one in thirty thousand */
    assert_int_equal(result.verdict, FP8R_AUDIT_OPEN);
    assert_true(result.low == 0 && isinf(result.high));
    result = judged(&it, "cpu:skinny", "", 1000);
    assert_int_equal(result.verdict, FP8R_AUDIT_FINE);
    assert_true(result.is_settled);
    free_case(&it);
}

static void dropped_far_behind(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 2, three);
    add_rounds(&it, SAMPLE_GRID, 0, 1, (const double[]){100, 900}, 0);
    add_rounds(&it, SAMPLE_GRID, 1, 8, (const double[]){100, 0}, 0);
    (void)snprintf(it.candidates[1].dropped, sizeof it.candidates[1].dropped, "9.0x behind");
    struct fp8r_audit_result result = judged(&it, "blas", "", 1000);
    assert_int_equal(result.verdict, FP8R_AUDIT_LOST);
    assert_true(result.pairs == 1 && result.ratio == 9 && result.is_settled);
    assert_int_equal(judged(&it, "cpu", "", 1000).verdict, FP8R_AUDIT_FINE);
    free_case(&it);
}

/* The machine disturbed the one round that both were in: the medians of all that each has count. */
static void one_disturbed_round_condemns_nobody(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 2, three);
    add_rounds(&it, SAMPLE_GRID, 0, 1, (const double[]){9000, 900}, 0);
    add_rounds(&it, SAMPLE_GRID, 1, 30, (const double[]){100, 0}, 0.001);
    (void)snprintf(it.candidates[1].dropped, sizeof it.candidates[1].dropped, "9.0x behind");
    struct fp8r_audit_result result = judged(&it, "cpu", "", 1000);
    assert_int_equal(result.verdict, FP8R_AUDIT_FINE);
    assert_true(result.is_settled && result.ratio < 0.2 && result.low == 0 && isinf(result.high));
    result = judged(&it, "blas", "", 1000);
    assert_int_equal(result.verdict, FP8R_AUDIT_LOST);
    assert_true(result.ratio > 8.9 && result.ratio < 9.1 && fabs(result.regret - (result.ratio - 1)) < 1e-9);
    free_case(&it);
}

/* A backend's name: the default where it is its own, otherwise its fastest, and that is said. */
static void names_of_backends(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 3, three);
    add_rounds(&it, SAMPLE_GRID, 0, 30, (const double[]){100, 90, 80}, 0.001);
    struct fp8r_audit_result result = judged(&it, "cpu", "", 2);
    assert_string_equal(result.pick, "cpu:skinny");
    assert_false(result.is_guess);
    it.fallback = 1;
    result = judged(&it, "cpu", "", 2);
    assert_string_equal(result.pick, "cpu:packed");
    assert_true(result.is_guess);
    assert_int_equal(judged(&it, "cp", "", 2).verdict, FP8R_AUDIT_REFUSED);
    assert_int_equal(judged(&it, "cpu:skin", "", 2).verdict, FP8R_AUDIT_REFUSED);
    assert_int_equal(judged(&it, "gpu", "", 2).verdict, FP8R_AUDIT_REFUSED);
    free_case(&it);
}

static void wrong_and_missing(void **state)
{
    (void)state;
    struct sample_case it;
    setup_case(&it, 3, three);
    add_rounds(&it, SAMPLE_AUDIT, 0, 30, (const double[]){100, 0, 0}, 0.001);
    (void)snprintf(it.candidates[1].dropped, sizeof it.candidates[1].dropped, "wrong result");
    assert_int_equal(judged(&it, "blas:sgemm", "", 2).verdict, FP8R_AUDIT_WRONG);
    assert_int_equal(judged(&it, "cpu:packed", "", 2).verdict, FP8R_AUDIT_UNMEASURED);
    struct fp8r_audit_result result = judged(&it, "cpu:skinny", "", 2);
    assert_int_equal(result.verdict, FP8R_AUDIT_FINE);
    assert_true(result.is_partial); /* packed could run it, and has not raced */
    assert_int_equal(judged(NULL, "cpu:skinny", "", 2).verdict, FP8R_AUDIT_UNMEASURED);
    free_case(&it);
}

/* A time that is none is bad data, not a verdict. */
static void hostile_times(void **state)
{
    (void)state;
    static const double bad[] = {0, -1, NAN, INFINITY};
    static const int rounds[] = {9, 45};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t j = 0; j < 2; j++) {
            struct sample_case it;
            struct fp8r_audit_question question = {.weight = 1, .pick = "blas:sgemm"};
            struct fp8r_audit_rules rules = {.margin = 0.02, .comparisons = 1, .phase = SAMPLE_PHASES};
            struct fp8r_audit_result result;
            setup_case(&it, 2, three);
            for (int round = 0; round < rounds[j]; round++) {
                add_sample(&it, 0, SAMPLE_AUDIT, round, 100);
                add_sample(&it, 1, SAMPLE_AUDIT, round, round == 3 ? bad[i] : 150);
            }
            assert_int_equal(fp8r_audit_judge(&rules, &question, &it, &result, &error), FP8R_EXIT_BAD_DATA);
            free_case(&it);
        }
}

/* Audits of many problems on which all are equally fast: one false loss in twenty audits at most. And what is
 * 5 % slower is found. */
static void error_over_many_problems(void **state)
{
    (void)state;
    enum { AUDITS = 200, PROBLEMS = 20 };
    int alarms = 0, found = 0;
    source = (struct noise){17};
    for (int audit = 0; audit < AUDITS; audit++) {
        bool is_alarm = false;
        for (int problem = 0; problem < PROBLEMS; problem++) {
            struct sample_case it;
            double slow = problem == 0 ? 1.07 : 1.02; /* exactly the margin: the hardest that is no loss */
            setup_case(&it, 3, three);
            add_rounds(&it, SAMPLE_AUDIT, 0, 9, (const double[]){100, 100 * slow, 100}, 0.03);
            add_rounds(&it, SAMPLE_AUDIT, 9, 111, (const double[]){100, 100 * slow, 0}, 0.03);
            bool is_lost = judged(&it, "blas:sgemm", "", 2 * PROBLEMS).verdict == FP8R_AUDIT_LOST;
            if (problem == 0)
                found += is_lost;
            else
                is_alarm |= is_lost;
            free_case(&it);
        }
        alarms += is_alarm;
    }
    assert_in_range(alarms, 0, AUDITS / 20);
    assert_in_range(found, AUDITS * 95 / 100, AUDITS);
}

/* ---- All of an audit ---- */

static void add_question(struct fp8r_audit_questions *questions, struct samples *samples, int64_t n,
                         int64_t m, double slow, double weight, const char *pick)
{
    struct sample_case it;
    struct fp8r_audit_question *question = fp8r_audit_questions_add(questions);
    assert_non_null(question);
    setup_case(&it, 2, three);
    it.key = (struct fp8r_key){.batch = 1, .n = n, .k = 64};
    it.m = m;
    (void)snprintf(it.problem, sizeof it.problem, "%dx%dx64", (int)m, (int)n);
    add_rounds(&it, SAMPLE_AUDIT, 0, 45, (const double[]){100, 100 * slow}, 0.001);
    assert_true(samples_add_case(samples, &it));
    question->key = it.key;
    question->m = m;
    question->weight = weight;
    (void)snprintf(question->problem, sizeof question->problem, "%s", it.problem);
    (void)snprintf(question->family, sizeof question->family, "Mx%dx64", (int)n);
    (void)snprintf(question->pick, sizeof question->pick, "%s", pick);
}

static void sums_and_stretches(void **state)
{
    (void)state;
    static const struct {
        int n, m;
        double slow;
    } rows[] = {{128, 1, 2},   {128, 2, 1.5}, {128, 8, 1}, {128, 64, 3},
                {256, 1, 0.5}, {256, 4, 1.2}, {512, 1, 1}};
    struct samples samples = {0};
    struct fp8r_audit_questions questions = {0};
    struct fp8r_audit audit;
    struct fp8r_audit_rules rules = {.margin = 0.02, .comparisons = 7, .phase = SAMPLE_AUDIT};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_question(&questions, &samples, rows[i].n, rows[i].m, rows[i].slow, i == 0 ? 10 : 1, "blas:sgemm");
    questions.items[questions.count - 1].is_random = true;
    assert_int_equal(fp8r_audit_init(&audit, &rules, &samples, 0, &questions, &error), FP8R_EXIT_GOOD);
    assert_int_equal(audit.judged, 7);
    assert_int_equal(audit.verdicts[FP8R_AUDIT_LOST], 4);
    assert_string_equal(audit.results[0].question->problem, "64x128x64"); /* worst first */
    assert_string_equal(audit.results[1].question->problem, "1x128x64");
    assert_true(fabs(audit.problem_share - 4.0 / 7) < 1e-12);
    /* 10 * 200 + 150 + 100 + 300 + 50 + 120 + 100 spent; 1000 + 50 + 200 + 20 too much */
    assert_true(fabs(audit.time_share - 1270.0 / 2820) < 0.01);
    assert_true(fabs(audit.regret_worst - 2) < 0.05 && audit.regret_count == 7);
    assert_int_equal(audit.stretch_count, 3);
    const struct fp8r_audit_stretch *first = &audit.stretches[0];
    assert_true(first->m_first == 1 && first->m_last == 2 && first->right_before == 0 &&
                first->right_after == 8);
    assert_true(fabs(first->worst - 2) < 0.05);
    assert_string_equal(first->other, "cpu:skinny");
    assert_true(audit.stretches[1].m_first == 64 && audit.stretches[1].right_before == 8 &&
                audit.stretches[1].right_after == 0);
    assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_FAILED);
    fp8r_audit_fini(&audit);
    for (size_t i = 0; i < questions.count;
         i++) /* the other answer everywhere: right but where blas is twice as fast */
        (void)snprintf(questions.items[i].pick, sizeof questions.items[i].pick, "cpu:skinny");
    assert_int_equal(fp8r_audit_init(&audit, &rules, &samples, 0, &questions, &error), FP8R_EXIT_GOOD);
    assert_int_equal(audit.verdicts[FP8R_AUDIT_LOST], 1);
    assert_string_equal(audit.results[0].question->problem, "1x256x64");
    fp8r_audit_fini(&audit);
    fp8r_audit_questions_fini(&questions);
    samples_fini(&samples);
}

static void exit_codes(void **state)
{
    (void)state;
    struct fp8r_audit audit = {.judged = 20};
    assert_int_equal(fp8r_audit_exit(&(struct fp8r_audit){0}, 0), FP8R_EXIT_UNMEASURED);
    assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_GOOD);
    assert_int_equal(fp8r_audit_exit(&audit, 100), FP8R_EXIT_INCONCLUSIVE);
    audit.verdicts[FP8R_AUDIT_OPEN] = 2;
    assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_GOOD);
    audit.verdicts[FP8R_AUDIT_REFUSED] = 1;
    assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_UNMEASURED);
    audit.verdicts[FP8R_AUDIT_OPEN] = 3;
    assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_INCONCLUSIVE);
    audit.verdicts[FP8R_AUDIT_WRONG] = 1;
    assert_int_equal(fp8r_audit_exit(&audit, 0), FP8R_EXIT_FAILED);
}

static void rules_pick(void **state)
{
    (void)state;
    struct fp8r_picker picker;
    struct fp8r_key key = {.batch = 2, .n = 64, .k = 32};
    const char *pick;
    assert_int_equal(fp8r_picker_init_rule(&picker, "m >= 4 and b == 2 and n > k", "a:b", "c", &error),
                     FP8R_EXIT_GOOD);
    assert_int_equal(fp8r_picker_pick(&picker, "", &key, 4, &pick, &error), FP8R_EXIT_GOOD);
    assert_string_equal(pick, "a:b");
    assert_int_equal(fp8r_picker_pick(&picker, "", &key, 3, &pick, &error), FP8R_EXIT_GOOD);
    assert_string_equal(pick, "c");
    fp8r_picker_fini(&picker);
    assert_int_equal(fp8r_picker_init_rule(&picker, "m // 0 == 1", "a", "c", &error), FP8R_EXIT_GOOD);
    assert_int_equal(fp8r_picker_pick(&picker, "", &key, 3, &pick, &error), FP8R_EXIT_USAGE);
    fp8r_picker_fini(&picker);
    assert_int_equal(fp8r_picker_init_rule(&picker, "m >", "a", "c", &error), FP8R_EXIT_USAGE);
    fp8r_picker_fini(&picker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slow_pick_is_lost),
                                       cmocka_unit_test(a_small_loss_is_no_loss),
                                       cmocka_unit_test(noise_leaves_it_open),
                                       cmocka_unit_test(few_pairs),
                                       cmocka_unit_test(dropped_far_behind),
                                       cmocka_unit_test(one_disturbed_round_condemns_nobody),
                                       cmocka_unit_test(names_of_backends),
                                       cmocka_unit_test(wrong_and_missing),
                                       cmocka_unit_test(hostile_times),
                                       cmocka_unit_test(error_over_many_problems),
                                       cmocka_unit_test(sums_and_stretches),
                                       cmocka_unit_test(exit_codes),
                                       cmocka_unit_test(rules_pick)};
    source = (struct noise){1};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
