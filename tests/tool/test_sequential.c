/* The sequential decision: its constants, its interval, and by simulation what it promises: at most 5 % false
 * `clear` where the gain is the margin, at least 95 % where it is 5 %, a gate that catches a loss of 10 % and
 * does not cry wolf, under every noise of 3 % that measurements have. FP8R_TEST_FULL=1 simulates ten times as
 * much. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "measure/inflation.h"
#include "measure/sequential.h"
#include "tool/noise.h"
#include "tool/sequential_simulation.h"

static double spent_max(const struct fp8r_sequential_options *options, struct fp8r_sequential *sequential)
{
    assert_int_equal(fp8r_sequential_init(sequential, options, NULL), 0);
    return sequential->spent[sequential->look_count - 1];
}

static void constants(void **state)
{
    (void)state;
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    struct fp8r_sequential sequential;
    double spent = spent_max(&options, &sequential);
    assert_int_equal(sequential.look_count, 5);
    assert_true(spent <= options.error && spent > 0.8 * options.error);
    for (int i = 0; i < 5; i++)
        assert_true(2 * sequential.critical[i] > sequential.looks[i]);
    for (int i = 1; i < 5; i++)
        assert_true(sequential.spent[i] >= sequential.spent[i - 1]);
    options.candidates = 4;
    assert_true(spent_max(&options, &sequential) <= options.error / 4);
    options.candidates = 1000000000; /* nothing can be said from 30 pairs, and that is no error */
    assert_true(spent_max(&options, &sequential) <= options.error / 1e9);
    assert_int_equal(sequential.critical[0], 31);
    options.candidates = 1;
    options.pairs_max = 30; /* one look: a plain sign test; P(heads >= 21 of 30) = 0.0214, >= 20: 0.0494 */
    spent = spent_max(&options, &sequential);
    assert_int_equal(sequential.look_count, 1);
    assert_int_equal(sequential.critical[0], 21);
    assert_true(fabs(spent - 0.021386972628533840) < 1e-12);
}

/* Ratios 1, 2, .. 30 in an order without neighbours alike: the interval's ends can be counted. */
static void interval(void **state)
{
    (void)state;
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    struct fp8r_sequential sequential;
    struct fp8r_pair pairs[30];
    struct fp8r_paired_result result;
    options.pairs_max = 30;
    options.width_max = 0.9;
    assert_int_equal(fp8r_sequential_init(&sequential, &options, NULL), 0);
    for (int i = 0; i < 30; i++)
        pairs[i] = (struct fp8r_pair){.base_us = i % 2 == 0 ? 30 - i / 2 : 1 + i / 2, .other_us = 1};
    assert_int_equal(fp8r_sequential_decide(&sequential, pairs, 30, &result, NULL), 0);
    assert_true(result.inflation == 1.0);
    assert_true(result.ratio == 15.5 && result.low == 10 &&
                result.high == 21); /* 21 ratios are >= 10, and <= 21 */
    assert_int_equal(result.verdict, FP8R_PAIRED_CLEAR);
    for (int i = 0; i < 30; i++)
        pairs[i].base_us = 1 + i; /* in order: nothing is known of the median */
    assert_int_equal(fp8r_sequential_decide(&sequential, pairs, 30, &result, NULL), 0);
    assert_true(result.low == 0 && isinf(result.high) && result.inflation > 5);
    assert_int_equal(result.verdict, FP8R_PAIRED_NOISY);
}

static void looks_are_fixed(void **state)
{
    (void)state;
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    struct fp8r_sequential sequential;
    struct fp8r_pair pairs[PAIRS];
    struct fp8r_paired_result result, whole;
    struct noise source = {5};
    assert_int_equal(fp8r_sequential_init(&sequential, &options, NULL), 0);
    pairs_make(&models[0], 0.035, 0.03, &source, pairs);
    assert_int_equal(fp8r_sequential_decide(&sequential, pairs, PAIRS, &whole, NULL), 0);
    assert_in_range(whole.pairs, 45, PAIRS);
    for (int count = 0; count <= PAIRS; count++) {
        static const int looks[] = {30, 45, 60, 90, 120};
        int reached = 0, next = 0;
        for (int i = 0; i < 5 && next == 0; i++) {
            if (looks[i] <= count)
                reached = looks[i];
            else
                next = looks[i];
        }
        assert_int_equal(fp8r_sequential_decide(&sequential, pairs, (size_t)count, &result, NULL), 0);
        if (count >= whole.pairs) {
            assert_memory_equal(&result, &whole, sizeof result);
            continue;
        }
        assert_int_equal(result.verdict, FP8R_PAIRED_GO_ON);
        assert_int_equal(result.pairs, reached);
        assert_int_equal(result.pairs_next, next);
        pairs[whole.pairs].base_us = NAN; /* past the deciding look: not read */
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    static const struct {
        double margin, error, width;
        int candidates, pairs;
        const char *text;
    } cases[] = {{0, .01, .1, 1, 120, "margin"},      {NAN, .01, .1, 1, 120, "margin"},
                 {.02, 0, .1, 1, 120, "error"},       {.02, .5, .1, 1, 120, "error"},
                 {.02, .01, 2, 1, 120, "width"},      {.02, .01, .1, 0, 120, "candidates"},
                 {.02, .01, .1, 1, 31, "30, 45, 60"}, {.02, NAN, .1, 1, 120, "error"}};
    struct fp8r_sequential sequential;
    struct fp8r_tool_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_sequential_options options = {.margin = cases[i].margin,
                                                  .error = cases[i].error,
                                                  .width_max = cases[i].width,
                                                  .candidates = cases[i].candidates,
                                                  .pairs_max = cases[i].pairs};
        assert_int_equal(fp8r_sequential_init(&sequential, &options, &error), FP8R_EXIT_USAGE);
        assert_non_null(strstr(error.text, cases[i].text));
    }
}

static void bad_times(void **state)
{
    (void)state;
    static const struct fp8r_pair bad[] = {{NAN, 1}, {1, NAN},      {0, 1},        {1, 0},
                                           {-1, -1}, {INFINITY, 1}, {1, INFINITY}, {1e-200, 1e200}};
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_GATE);
    struct fp8r_sequential sequential;
    assert_int_equal(fp8r_sequential_init(&sequential, &options, NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fp8r_pair pairs[45];
        struct fp8r_paired_result result;
        struct fp8r_tool_error error;
        struct noise source = {i};
        for (int j = 0; j < 45; j++)
            pairs[j] = (struct fp8r_pair){1.02 * exp(0.1 * noise_normal(&source)), 1};
        pairs[40] = bad[i];
        assert_int_equal(fp8r_sequential_decide(&sequential, pairs, 45, &result, &error), FP8R_EXIT_BAD_DATA);
        assert_non_null(strstr(error.text, "pair 41"));
    }
}

static void inflation(void **state)
{
    (void)state;
    static const struct {
        double rho, low, high;
    } cases[] = {{0, 1, 1.3}, {0.5, 1.9, 3.2}, {0.8, 4.5, 8.5}};
    double samples[FP8R_INFLATION_SAMPLES_MAX];
    for (size_t i = 0; i < 3; i++) {
        struct noise source = {i + 3};
        double mean = 0;
        for (int run = 0; run < 400; run++) {
            double value = noise_normal(&source);
            for (int j = 0; j < FP8R_INFLATION_SAMPLES_MAX; j++)
                samples[j] =
                    exp(3 * (value = noise_follow(&source, value, cases[i].rho))); /* ranks, not values */
            mean += fp8r_median_inflation(samples, FP8R_INFLATION_SAMPLES_MAX) / 400;
        }
        assert_true(mean >= cases[i].low && mean <= cases[i].high);
    }
    for (int j = 0; j < 30; j++)
        samples[j] = 1;
    assert_true(fp8r_median_inflation(samples, 30) == 1.0); /* a coarse clock */
    for (int j = 0; j < 30; j++)
        samples[j] = j % 2;
    assert_true(fp8r_median_inflation(samples, 30) ==
                1.0); /* neighbours that differ do not narrow the interval */
    assert_true(fp8r_median_inflation(samples, 2) >= 1.0);
}

static void names(void **state)
{
    (void)state;
    for (int i = 0; i < FP8R_PAIRED_VERDICTS; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(fp8r_paired_verdict_name((enum fp8r_paired_verdict)i),
                                    fp8r_paired_verdict_name((enum fp8r_paired_verdict)j));
        }
    }
}

static void tune_promises(void **state)
{
    (void)state;
    tune_errors(1);
}

static void gate_promises(void **state)
{
    (void)state;
    gate_errors(1);
}

static void spread(void **state)
{
    (void)state;
    spread_is_noisy(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(constants),       cmocka_unit_test(interval),
                                       cmocka_unit_test(looks_are_fixed), cmocka_unit_test(bad_arguments),
                                       cmocka_unit_test(bad_times),       cmocka_unit_test(inflation),
                                       cmocka_unit_test(names),           cmocka_unit_test(tune_promises),
                                       cmocka_unit_test(gate_promises),   cmocka_unit_test(spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
