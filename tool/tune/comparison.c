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

/* The samples of one run: they lie together. */
static struct sample_candidate of_run(const struct sample_candidate *it, int run)
{
    struct sample_candidate part = {.samples = it->samples};
    size_t first = 0;
    while (first < it->count && it->samples[first].run != run)
        first++;
    part.samples += first;
    while (first + part.count < it->count && part.samples[part.count].run == run)
        part.count++;
    return part;
}

/* Is all of the interval above the margin? So few pairs that they bound nothing say no. */
static bool is_above(const struct fp8r_ratio *ratio, double coverage, double margin)
{
    return ratio->interval.coverage >= coverage && ratio->interval.low > 1 + margin;
}

/* What gates say, each for itself. */
struct gates {
    int count; /* that timed both */
    bool is_faster, is_slower; /* one found other faster by the margin; one found it slower at all */
};

static struct gates each_gate(const struct sample_case *it, int base, int other,
                              const struct fp8r_sequential_options *options, double coverage,
                              struct comparison_scratch *scratch)
{
    const struct sample_candidate *mine = &it->candidates[base];
    struct gates gates = {0};
    int last = -1;
    for (size_t i = 0; i < mine->count; i++) {
        if (mine->samples[i].phase != SAMPLE_GATE || mine->samples[i].run == last)
            continue;
        last = mine->samples[i].run;
        const struct sample_candidate a = of_run(mine, last), b = of_run(&it->candidates[other], last);
        const size_t count = sample_pairs(&a, &b, SAMPLE_GATE, scratch->a, scratch->b, scratch->capacity);
        if (count == 0)
            continue;
        const struct fp8r_ratio ratio = fp8r_paired_ratio(scratch->a, scratch->b, count, coverage, scratch->ratios);
        gates.count++;
        gates.is_faster = gates.is_faster || is_above(&ratio, coverage, options->margin);
        gates.is_slower = gates.is_slower || (ratio.interval.coverage >= coverage && ratio.interval.high < 1);
    }
    return gates;
}

/* A gate's pairs are looked at in the order in which they were taken, and the first look may end it. Were those of a later
 * gate only behind them, what it found would never count: here all of them are one sample, looked at once. Devices of one
 * kind differ by some percent, and so do processes: what is faster on one and slower on none, nor on the whole, is taken as
 * well. */
static void compare_gates(const struct gates *gates, const struct fp8r_sequential_options *options, double coverage,
                          size_t count, struct comparison_scratch *scratch, struct fp8r_paired_result *result)
{
    const struct fp8r_ratio ratio = fp8r_paired_ratio(scratch->a, scratch->b, count, coverage, scratch->ratios);
    *result = (struct fp8r_paired_result){.verdict = FP8R_PAIRED_TIE, .pairs = (int)count, .ratio = ratio.median,
                                          .low = ratio.interval.low, .high = ratio.interval.high, .inflation = 1};
    if (is_above(&ratio, coverage, options->margin) || (gates->is_faster && !gates->is_slower && ratio.median > 1))
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
    const double coverage = 1 - 2 * options.error / options.candidates;
    const struct gates gates = each_gate(it, base, other, &options, coverage, scratch);
    size_t count = phase_pairs(it, base, other, SAMPLE_GATE, scratch);
    if (gates.count > 1 && count >= (size_t)sequential.looks[0])
        compare_gates(&gates, &options, coverage, count, scratch, result);
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
    if (is_above(&ratio, quick_coverage, margin))
        result->verdict = FP8R_PAIRED_CLEAR;
}
