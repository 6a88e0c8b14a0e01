/* Group-sequential sign test, turned round into an interval of the median. The constants are computed, not
 * tabled: exact for independent pairs whatever their distribution, widened where neighbouring pairs resemble
 * each other. SPDX-License-Identifier: Apache-2.0 */
#include "measure/sequential.h"

#include <math.h>
#include <string.h>

#include "measure/inflation.h"
#include "measure/statistics.h"

enum { PAIRS_MAX = FP8R_INFLATION_SAMPLES_MAX };

static const int schedule[FP8R_SEQUENTIAL_LOOKS] = {30, 45, 60, 90, PAIRS_MAX};

struct fp8r_sequential_options fp8r_sequential_defaults(enum fp8r_sequential_kind kind)
{
    return (struct fp8r_sequential_options){.kind = kind,
                                            .margin = 0.02,
                                            .error = kind == FP8R_SEQUENTIAL_GATE ? 0.015 : 0.03,
                                            .width_max = 0.04,
                                            .candidates = 1,
                                            .pairs_max = PAIRS_MAX};
}

static int options_check(const struct fp8r_sequential_options *options, struct fp8r_tool_error *error)
{
    if (!(options->margin > 0 && options->margin < 1))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "margin is %g, must be between 0 and 1 (0.02 is 2 %%)", options->margin);
    if (!(options->width_max > 0 && options->width_max < 1))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "interval width limit is %g, must be between 0 and 1", options->width_max);
    if (!(options->error > 0 && options->error < 0.5))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "error is %g, must be between 0 and 0.5",
                                   options->error);
    if (options->candidates < 1)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "candidates is %d, must be at least 1",
                                   options->candidates);
    for (int i = 0; i < FP8R_SEQUENTIAL_LOOKS; i++) {
        if (schedule[i] == options->pairs_max) return FP8R_EXIT_GOOD;
    }
    return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "pairs is %d, must be 30, 45, 60, 90 or 120",
                               options->pairs_max);
}

/* chance[i]: that i of `pairs` coins show heads and no look has stopped before. One more coin. */
static void coin_add(double *chance, int pairs)
{
    for (int i = pairs + 1; i > 0; i--)
        chance[i] = 0.5 * ((i <= pairs ? chance[i] : 0.0) + chance[i - 1]);
    chance[0] *= 0.5;
}

/* If the median ratio is x, the number of ratios above x is a count of heads. A look stops on critical heads
 * or more, the fewest that keep what is spent by then within error * t^4, t the share of pairs seen: a power
 * family, close to O'Brien and Fleming in that early looks are strict and the last one loses almost nothing.
 * What a look leaves over, counts being whole, passes to the next. */
static void constants_compute(struct fp8r_sequential *sequential, double error)
{
    double chance[PAIRS_MAX + 1] = {1.0}, spent = 0;
    int pairs = 0;
    for (int look = 0; look < sequential->look_count; look++) {
        int looked = sequential->looks[look];
        double share = (double)looked / (double)sequential->looks[sequential->look_count - 1];
        double limit = error * share * share * share * share, tail = 0;
        for (; pairs < looked; pairs++)
            coin_add(chance, pairs);
        int critical = looked + 1;
        while (spent + tail + chance[critical - 1] <= limit) {
            critical--;
            tail += chance[critical];
            chance[critical] = 0;
        }
        spent += tail;
        sequential->critical[look] = critical;
        sequential->spent[look] = spent;
    }
}

int fp8r_sequential_init(struct fp8r_sequential *sequential, const struct fp8r_sequential_options *options,
                         struct fp8r_tool_error *error)
{
    int rc = options_check(options, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    memset(sequential, 0, sizeof *sequential);
    sequential->options = *options;
    while (sequential->look_count < FP8R_SEQUENTIAL_LOOKS &&
           schedule[sequential->look_count] <= options->pairs_max) {
        sequential->looks[sequential->look_count] = schedule[sequential->look_count];
        sequential->look_count++;
    }
    constants_compute(sequential, options->error / (double)options->candidates);
    return FP8R_EXIT_GOOD;
}

/* The median's interval at a look, from ratios in the order they were taken. Inflation widens the distance
 * from the middle by its root, rounded away from it. */
static void look_measure(const double *ratios, int count, int critical, struct fp8r_paired_result *result)
{
    double sorted[PAIRS_MAX], middle = 0.5 * (double)count;
    memcpy(sorted, ratios, (size_t)count * sizeof *sorted);
    fp8r_sort(sorted, (size_t)count);
    result->pairs = count;
    result->ratio = fp8r_median(sorted, (size_t)count);
    result->inflation = fp8r_median_inflation(ratios, (size_t)count);
    double widened = ceil(middle + ((double)critical - middle) * sqrt(result->inflation) - 1e-9);
    bool is_bounded = widened <= (double)count;
    result->low = is_bounded ? sorted[count - (int)widened] : 0.0;
    result->high = is_bounded ? sorted[(int)widened - 1] : INFINITY;
}

static enum fp8r_paired_verdict look_judge(const struct fp8r_sequential_options *options, bool is_last,
                                           const struct fp8r_paired_result *result)
{
    bool is_gate = options->kind == FP8R_SEQUENTIAL_GATE;
    double limit = 1.0 + options->margin;
    if (result->low > limit) return is_gate ? FP8R_PAIRED_REGRESSION : FP8R_PAIRED_CLEAR;
    if (result->high < limit) return is_gate ? FP8R_PAIRED_FINE : FP8R_PAIRED_TIE;
    if (!is_last) return FP8R_PAIRED_GO_ON;
    if (is_gate) return FP8R_PAIRED_INCONCLUSIVE;
    return result->high - result->low <= options->width_max ? FP8R_PAIRED_TIE : FP8R_PAIRED_NOISY;
}

/* ratios[from..to) of those pairs. */
static int ratios_take(const struct fp8r_pair *pairs, int from, int to, double *ratios,
                       struct fp8r_tool_error *error)
{
    for (int i = from; i < to; i++) {
        const struct fp8r_pair *pair = &pairs[i];
        ratios[i] = pair->base_us / pair->other_us;
        if (!(pair->base_us > 0 && pair->other_us > 0 && ratios[i] > 0 && isfinite(ratios[i])))
            return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                       "pair %d holds %g and %g us; times must be positive numbers", i + 1,
                                       pair->base_us, pair->other_us);
    }
    return FP8R_EXIT_GOOD;
}

int fp8r_sequential_decide(const struct fp8r_sequential *sequential, const struct fp8r_pair *pairs,
                           size_t count, struct fp8r_paired_result *result, struct fp8r_tool_error *error)
{
    double ratios[PAIRS_MAX];
    struct fp8r_paired_result found = {.ratio = 1, .high = INFINITY, .inflation = 1};
    int taken = 0;
    for (int look = 0; look < sequential->look_count && found.verdict == FP8R_PAIRED_GO_ON; look++) {
        int looked = sequential->looks[look];
        found.pairs_next = looked;
        if ((size_t)looked > count) break;
        int rc = ratios_take(pairs, taken, looked, ratios, error);
        if (rc != FP8R_EXIT_GOOD) return rc;
        taken = looked;
        look_measure(ratios, looked, sequential->critical[look], &found);
        found.verdict = look_judge(&sequential->options, look == sequential->look_count - 1, &found);
        found.pairs_next = 0;
    }
    *result = found;
    return FP8R_EXIT_GOOD;
}

const char *fp8r_paired_verdict_name(enum fp8r_paired_verdict verdict)
{
    static const char *const names[FP8R_PAIRED_VERDICTS] = {[FP8R_PAIRED_GO_ON] = "go-on",
                                                            [FP8R_PAIRED_CLEAR] = "clear",
                                                            [FP8R_PAIRED_TIE] = "tie",
                                                            [FP8R_PAIRED_NOISY] = "noisy",
                                                            [FP8R_PAIRED_REGRESSION] = "regression",
                                                            [FP8R_PAIRED_FINE] = "fine",
                                                            [FP8R_PAIRED_INCONCLUSIVE] = "inconclusive"};
    return names[verdict];
}
