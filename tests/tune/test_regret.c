/* Regret on samples made by hand, where every number can be said beforehand.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune/regret.h"

enum { ROUNDS = 20, CANDIDATES = 3 };

static struct fp8r_tool_error failure;
static struct sample samples[CANDIDATES][ROUNDS];
static struct sample_candidate candidates[CANDIDATES];
static struct sample_case it = {.candidates = candidates, .count = CANDIDATES};

/* Candidate i takes even_us[i] in even rounds, odd_us[i] in odd ones. */
static void fill(const double even_us[CANDIDATES], const double odd_us[CANDIDATES])
{
    for (int i = 0; i < CANDIDATES; i++) {
        for (int j = 0; j < ROUNDS; j++)
            samples[i][j] =
                (struct sample){.us = j % 2 == 0 ? even_us[i] : odd_us[i], .round = j, .phase = SAMPLE_GATE};
        candidates[i] = (struct sample_candidate){.samples = samples[i], .count = ROUNDS};
    }
}

static struct regret regret(int routed)
{
    struct regret found;
    assert_int_equal(regret_of(&it, SAMPLE_GATE, routed, &found, &failure), FP8R_EXIT_GOOD);
    return found;
}

static void picks_on_one_half_and_charges_on_the_other(void **state)
{
    (void)state;
    fill((const double[]){100, 80, 90}, (const double[]){110, 100, 55});
    struct regret found = regret(0);
    assert_int_equal(found.best, 1); /* by the even rounds; the odd ones would have said 2 */
    assert_true(found.best_us == 80);
    assert_int_equal(found.pairs, ROUNDS / 2);
    assert_true(fabs(found.value - 0.1) < 1e-12);
    assert_true(fabs(found.low - 0.1) < 1e-12 && fabs(found.high - 0.1) < 1e-12);
}

static void the_best_regrets_nothing(void **state)
{
    (void)state;
    fill((const double[]){100, 80, 90}, (const double[]){110, 100, 55});
    struct regret found = regret(1);
    assert_int_equal(found.best, 1);
    assert_true(found.value == 0 && found.low == 0 && found.high == 0);
    assert_int_equal(found.pairs, ROUNDS / 2);
}

/* Luck in the picking comes back as a negative charge, it is not hidden. */
static void a_lucky_pick_is_charged(void **state)
{
    (void)state;
    fill((const double[]){100, 99, 200}, (const double[]){100, 125, 200});
    assert_true(fabs(regret(0).value + 0.2) < 1e-12);
}

static void pairs_are_of_one_round(void **state)
{
    (void)state;
    fill((const double[]){100, 80, 90}, (const double[]){100, 80, 90});
    for (int j = 1; j < ROUNDS; j += 2) { /* a slow machine in some rounds changes no ratio */
        samples[0][j].us = 120.0 * (1 + j);
        samples[1][j].us = 100.0 * (1 + j);
    }
    assert_true(fabs(regret(0).value - 0.2) < 1e-12);
    candidates[1].count = 14; /* lost its last rounds, 7 even and 7 odd ones are left */
    struct regret found = regret(0);
    assert_int_equal(found.best, 1);
    assert_int_equal(found.pairs, 7);
}

static void who_was_dropped_early_is_not_picked(void **state)
{
    (void)state;
    fill((const double[]){100, 80, 10}, (const double[]){110, 100, 10});
    candidates[2].count = 1;
    assert_int_equal(regret(0).best, 1);
}

static void other_phases_do_not_count(void **state)
{
    (void)state;
    fill((const double[]){100, 80, 90}, (const double[]){110, 100, 55});
    for (int j = 0; j < ROUNDS; j++)
        samples[1][j].phase = SAMPLE_GRID;
    struct regret found = regret(0);
    assert_int_equal(found.best, 2);
    assert_true(fabs(found.value - 1) < 1e-12);
    for (int j = 0; j < ROUNDS; j++)
        samples[0][j].phase = SAMPLE_GRID;
    found = regret(0);
    assert_int_equal(found.pairs, 0);
}

static void adds_up(void **state)
{
    (void)state;
    static const struct regret regrets[] = {
        {.pairs = 10, .value = 0.05, .low = 0.01, .high = 0.09},
        {.pairs = 10, .value = 0, .low = 0, .high = 0},
        {.pairs = 0, .value = 9, .low = 9, .high = 9}, /* nothing is known */
        {.pairs = 10, .value = 0.04, .low = 0.03, .high = 0.05},
        {.pairs = 10, .value = -0.01, .low = -0.02, .high = 0.01}};
    struct regret_summary summary = {0};
    for (size_t i = 0; i < sizeof regrets / sizeof *regrets; i++)
        regret_add(&summary, &regrets[i], 0.02);
    assert_int_equal(summary.counted, 4);
    assert_int_equal(summary.above, 2);
    assert_true(fabs(summary.mean - 0.02) < 1e-12);
    assert_true(summary.worst == 0.05);
    assert_true(summary.worst_low == 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_on_one_half_and_charges_on_the_other),
        cmocka_unit_test(the_best_regrets_nothing),
        cmocka_unit_test(a_lucky_pick_is_charged),
        cmocka_unit_test(pairs_are_of_one_round),
        cmocka_unit_test(who_was_dropped_early_is_not_picked),
        cmocka_unit_test(other_phases_do_not_count),
        cmocka_unit_test(adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
