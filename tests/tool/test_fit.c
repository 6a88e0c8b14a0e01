/* Fits: rules that are known are found again through noise, short ones are preferred within the bound, the
 * worst device decides, and what the numbers say is what the cases say. SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rule/fit.h"
#include "tool/noise.h"

enum { CASES_MAX = 4000 };

#define FIRST_RULE  "(k >= 5376 and n >= 3584) or (k >= 3584 and m >= 8192)"
#define SECOND_RULE "m >= 8192 and ((n >= 5376 and k >= 7168) or (n >= 6144 and k >= 4096))"

/* Projection families of served models, N and K, and the rows the published rules were measured on. */
static const int64_t families[][2] = {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336},
                                      {2560, 8192}, {8192, 2048}, {5376, 7168},  {7168, 5376},
                                      {5376, 5376}, {3584, 3584}, {37888, 3584}, {3584, 18944},
                                      {1536, 7168}, {6144, 3584}, {5376, 4096},  {2048, 7168}};
static const int64_t rows_measured[] = {1, 2, 4, 8, 16, 64, 256, 1024, 2048, 4096, 8192, 16384};

struct cases {
    struct fp8r_fit_case items[CASES_MAX];
    size_t count;
};

static struct fp8r_rule *parse(const char *text)
{
    struct fp8r_rule *rule = NULL;
    assert_int_equal(fp8r_rule_parse(text, &rule, NULL), 0);
    return rule;
}

static bool holds(const struct fp8r_rule *rule, int64_t m, int64_t n, int64_t k)
{
    bool answer = false;
    assert_int_equal(fp8r_rule_eval(rule, &(struct fp8r_rule_point){m, n, k, 1}, &answer, NULL), 0);
    return answer;
}

/* A device on which `truth` says which one is faster, by 8 to 35 %, and times scatter by `noise`. */
static void device_add(struct cases *cases, const char *truth, int device, double noise, struct noise *source)
{
    struct fp8r_rule *rule = parse(truth);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        for (size_t j = 0; j < sizeof rows_measured / sizeof *rows_measured; j++) {
            int64_t m = rows_measured[j], n = families[i][0], k = families[i][1];
            double gain = exp((0.08 + 0.27 * noise_uniform(source)) * (holds(rule, m, n, k) ? 1 : -1));
            double base_us = 5 + 1e-6 * (double)(m * n) + 1e-9 * (double)(m * n * k);
            cases->items[cases->count++] =
                (struct fp8r_fit_case){.m = m,
                                       .n = n,
                                       .k = k,
                                       .device = device,
                                       .weight = 1,
                                       .then_us = base_us * exp(noise * noise_normal(source)),
                                       .else_us = base_us * gain * exp(noise * noise_normal(source))};
        }
    }
    fp8r_rule_destroy(rule);
}

static struct fp8r_fit fit(const struct cases *cases, double regret_max)
{
    struct fp8r_fit_options options = {.regret_max = regret_max, .boxes_max = 4};
    struct fp8r_fit found;
    struct fp8r_tool_error error;
    if (fp8r_fit_find(cases->items, cases->count, &options, &found, &error) != 0) fail_msg("%s", error.text);
    return found;
}

static void text_is(const struct fp8r_fit *found, const char *expected)
{
    char text[FP8R_FIT_TEXT_MAX];
    size_t length = fp8r_fit_text(found, text);
    if (strcmp(text, expected) != 0)
        fail_msg("%s (%d conditions, regret %g), expected %s", text, found->condition_count,
                 found->regret.worst, expected);
    assert_int_equal(length, strlen(text));
}

/* The published rule, from what its authors measured. */
static void published(void **state)
{
    (void)state;
    static struct cases cases;
    struct noise source = {1};
    cases.count = 0;
    device_add(&cases, SECOND_RULE, 0, 0, &source);
    struct fp8r_fit found = fit(&cases, 0);
    text_is(&found, SECOND_RULE);
    assert_int_equal(found.condition_count, 5);
    assert_true(found.is_within && found.regret.worst == 0 && found.regret.worst_single == 0);
    assert_true(found.always.worst > 0.05 && found.never.worst > 0.005);
    assert_int_equal(found.folds, 16);
}

static void published_noisy(void **state)
{
    (void)state;
    static struct cases cases;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct noise source = {seed};
        cases.count = 0;
        device_add(&cases, SECOND_RULE, 0, 0.02, &source);
        struct fp8r_fit found = fit(&cases, 0.0008);
        text_is(&found, SECOND_RULE);
    }
}

static void first_rule(void **state)
{
    (void)state;
    static struct cases cases;
    struct noise source = {3};
    cases.count = 0;
    device_add(&cases, FIRST_RULE, 0, 0.02, &source);
    struct fp8r_fit found = fit(&cases, 0.002);
    text_is(&found, "(n >= 3584 and k >= 5376) or (m >= 8192 and k >= 3584)");
    assert_true(found.held_out.worst < 0.02 && found.held_out.worst >= found.regret.worst);
}

/* Half a percent more may be lost: fewer conditions, never more. */
static void shorter(void **state)
{
    (void)state;
    static struct cases cases;
    struct noise source = {4};
    int before = 100;
    cases.count = 0;
    device_add(&cases, SECOND_RULE, 0, 0.03, &source);
    for (double bound = 0.0005; bound < 0.1; bound *= 2) {
        struct fp8r_fit found = fit(&cases, bound);
        if (found.is_within) {
            assert_true(found.regret.worst <= bound + 1e-12);
            assert_true(found.condition_count <= before);
            before = found.condition_count;
        }
    }
    assert_int_equal(before, 0);
}

/* Two devices that differ in one border: what the better one could win is given up for the other. */
static void worst_device(void **state)
{
    (void)state;
    static struct cases cases;
    struct noise source = {5};
    cases.count = 0;
    device_add(&cases, "m >= 1024", 0, 0, &source);
    size_t count = cases.count;
    device_add(&cases, "m >= 1024", 1, 0, &source);
    for (size_t i = count; i < cases.count; i++) {
        if (cases.items[i].m == 1024) cases.items[i].then_us = 50 * cases.items[i].else_us;
    }
    struct fp8r_fit found = fit(&cases, 0);
    text_is(&found, "m >= 2048");
    assert_false(found.is_within);
    assert_int_equal(found.device_count, 2);
    assert_true(found.regret.device[0] > 0 && found.regret.device[1] == 0);
    assert_true(found.regret.worst == found.regret.device[0]);
}

static void bands(void **state)
{
    (void)state;
    static struct cases cases;
    static const char *const rules[] = {"m <= 16",
                                        "16 <= m <= 1024",
                                        "m == 64",
                                        "n >= 8192",
                                        "k <= 3584",
                                        "m <= 8 or m >= 4096",
                                        "n == 5376 and k >= 5376",
                                        "m >= 256 and n <= 4096",
                                        "m == 1"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct noise source = {i};
        cases.count = 0;
        device_add(&cases, rules[i], 0, 0.01, &source);
        struct fp8r_fit found = fit(&cases, 0.0005);
        text_is(&found, rules[i]);
    }
}

static void one_sided(void **state)
{
    (void)state;
    static struct cases cases;
    struct noise source = {6};
    cases.count = 0;
    device_add(&cases, "m >= 1", 0, 0.02, &source);
    struct fp8r_fit found = fit(&cases, 0.001);
    text_is(&found, "True");
    assert_int_equal(found.condition_count, 0);
    assert_true(found.is_within && fp8r_fit_holds(&found, 7, 7, 7));
    for (size_t i = 0; i < cases.count; i++) {
        double swap_us = cases.items[i].then_us;
        cases.items[i].then_us = cases.items[i].else_us;
        cases.items[i].else_us = swap_us;
    }
    found = fit(&cases, 0.001);
    text_is(&found, "False");
    assert_true(found.is_within && found.box_count == 0 && !fp8r_fit_holds(&found, 7, 7, 7));
    for (size_t i = 0; i < cases.count; i++)
        cases.items[i].then_us = cases.items[i].else_us;
    found = fit(&cases, 0); /* no difference: nothing is said */
    text_is(&found, "False");
}

static void single(void **state)
{
    (void)state;
    static struct cases cases = {.items = {{.m = 1, .n = 2, .k = 3, .weight = 1, .then_us = 1, .else_us = 2}},
                                 .count = 1};
    struct fp8r_fit found = fit(&cases, 0.01);
    text_is(&found, "True");
    assert_int_equal(found.folds, 0);
    assert_true(found.held_out.worst == 0 && found.never.worst == 1 && found.always.worst == 0);
    cases.items[0].weight = 0; /* nobody runs it */
    found = fit(&cases, 0.01);
    text_is(&found, "False");
    assert_true(found.regret.worst == 0 && found.regret.worst_single == 1);
}

/* A family that the others say nothing about is paid for where it is held out, and nowhere else. */
static void held_out(void **state)
{
    (void)state;
    static struct cases cases;
    cases.count = 0;
    for (int64_t n = 1; n <= 5; n++) {
        for (int64_t m = 1; m <= 4; m++)
            cases.items[cases.count++] = (struct fp8r_fit_case){
                .m = m, .n = n, .k = 8, .weight = 1, .then_us = n == 3 ? 1 : 2, .else_us = n == 3 ? 2 : 1};
    }
    struct fp8r_fit found = fit(&cases, 0);
    text_is(&found, "n == 3");
    assert_int_equal(found.folds, 5);
    assert_true(fabs(found.held_out.worst - 0.2) < 1e-12); /* one family of five takes twice the time */
    assert_true(found.held_out.worst_single == 1 && found.regret.worst == 0);
}

/* Weights: what is not run does not count, what is run often does. */
static void weights(void **state)
{
    (void)state;
    static struct cases cases = {
        .items = {{.m = 1, .n = 8, .k = 8, .weight = 1, .then_us = 2, .else_us = 1},
                  {.m = 2, .n = 8, .k = 8, .weight = 99, .then_us = 1, .else_us = 1.1}},
        .count = 2};
    struct fp8r_fit found = fit(&cases, 0.011);
    text_is(&found, "True");
    assert_true(fabs(found.regret.worst - 0.01) < 1e-12 && fabs(found.never.worst - 0.099) < 1e-12);
    cases.items[0].weight = 99;
    found = fit(&cases, 0.011);
    text_is(&found, "m >= 2");
}

static void same_in_any_order(void **state)
{
    (void)state;
    static struct cases cases, mixed;
    struct noise source = {8};
    cases.count = 0;
    device_add(&cases, FIRST_RULE, 0, 0.05, &source);
    device_add(&cases, SECOND_RULE, 1, 0.05, &source);
    struct fp8r_fit found = fit(&cases, 0.01);
    mixed = cases;
    for (size_t i = mixed.count - 1; i > 0; i--) {
        size_t j = (size_t)((double)(i + 1) * noise_uniform(&source));
        struct fp8r_fit_case swap = mixed.items[i];
        mixed.items[i] = mixed.items[j];
        mixed.items[j] = swap;
    }
    struct fp8r_fit again = fit(&mixed, 0.01);
    assert_memory_equal(&again, &found, sizeof found);
}

/* What the fit says of itself, counted anew from the cases and from its text read back. */
static void says_the_truth(void **state)
{
    (void)state;
    static struct cases cases;
    struct noise source = {9};
    struct fp8r_rule *rule;
    cases.count = 0;
    for (int i = 0; i < 900; i++) { /* problems at random, no grid */
        int64_t m = (int64_t)exp(9.7 * noise_uniform(&source)),
                n = 64 * (1 + (int64_t)(400 * noise_uniform(&source)));
        int64_t k = 64 * (1 + (int64_t)(200 * noise_uniform(&source)));
        bool better = m >= 300 && (n >= 6144 || k >= 9000);
        cases.items[cases.count++] =
            (struct fp8r_fit_case){.m = m,
                                   .n = n,
                                   .k = k,
                                   .device = i % 3,
                                   .weight = 1 + i % 5,
                                   .then_us = 100 * exp(0.02 * noise_normal(&source)),
                                   .else_us = better ? 120 : 85};
    }
    struct fp8r_fit found = fit(&cases, 0.005);
    double lost[3] = {0}, weight[3] = {0}, single = 0;
    assert_int_equal(fp8r_fit_rule(&found, &rule, NULL), 0);
    for (size_t i = 0; i < cases.count; i++) {
        const struct fp8r_fit_case *one = &cases.items[i];
        bool is_then = holds(rule, one->m, one->n, one->k);
        assert_int_equal(is_then, fp8r_fit_holds(&found, one->m, one->n, one->k));
        double regret = (is_then ? one->then_us : one->else_us) / fmin(one->then_us, one->else_us) - 1;
        lost[one->device] += one->weight * regret;
        weight[one->device] += one->weight;
        single = fmax(single, regret);
    }
    for (int i = 0; i < 3; i++)
        assert_true(fabs(found.regret.device[i] - lost[i] / weight[i]) < 1e-12);
    assert_true(found.regret.worst_single == single);
    assert_true(found.is_within && found.condition_count <= 3 && found.folds == 24);
    assert_true(found.held_out.worst < 0.01);
    fp8r_rule_destroy(rule);
}

static void bad_input(void **state)
{
    (void)state;
    static const struct fp8r_fit_case good = {
        .m = 1, .n = 1, .k = 1, .weight = 1, .then_us = 1, .else_us = 1};
    static const struct fp8r_fit_options options[] = {{-0.1, 4}, {1, 4}, {NAN, 4}, {0.01, 0}, {0.01, 9}};
    struct fp8r_fit_case bad[] = {good, good, good, good, good, good, good, good, good, good};
    struct fp8r_fit_options usual = {0.01, 4};
    struct fp8r_fit found;
    struct fp8r_tool_error error;
    bad[0].m = 0;
    bad[1].n = -5;
    bad[2].k = 0;
    bad[3].device = -1;
    bad[4].device = FP8R_FIT_DEVICES_MAX;
    bad[5].weight = -1;
    bad[6].weight = NAN;
    bad[7].then_us = 0;
    bad[8].else_us = NAN;
    bad[9].else_us = INFINITY;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fp8r_fit_case two[] = {good, bad[i]};
        assert_int_equal(fp8r_fit_find(two, 2, &usual, &found, &error), FP8R_EXIT_BAD_DATA);
        assert_non_null(strstr(error.text, "problem 2 (m="));
    }
    assert_int_equal(fp8r_fit_find(&good, 0, &usual, &found, &error), FP8R_EXIT_BAD_DATA);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        assert_int_equal(fp8r_fit_find(&good, 1, &options[i], &found, &error), FP8R_EXIT_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published),         cmocka_unit_test(published_noisy),
                                       cmocka_unit_test(first_rule),        cmocka_unit_test(shorter),
                                       cmocka_unit_test(worst_device),      cmocka_unit_test(bands),
                                       cmocka_unit_test(one_sided),         cmocka_unit_test(single),
                                       cmocka_unit_test(held_out),          cmocka_unit_test(weights),
                                       cmocka_unit_test(same_in_any_order), cmocka_unit_test(says_the_truth),
                                       cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
