/* The sequential decision: its constants, its interval, and by simulation what it promises: at most 5 % false
 * `clear` where the gain is the margin, at least 95 % where it is 5 %, a gate that catches a loss of 10 % and
 * does not cry wolf, under every noise of 3 % that measurements have. FP8R_TEST_FULL=1 simulates ten times as
 * much. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/inflation.h"
#include "measure/sequential.h"
#include "tool/noise.h"

enum { PAIRS = 120 };

/* How two times of a pair scatter; all in units of the noise, 3 %. */
struct model {
    const char *name;
    double shared;      /* an autoregression that falls on both */
    double own;         /* one that each has for itself */
    double white;       /* independent */
    double rho;         /* of both autoregressions */
    double outliers;    /* share of times that double */
    double trend;       /* the ratio's drift from first to last pair */
    int freedom;        /* white noise is Student's t with so many degrees; 0: normal */
    bool is_answerable; /* 120 such pairs can tell 5 % from 2 %; otherwise `noisy` is the right answer */
};

/* own 1, rho 0.8: the mean of 120 ratios has a deviation of 1.2 %, so that not even a fixed test at 5 % with
 * known variance tells 5 % from 2 % more often than four times in five. */
static const struct model models[] = {
    {.name = "independent", .white = 1, .is_answerable = true},
    {.name = "shared drift 0.5", .shared = 0.8, .white = 0.6, .rho = 0.5, .is_answerable = true},
    {.name = "shared drift 0.8", .shared = 0.8, .white = 0.6, .rho = 0.8, .is_answerable = true},
    {.name = "shared drift 0.8, large", .shared = 4, .white = 1, .rho = 0.8, .is_answerable = true},
    {.name = "autocorrelated 0.3", .own = 1, .rho = 0.3, .is_answerable = true},
    {.name = "autocorrelated 0.5", .own = 1, .rho = 0.5, .is_answerable = true},
    {.name = "autocorrelated 0.8, half", .own = 0.5, .white = 0.866, .rho = 0.8, .is_answerable = true},
    {.name = "autocorrelated 0.8", .own = 1, .rho = 0.8},
    {.name = "t, 2 degrees", .white = 1, .freedom = 2, .is_answerable = true},
    {.name = "t, 3 degrees", .white = 1, .freedom = 3, .is_answerable = true},
    {.name = "outliers", .white = 1, .outliers = 0.05, .is_answerable = true},
    {.name = "outliers and drift",
     .shared = 1,
     .white = 1,
     .rho = 0.8,
     .outliers = 0.05,
     .is_answerable = true},
    {.name = "trend", .white = 1, .trend = 1, .is_answerable = true}};

static void pairs_make(const struct model *model, double gain, double noise, struct noise *source,
                       struct fp8r_pair *pairs)
{
    double drift = noise_normal(source), own[2] = {noise_normal(source), noise_normal(source)};
    for (int i = 0; i < PAIRS; i++) {
        double times[2] = {1.0 + gain, 1.0};
        drift = noise_follow(source, drift, model->rho);
        for (int j = 0; j < 2; j++) {
            own[j] = noise_follow(source, own[j], model->rho);
            double white = model->freedom > 0 ? noise_student(source, model->freedom) : noise_normal(source);
            double trend = j == 0 ? model->trend * ((double)i / (PAIRS - 1) - 0.5) : 0;
            times[j] *=
                exp(noise * (model->shared * drift + model->own * own[j] + model->white * white + trend));
            if (noise_uniform(source) < model->outliers) times[j] *= 2;
        }
        pairs[i] = (struct fp8r_pair){.base_us = 100 * times[0], .other_us = 100 * times[1]};
    }
}

struct tally {
    double share[FP8R_PAIRED_VERDICTS];
    double pairs; /* mean number */
};

static int repeats(int fast)
{
    return getenv("FP8R_TEST_FULL") != NULL ? 10 * fast : fast;
}

static struct tally simulate(enum fp8r_sequential_kind kind, const struct model *model, double gain,
                             double noise, int runs)
{
    struct fp8r_sequential_options options = fp8r_sequential_defaults(kind);
    struct fp8r_sequential sequential;
    struct noise source = {(uint64_t)(model - models) + (uint64_t)(gain * 1000) + 17};
    struct tally tally = {{0}, 0};
    assert_int_equal(fp8r_sequential_init(&sequential, &options, NULL), 0);
    for (int run = 0; run < runs; run++) {
        struct fp8r_pair pairs[PAIRS];
        struct fp8r_paired_result result;
        pairs_make(model, gain, noise, &source, pairs);
        assert_int_equal(fp8r_sequential_decide(&sequential, pairs, PAIRS, &result, NULL), 0);
        tally.share[result.verdict] += 1.0 / runs;
        tally.pairs += (double)result.pairs / runs;
    }
    return tally;
}

static void tune_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct model *model = &models[i];
        struct tally margin = simulate(FP8R_SEQUENTIAL_TUNE, model, 0.02, 0.03, repeats(1000));
        struct tally equal = simulate(FP8R_SEQUENTIAL_TUNE, model, 0, 0.03, repeats(500));
        struct tally gain = simulate(FP8R_SEQUENTIAL_TUNE, model, 0.05, 0.03, repeats(1000));
        printf("%-26s clear at 2 %%: %5.2f %%, at 0 %%: %5.2f %%, at 5 %%: %6.2f %% (noisy %5.2f %%, %3.0f "
               "pairs)\n",
               model->name, 100 * margin.share[FP8R_PAIRED_CLEAR], 100 * equal.share[FP8R_PAIRED_CLEAR],
               100 * gain.share[FP8R_PAIRED_CLEAR], 100 * gain.share[FP8R_PAIRED_NOISY], gain.pairs);
        assert_true(margin.share[FP8R_PAIRED_CLEAR] <= 0.05);
        assert_true(equal.share[FP8R_PAIRED_CLEAR] <= 0.005);
        if (model->is_answerable) assert_true(gain.share[FP8R_PAIRED_CLEAR] >= 0.95);
        /* A tie where the gain is 5 % would hide it for good: noisy ones are measured again. */
        assert_true(gain.share[FP8R_PAIRED_TIE] <= 0.05);
    }
}

static void gate_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct model *model = &models[i];
        struct tally equal = simulate(FP8R_SEQUENTIAL_GATE, model, 0, 0.03, repeats(1000));
        struct tally loss = simulate(FP8R_SEQUENTIAL_GATE, model, 0.10, 0.03, repeats(1000));
        printf("%-26s regression at 0 %%: %5.2f %% (%3.0f pairs), at 10 %%: %6.2f %% (%3.0f pairs)\n",
               model->name, 100 * equal.share[FP8R_PAIRED_REGRESSION], equal.pairs,
               100 * loss.share[FP8R_PAIRED_REGRESSION], loss.pairs);
        assert_true(equal.share[FP8R_PAIRED_REGRESSION] <= 0.01);
        assert_true(loss.share[FP8R_PAIRED_REGRESSION] >= 0.99);
    }
}

static void spread_is_noisy(void **state)
{
    (void)state;
    struct tally wide = simulate(FP8R_SEQUENTIAL_TUNE, &models[0], 0.03, 0.15, repeats(300));
    struct tally gate = simulate(FP8R_SEQUENTIAL_GATE, &models[0], 0.02, 0.15, repeats(300));
    struct tally huge = simulate(FP8R_SEQUENTIAL_TUNE, &models[0], 0.8, 0.15, repeats(300));
    assert_true(wide.share[FP8R_PAIRED_NOISY] >= 0.9);
    assert_true(gate.share[FP8R_PAIRED_INCONCLUSIVE] >= 0.9);
    struct tally equal = simulate(FP8R_SEQUENTIAL_GATE, &models[0], 0, 0.15, repeats(1000));
    assert_true(equal.share[FP8R_PAIRED_REGRESSION] <= 0.01);
    assert_true(huge.share[FP8R_PAIRED_CLEAR] >= 0.999); /* noise does not hide what is larger than it */
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(constants),       cmocka_unit_test(interval),
                                       cmocka_unit_test(looks_are_fixed), cmocka_unit_test(bad_arguments),
                                       cmocka_unit_test(bad_times),       cmocka_unit_test(inflation),
                                       cmocka_unit_test(names),           cmocka_unit_test(tune_errors),
                                       cmocka_unit_test(gate_errors),     cmocka_unit_test(spread_is_noisy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
