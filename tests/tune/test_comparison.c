/* Which pairs settle a comparison: the tuner's, a gate's behind them, and what several gates say together.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "measure/random.h"
#include "tune/comparison.h"

enum { MOST = 400 };

static struct fp8r_tool_error failure;
static struct sample base_samples[MOST], other_samples[MOST];
static struct sample_candidate candidates[2] = {{.name = "sm90:one", .samples = base_samples},
                                                {.name = "sm90:two", .samples = other_samples}};
static struct sample_case it = {.candidates = candidates, .count = 2};
static struct fp8r_random noise = {7};

/* `pairs` of a run and phase in which the other one is `ratio` times as fast, give or take half a percent. */
static void take(int run, int phase, int pairs, double ratio)
{
    for (int round = 0; round < pairs; round++) {
        const struct sample base = {.us = 10, .run = run, .round = round, .phase = (int16_t)phase};
        struct sample other = base;
        other.us = 10 / ratio * (1 + 0.01 * (fp8r_random_unit(&noise) - 0.5));
        assert_true(candidates[0].count < MOST);
        base_samples[candidates[0].count++] = base;
        other_samples[candidates[1].count++] = other;
    }
}

static struct fp8r_paired_result judge(void)
{
    const struct samples samples = {.cases = &it, .case_count = 1};
    struct comparison_scratch scratch;
    struct fp8r_paired_result result;
    assert_true(comparison_scratch_init(&samples, &scratch));
    assert_int_equal(comparison_full(&it, 0, 1, 0.02, 1, &scratch, &result, &failure), FP8R_EXIT_GOOD);
    comparison_scratch_fini(&scratch);
    candidates[0].count = candidates[1].count = 0;
    return result;
}

static void the_tuner_decides_alone(void **state)
{
    (void)state;
    take(0, SAMPLE_CONFIRM, 30, 1.05);
    assert_int_equal(judge().verdict, FP8R_PAIRED_CLEAR);
    take(0, SAMPLE_CONFIRM, 60, 1.01);
    assert_int_equal(judge().verdict, FP8R_PAIRED_TIE);
    assert_int_equal(judge().verdict, FP8R_PAIRED_GO_ON); /* nobody has any */
}

static void a_gate_behind_it_settles(void **state)
{
    (void)state;
    take(0, SAMPLE_CONFIRM, 30, 1.05);
    take(1, SAMPLE_GATE, 30, 1.01);
    assert_int_equal(judge().verdict, FP8R_PAIRED_TIE);
    take(0, SAMPLE_CONFIRM, 30, 1.01);
    take(1, SAMPLE_GATE, 30, 1.05);
    assert_int_equal(judge().verdict, FP8R_PAIRED_CLEAR);
}

/* The first gate's pairs end its question, and must not end that of those that followed. */
static void later_gates_count(void **state)
{
    (void)state;
    take(0, SAMPLE_CONFIRM, 30, 1.05);
    take(1, SAMPLE_GATE, 30, 1.012);
    take(2, SAMPLE_GATE, 30, 1.045);
    take(3, SAMPLE_GATE, 120, 1.05);
    const struct fp8r_paired_result result = judge();
    assert_int_equal(result.verdict, FP8R_PAIRED_CLEAR);
    assert_int_equal(result.pairs, 180);
    assert_true(result.low > 1.02 && result.high < 1.06);
    take(1, SAMPLE_GATE, 30, 1.05);
    take(2, SAMPLE_GATE, 60, 1.01);
    take(3, SAMPLE_GATE, 60, 0.99);
    assert_int_equal(judge().verdict, FP8R_PAIRED_TIE);
}

/* Gates that contradict each other settle nothing: the tuner's own pairs do, or nobody's. */
static void gates_may_contradict_each_other(void **state)
{
    (void)state;
    take(1, SAMPLE_GATE, 45, 1.06);
    take(2, SAMPLE_GATE, 45, 0.96);
    assert_int_equal(judge().verdict, FP8R_PAIRED_NOISY);
    take(0, SAMPLE_CONFIRM, 30, 1.05);
    take(1, SAMPLE_GATE, 45, 1.06);
    take(2, SAMPLE_GATE, 45, 0.96);
    assert_int_equal(judge().verdict, FP8R_PAIRED_CLEAR);
    it.is_noisy = true;
    take(0, SAMPLE_CONFIRM, 30, 1.05);
    take(1, SAMPLE_GATE, 45, 1.06);
    take(2, SAMPLE_GATE, 45, 0.96);
    assert_int_equal(judge().verdict, FP8R_PAIRED_NOISY);
    it.is_noisy = false;
}

/* Devices of one kind differ: what one gate found faster, and none slower, is taken. */
static void faster_somewhere_and_slower_nowhere(void **state)
{
    (void)state;
    take(1, SAMPLE_GATE, 30, 1.004);
    take(2, SAMPLE_GATE, 30, 1.003);
    take(3, SAMPLE_GATE, 30, 1.0);
    take(4, SAMPLE_GATE, 30, 1.043);
    assert_int_equal(judge().verdict, FP8R_PAIRED_CLEAR);
    take(1, SAMPLE_GATE, 30, 1.004);
    take(2, SAMPLE_GATE, 30, 0.99);
    take(3, SAMPLE_GATE, 30, 1.0);
    take(4, SAMPLE_GATE, 30, 1.043);
    assert_int_not_equal(judge().verdict, FP8R_PAIRED_CLEAR);
}

/* Too little in each gate to be sure of, but in most pairs the wrong way: two of three slower, one of them faster. */
static void slower_on_the_whole(void **state)
{
    (void)state;
    for (int run = 1; run <= 5; run++) {
        const size_t first = candidates[1].count;
        take(run, SAMPLE_GATE, 30, 1);
        for (size_t i = first; i < candidates[1].count; i++)
            other_samples[i].us = i % 3 ? 10.1 : 9.9;
    }
    take(6, SAMPLE_GATE, 30, 1.043);
    const struct fp8r_paired_result result = judge();
    assert_true(result.ratio < 1);
    assert_int_not_equal(result.verdict, FP8R_PAIRED_CLEAR);
}

/* A gate that was interrupted has too few pairs for an interval: what they happen to say is nothing that it found. */
static void a_few_pairs_are_no_finding(void **state)
{
    (void)state;
    take(1, SAMPLE_GATE, 30, 1.0);
    take(2, SAMPLE_GATE, 1, 1.5);
    assert_int_equal(judge().verdict, FP8R_PAIRED_TIE);
    take(1, SAMPLE_GATE, 30, 1.004); /* not slower on the whole, which alone would decide above */
    take(2, SAMPLE_GATE, 1, 1.5);
    assert_int_equal(judge().verdict, FP8R_PAIRED_TIE);
    take(1, SAMPLE_GATE, 30, 1.004);
    take(2, SAMPLE_GATE, 30, 1.003);
    take(3, SAMPLE_GATE, 30, 1.043);
    take(4, SAMPLE_GATE, 1, 0.9);
    assert_int_equal(judge().verdict, FP8R_PAIRED_CLEAR);
}

/* Nor do all gates together end the question before the first look. */
static void a_few_pairs_of_several_gates_settle_nothing(void **state)
{
    (void)state;
    take(0, SAMPLE_CONFIRM, 30, 1.05);
    take(1, SAMPLE_GATE, 1, 1.0);
    take(2, SAMPLE_GATE, 1, 1.0);
    assert_int_equal(judge().verdict, FP8R_PAIRED_CLEAR);
    take(1, SAMPLE_GATE, 2, 1.0);
    take(2, SAMPLE_GATE, 2, 1.5);
    const struct fp8r_paired_result result = judge();
    assert_int_equal(result.verdict, FP8R_PAIRED_GO_ON);
    assert_int_equal(result.pairs_next, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_tuner_decides_alone), cmocka_unit_test(a_gate_behind_it_settles),
                                       cmocka_unit_test(later_gates_count),
                                       cmocka_unit_test(gates_may_contradict_each_other),
                                       cmocka_unit_test(faster_somewhere_and_slower_nowhere),
                                       cmocka_unit_test(slower_on_the_whole),
                                       cmocka_unit_test(a_few_pairs_are_no_finding),
                                       cmocka_unit_test(a_few_pairs_of_several_gates_settle_nothing)};
    return cmocka_run_group_tests_name("comparisons", tests, NULL, NULL);
}
