/* Two candidates of a case held against each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "measure/statistics.h"

/* A quick tune takes few samples and does not look twice: one interval of this coverage a comparison. */
static const double quick_coverage = 0.99;

void comparison_scratch_fini(struct comparison_scratch *scratch)
{
    free(scratch->a);
    free(scratch->b);
    free(scratch->ratios);
    free(scratch->pairs);
}

bool comparison_scratch_init(const struct samples *samples, struct comparison_scratch *scratch)
{
    *scratch = (struct comparison_scratch){.capacity = 1};
    for (size_t i = 0; i < samples->case_count; i++)
        for (int j = 0; j < samples->cases[i].count; j++)
            if (samples->cases[i].candidates[j].count > scratch->capacity)
                scratch->capacity = samples->cases[i].candidates[j].count;
    scratch->a = calloc(scratch->capacity, sizeof *scratch->a);
    scratch->b = calloc(scratch->capacity, sizeof *scratch->b);
    scratch->ratios = calloc(scratch->capacity, sizeof *scratch->ratios);
    scratch->pairs = calloc(scratch->capacity, sizeof *scratch->pairs);
    return scratch->a && scratch->b && scratch->ratios && scratch->pairs;
}

/* Pairs of two candidates: base and other, of a confirming phase. */
static size_t phase_pairs(const struct sample_case *it, int base, int other, int phase, struct comparison_scratch *scratch)
{
    size_t count = sample_pairs(&it->candidates[base], &it->candidates[other], phase, scratch->a, scratch->b,
                                scratch->capacity);
    for (size_t i = 0; i < count; i++)
        scratch->pairs[i] = (struct fp8r_pair){.base_us = scratch->a[i], .other_us = scratch->b[i]};
    return count;
}

/* The tuner's own; none where nothing held still. */
static size_t tuner_pairs(const struct sample_case *it, int base, int other, struct comparison_scratch *scratch)
{
    return it->is_noisy ? 0 : phase_pairs(it, base, other, SAMPLE_CONFIRM, scratch);
}

size_t comparison_confirming_pairs(const struct sample_case *it, int base, int other, struct comparison_scratch *scratch)
{
    const size_t count = tuner_pairs(it, base, other, scratch);
    return count > 0 ? count : phase_pairs(it, base, other, SAMPLE_GATE, scratch);
}

static bool was_gated(const struct sample_candidate *it, int run)
{
    for (size_t i = 0; i < it->count; i++)
        if (it->samples[i].phase == SAMPLE_GATE && it->samples[i].run == run)
            return true;
    return false;
}

/* How many gates timed both. */
static int gates_of(const struct sample_candidate *a, const struct sample_candidate *b)
{
    int gates = 0, last = -1;
    for (size_t i = 0; i < a->count; i++)
        if (a->samples[i].phase == SAMPLE_GATE && a->samples[i].run != last) {
            last = a->samples[i].run;
            gates += was_gated(b, last);
        }
    return gates;
}

/* A gate's pairs are looked at in the order in which they were taken, and the first look may end it. Were those of a later
 * gate only behind them, what it found would never count: here all of them are one sample, looked at once. */
static void compare_gates(const struct fp8r_sequential_options *options, size_t count, struct comparison_scratch *scratch,
                          struct fp8r_paired_result *result)
{
    const double coverage = 1 - 2 * options->error / options->candidates;
    const struct fp8r_ratio ratio = fp8r_paired_ratio(scratch->a, scratch->b, count, coverage, scratch->ratios);
    *result = (struct fp8r_paired_result){.verdict = FP8R_PAIRED_TIE, .pairs = (int)count, .ratio = ratio.median,
                                          .low = ratio.interval.low, .high = ratio.interval.high, .inflation = 1};
    if (ratio.interval.coverage >= coverage && ratio.interval.low > 1 + options->margin)
        result->verdict = FP8R_PAIRED_CLEAR;
    else if (ratio.interval.high - ratio.interval.low > options->width_max)
        result->verdict = FP8R_PAIRED_NOISY;
}

int comparison_full(const struct sample_case *it, int base, int other, double margin, int comparisons,
                    struct comparison_scratch *scratch, struct fp8r_paired_result *result, struct fp8r_tool_error *error)
{
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    struct fp8r_sequential sequential;
    options.margin = margin;
    options.candidates = comparisons > 0 ? comparisons : 1;
    int code = fp8r_sequential_init(&sequential, &options, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    size_t count = phase_pairs(it, base, other, SAMPLE_GATE, scratch);
    if (gates_of(&it->candidates[base], &it->candidates[other]) > 1)
        compare_gates(&options, count, scratch, result);
    else
        code = fp8r_sequential_decide(&sequential, scratch->pairs, count, result, error);
    if (code != FP8R_EXIT_GOOD || result->verdict == FP8R_PAIRED_CLEAR || result->verdict == FP8R_PAIRED_TIE)
        return code;
    count = tuner_pairs(it, base, other, scratch);
    return count > 0 ? fp8r_sequential_decide(&sequential, scratch->pairs, count, result, error) : code;
}

void comparison_quick(const struct sample_case *it, int base, int other, double margin, struct comparison_scratch *scratch,
                      struct fp8r_paired_result *result)
{
    size_t count = sample_pairs(&it->candidates[base], &it->candidates[other], SAMPLE_GRID, scratch->a, scratch->b,
                                scratch->capacity);
    *result = (struct fp8r_paired_result){.verdict = FP8R_PAIRED_TIE, .pairs = (int)count};
    if (count == 0)
        return;
    struct fp8r_ratio ratio = fp8r_paired_ratio(scratch->a, scratch->b, count, quick_coverage, scratch->ratios);
    result->ratio = ratio.median;
    result->low = ratio.interval.low;
    result->high = ratio.interval.high;
    if (result->low > 1 + margin && ratio.interval.coverage >= quick_coverage)
        result->verdict = FP8R_PAIRED_CLEAR;
}
