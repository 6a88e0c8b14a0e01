/* Simulated tunes and gates under every noise of 3 % that measurements have, and what they promise: at most 5
 * % false `clear` where the gain is the margin, at least 95 % where it is 5 %, a gate that catches a loss of
 * 10 % and does not cry wolf. Included by the fast test and by the full one, which simulates ten times as
 * much. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEST_SEQUENTIAL_SIMULATION_H
#define FP8R_TEST_SEQUENTIAL_SIMULATION_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

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

static inline void pairs_make(const struct model *model, double gain, double noise, struct noise *source,
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

static inline struct tally simulate(enum fp8r_sequential_kind kind, const struct model *model, double gain,
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

static inline void tune_errors(int times)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct model *model = &models[i];
        struct tally margin = simulate(FP8R_SEQUENTIAL_TUNE, model, 0.02, 0.03, 1000 * times);
        struct tally equal = simulate(FP8R_SEQUENTIAL_TUNE, model, 0, 0.03, 500 * times);
        struct tally gain = simulate(FP8R_SEQUENTIAL_TUNE, model, 0.05, 0.03, 1000 * times);
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

static inline void gate_errors(int times)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct model *model = &models[i];
        struct tally equal = simulate(FP8R_SEQUENTIAL_GATE, model, 0, 0.03, 500 * times);
        struct tally loss = simulate(FP8R_SEQUENTIAL_GATE, model, 0.10, 0.03, 500 * times);
        printf("%-26s regression at 0 %%: %5.2f %% (%3.0f pairs), at 10 %%: %6.2f %% (%3.0f pairs)\n",
               model->name, 100 * equal.share[FP8R_PAIRED_REGRESSION], equal.pairs,
               100 * loss.share[FP8R_PAIRED_REGRESSION], loss.pairs);
        assert_true(equal.share[FP8R_PAIRED_REGRESSION] <= 0.01);
        assert_true(loss.share[FP8R_PAIRED_REGRESSION] >= 0.99);
    }
}

static inline void spread_is_noisy(int times)
{
    struct tally wide = simulate(FP8R_SEQUENTIAL_TUNE, &models[0], 0.03, 0.15, 300 * times);
    struct tally gate = simulate(FP8R_SEQUENTIAL_GATE, &models[0], 0.02, 0.15, 300 * times);
    struct tally huge = simulate(FP8R_SEQUENTIAL_TUNE, &models[0], 0.8, 0.15, 300 * times);
    assert_true(wide.share[FP8R_PAIRED_NOISY] >= 0.9);
    assert_true(gate.share[FP8R_PAIRED_INCONCLUSIVE] >= 0.9);
    struct tally equal = simulate(FP8R_SEQUENTIAL_GATE, &models[0], 0, 0.15, 1000 * times);
    assert_true(equal.share[FP8R_PAIRED_REGRESSION] <= 0.01);
    assert_true(huge.share[FP8R_PAIRED_CLEAR] >= 0.999); /* noise does not hide what is larger than it */
}

#endif
