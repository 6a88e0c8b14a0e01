/* From samples to decisions. A winner is what the grid's medians say; whether it is adopted is what the confirming pairs
 * say, and only they (a quick tune has no confirmation, and judges by the grid's pairs).
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/statistics.h"
#include "tune/comparison.h"
#include "tune/named.h"

static const double interval_coverage = 0.95;

/* Of the interval of a point that nobody confirmed on a GPU: from the least to the largest ratio of the seven rounds there. */
static const double unconfirmed_coverage = 0.98;

const char *analysis_verdict_name(enum analysis_verdict verdict)
{
    static const char *const names[] = {"clear", "tie", "noisy"};
    return names[verdict];
}

/* Who was dropped on a GPU, where that is soon, has times of the first rounds alone, when it was cooler. */
static bool is_whole(const struct sample_case *it, int candidate, bool has_steps)
{
    return !has_steps || candidate == it->fallback || !it->candidates[candidate].dropped[0];
}

/* Else what counts are those that were taken to confirm. Who was ever wrong has no times. */
static struct analysis_candidate summarise(const struct sample_candidate *it, bool has_all, struct comparison_scratch *scratch)
{
    size_t count = 0;
    if (fp8r_candidate_is_wrong(it))
        return (struct analysis_candidate){0};
    for (size_t i = 0; i < it->count; i++)
        if (has_all ? sample_is_tuned(&it->samples[i]) : it->samples[i].phase == SAMPLE_CONFIRM)
            scratch->a[count++] = it->samples[i].us;
    bool has_none = !has_all && count == 0;
    for (size_t i = 0; i < it->count && has_none; i++)
        if (it->samples[i].phase == SAMPLE_GATE)
            scratch->a[count++] = it->samples[i].us;
    if (count == 0)
        return (struct analysis_candidate){0};
    fp8r_sort(scratch->a, count);
    struct fp8r_interval interval = fp8r_median_interval(scratch->a, count, interval_coverage);
    return (struct analysis_candidate){.count = count,
                                       .median_us = fp8r_median(scratch->a, count),
                                       .low_us = interval.low,
                                       .high_us = interval.high};
}

static int fastest_beside(const struct analysis_point *point, int other)
{
    int best = -1;
    for (int i = 0; i < point->it->count; i++)
        if (i != other && point->candidates[i].count > 0 &&
            (best < 0 || point->candidates[i].median_us < point->candidates[best].median_us))
            best = i;
    return best;
}

/* How many candidates were held against the base: they share the error. */
static int confirmed_count(const struct sample_case *it, int base, struct comparison_scratch *scratch)
{
    int confirmed = 0;
    for (int i = 0; i < it->count; i++)
        confirmed += i != base && comparison_confirming_pairs(it, base, i, scratch) > 0;
    return confirmed;
}

/* How one point is judged. */
struct judge {
    bool is_quick, has_steps;
    double margin;
    struct comparison_scratch *scratch;
};

static int compare(const struct judge *judge, const struct sample_case *it, int base, int other, int comparisons,
                   struct fp8r_paired_result *result, struct fp8r_tool_error *error)
{
    if (!judge->is_quick)
        return comparison_full(it, base, other, judge->margin, comparisons, judge->scratch, result, error);
    comparison_quick(it, base, other, judge->margin, judge->scratch, result);
    return FP8R_EXIT_GOOD;
}

/* Among the candidates held against the default: the one that is clearly faster, and most so. */
static int challenge(const struct judge *judge, struct analysis_point *point, struct fp8r_tool_error *error)
{
    const struct sample_case *it = point->it;
    double best = 0;
    int comparisons = confirmed_count(it, it->fallback, judge->scratch);
    for (int i = 0; i < it->count; i++) {
        struct fp8r_paired_result result;
        bool tried = judge->is_quick ? i == point->fastest
                                     : comparison_confirming_pairs(it, it->fallback, i, judge->scratch) > 0;
        if (i == it->fallback || !tried || point->candidates[i].count == 0)
            continue;
        int code = compare(judge, it, it->fallback, i, comparisons, &result, error);
        if (code != FP8R_EXIT_GOOD)
            return code;
        if (result.verdict == FP8R_PAIRED_NOISY || (result.verdict == FP8R_PAIRED_GO_ON && point->verdict == ANALYSIS_TIE))
            point->verdict = point->verdict == ANALYSIS_CLEAR ? ANALYSIS_CLEAR : ANALYSIS_NOISY;
        if (result.verdict != FP8R_PAIRED_CLEAR || result.ratio <= best)
            continue;
        best = result.ratio;
        point->chosen = i;
        point->verdict = ANALYSIS_CLEAR;
        point->pairs = result.pairs;
        point->gain_low = result.low;
        point->gain_high = result.high;
    }
    return FP8R_EXIT_GOOD;
}

/* Is each time of another shorter than every time of the default, by the margin? Then even noise leaves nothing open. */
static bool is_undisputed(const struct judge *judge, const struct analysis_point *point, int other)
{
    enum { FEW = 7 };
    const struct sample_candidate *mine = &point->it->candidates[point->it->fallback], *its = &point->it->candidates[other];
    double least_us = INFINITY, most_us = 0;
    size_t counts[2] = {0, 0};
    for (size_t i = 0; i < mine->count; i++)
        if (sample_is_tuned(&mine->samples[i])) {
            least_us = fmin(least_us, mine->samples[i].us);
            counts[0]++;
        }
    for (size_t i = 0; i < its->count; i++)
        if (sample_is_tuned(&its->samples[i])) {
            most_us = fmax(most_us, its->samples[i].us);
            counts[1]++;
        }
    return counts[0] >= FEW && counts[1] >= FEW && (1 + judge->margin) * most_us < least_us;
}

/* The fastest was not held against the default, for want of time or because nothing held still. Then its pairs of the grid
 * or of a border speak, as in a quick tune. */
static void adopt_unconfirmed(const struct judge *judge, struct analysis_point *point)
{
    const struct sample_case *it = point->it;
    int other = point->fastest;
    if (other < 0 || other == it->fallback || comparison_confirming_pairs(it, it->fallback, other, judge->scratch) > 0)
        return;
    size_t count = sample_pairs(&it->candidates[it->fallback], &it->candidates[other], SAMPLE_GRID, judge->scratch->a,
                                judge->scratch->b, judge->scratch->capacity);
    if (count == 0)
        count = sample_pairs(&it->candidates[it->fallback], &it->candidates[other], SAMPLE_BORDER, judge->scratch->a,
                             judge->scratch->b, judge->scratch->capacity);
    if (count == 0)
        return;
    struct fp8r_ratio ratio =
        fp8r_paired_ratio(judge->scratch->a, judge->scratch->b, count, unconfirmed_coverage, judge->scratch->ratios);
    bool is_sure = !it->is_noisy && ratio.interval.coverage >= unconfirmed_coverage && ratio.interval.low > 1 + judge->margin;
    if (!is_sure && !is_undisputed(judge, point, other))
        return;
    point->chosen = other;
    point->verdict = ANALYSIS_CLEAR;
    point->pairs = (int)count;
    point->gain_low = ratio.interval.low;
    point->gain_high = ratio.interval.high;
}

/* The default is the fastest: is it clearly so? Its intervals and the runner-up's must lie a margin apart. */
static void defend(const struct judge *judge, struct analysis_point *point)
{
    const struct sample_case *it = point->it;
    int second = fastest_beside(point, it->fallback);
    const struct analysis_candidate *mine = &point->candidates[it->fallback];
    if (second < 0 || point->candidates[second].low_us > (1 + judge->margin) * mine->high_us)
        point->verdict = ANALYSIS_CLEAR;
}

/* Without a default that works, the fastest is all there is; nothing can be said to be gained. */
static void concede(struct analysis_point *point)
{
    point->chosen = point->fastest;
    point->gain_low = point->gain_high = 0;
    point->runner_up = fastest_beside(point, point->chosen);
}

static int decide(const struct judge *judge, struct analysis_point *point, struct fp8r_tool_error *error)
{
    const struct sample_case *it = point->it;
    for (int i = 0; i < it->count; i++)
        point->candidates[i] = summarise(&it->candidates[i], is_whole(it, i, judge->has_steps), judge->scratch);
    point->fastest = fastest_beside(point, -1);
    point->chosen = it->fallback;
    point->verdict = ANALYSIS_TIE;
    point->gain_low = point->gain_high = 1;
    if (point->candidates[it->fallback].count == 0) {
        concede(point);
        return FP8R_EXIT_GOOD;
    }
    /* A quick tune's noisy pairs decide nothing; in full nobody confirmed there, unless a gate did. */
    int code = it->is_noisy && judge->is_quick ? FP8R_EXIT_GOOD : challenge(judge, point, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    if (judge->has_steps && point->verdict != ANALYSIS_CLEAR)
        adopt_unconfirmed(judge, point);
    if (it->is_noisy && point->verdict != ANALYSIS_CLEAR)
        point->verdict = ANALYSIS_NOISY;
    else if (point->fastest == it->fallback && point->verdict == ANALYSIS_TIE)
        defend(judge, point);
    point->runner_up = fastest_beside(point, point->chosen);
    return FP8R_EXIT_GOOD;
}

/* ---- Families ---- */

static int compare_cases(const void *a, const void *b)
{
    const struct sample_case *one = *(const struct sample_case *const *)a, *other = *(const struct sample_case *const *)b;
    int by_key = fp8r_key_compare(&one->key, &other->key), by_m = (one->m > other->m) - (one->m < other->m);
    return by_key ? by_key : by_m ? by_m : strcmp(one->problem, other->problem);
}

/* A gate's or an audit's case has no sample of a tune; nor is there a route where all who have are wrong, or behind those. */
static bool is_tuned_case(const struct sample_case *it, bool has_steps)
{
    for (int i = 0; i < it->count; i++)
        for (size_t j = 0; j < it->candidates[i].count && is_whole(it, i, has_steps); j++)
            if (sample_is_tuned(&it->candidates[i].samples[j]) && !fp8r_candidate_is_wrong(&it->candidates[i]))
                return true;
    return false;
}

/* The machine's cases that were tuned and finished, by key and m, one each; *count of them. NULL when out of memory.
 * Problems that differ in what a key does not hold (how wide a pitch is) are one point: the first by its text. */
static const struct sample_case **sorted_cases(const struct samples *samples, int machine, bool has_steps, size_t *count)
{
    const struct sample_case **cases = calloc(samples->case_count + 1, sizeof *cases);
    size_t found = 0, kept = 0;
    for (size_t i = 0; cases && i < samples->case_count; i++)
        if (samples->cases[i].machine == machine && samples->cases[i].is_done && is_tuned_case(&samples->cases[i], has_steps))
            cases[found++] = &samples->cases[i];
    if (cases)
        qsort(cases, found, sizeof *cases, compare_cases);
    for (size_t i = 0; i < found; i++)
        if (kept == 0 || cases[i]->m != cases[kept - 1]->m || !fp8r_key_equal(&cases[i]->key, &cases[kept - 1]->key))
            cases[kept++] = cases[i];
    *count = kept;
    return cases;
}

static int add_points(const struct judge *judge, const struct sample_case *const *cases, size_t count,
                      struct analysis_family *family, struct fp8r_tool_error *error)
{
    family->key = cases[0]->key;
    family->has_steps = judge->has_steps;
    if (fp8r_family_format(&family->key, family->text, sizeof family->text) != FP8R_OK)
        return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "%s", fp8r_last_error());
    family->points = calloc(count, sizeof *family->points);
    if (!family->points)
        return fp8r_tool_error_memory(error, "the analysis of samples");
    for (size_t i = 0; i < count; i++) {
        struct analysis_point *point = &family->points[family->count++];
        point->it = cases[i];
        point->candidates = calloc((size_t)cases[i]->count, sizeof *point->candidates);
        if (!point->candidates)
            return fp8r_tool_error_memory(error, "the analysis of samples");
        int code = decide(judge, point, error);
        if (code != FP8R_EXIT_GOOD)
            return code;
    }
    return FP8R_EXIT_GOOD;
}

static int add_families(const struct judge *judge, const struct sample_case *const *cases, size_t count,
                        struct analysis *analysis, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t first = 0, next; first < count && code == FP8R_EXIT_GOOD; first = next) {
        for (next = first + 1; next < count && fp8r_key_equal(&cases[first]->key, &cases[next]->key);)
            next++;
        code = add_points(judge, cases + first, next - first, &analysis->families[analysis->count++], error);
    }
    return code;
}

/* That of the newest run that tuned: a gate's or an audit's is another question's. */
static double machine_margin(const struct samples *samples, int machine)
{
    int newest = -1;
    for (size_t i = 0; i < samples->case_count; i++) {
        const struct sample_case *it = &samples->cases[i];
        if (it->machine == machine && it->is_done && it->done_run > newest)
            newest = it->done_run;
    }
    return newest >= 0 ? samples->runs[newest].margin : fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE).margin;
}

int analysis_init(const struct samples *samples, int machine, struct analysis *analysis, struct fp8r_tool_error *error)
{
    struct comparison_scratch scratch;
    size_t count = 0;
    *analysis = (struct analysis){0};
    bool ready = comparison_scratch_init(samples, &scratch);
    struct judge judge = {.is_quick = samples->machines[machine].is_quick,
                          .has_steps = samples->machines[machine].identity.kind == FP8R_DEVICE_CUDA,
                          .margin = machine_margin(samples, machine),
                          .scratch = &scratch};
    const struct sample_case **cases = sorted_cases(samples, machine, judge.has_steps, &count);
    analysis->families = calloc(count + 1, sizeof *analysis->families);
    int code = !ready || !cases || !analysis->families ? fp8r_tool_error_memory(error, "the analysis of samples")
                                                       : add_families(&judge, cases, count, analysis, error);
    free(cases);
    comparison_scratch_fini(&scratch);
    if (code != FP8R_EXIT_GOOD)
        analysis_fini(analysis);
    return code;
}

size_t analysis_noisy(const struct analysis_family *family)
{
    size_t count = 0;
    for (size_t i = 0; i < family->count; i++)
        count += family->points[i].verdict == ANALYSIS_NOISY;
    return count;
}

void analysis_fini(struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->count; i++) {
        for (size_t j = 0; j < analysis->families[i].count; j++)
            free(analysis->families[i].points[j].candidates);
        free(analysis->families[i].points);
    }
    free(analysis->families);
    *analysis = (struct analysis){0};
}
