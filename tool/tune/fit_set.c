/* From samples to the cases of a fit. SPDX-License-Identifier: Apache-2.0 */
#include "tune/fit_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/statistics.h"
#include "tune/analysis.h"
#include "tune/comparison.h"
#include "tune/named.h"

enum { PAIRS_LEAST = 3, BACKENDS_MAX = 64 };

static const double coverage = 0.95;

/* Of all phases: what was measured is what a rule is learned from. */
static double median_us(struct comparison_scratch *scratch, const struct sample_candidate *candidate)
{
    for (size_t i = 0; i < candidate->count; i++)
        scratch->ratios[i] = candidate->samples[i].us;
    if (candidate->count == 0) return INFINITY;
    fp8r_sort(scratch->ratios, candidate->count);
    return fp8r_median(scratch->ratios, candidate->count);
}

/* Median of a's time / b's: by pairs where there are enough, by the medians of all that each has where one was dropped
 * early. */
static double ratio_of(struct comparison_scratch *scratch, const struct sample_case *it, int a, int b)
{
    if (a == b) return 1;
    size_t count = sample_pairs(&it->candidates[a], &it->candidates[b], SAMPLE_PHASES, scratch->a, scratch->b,
                                scratch->capacity);
    if (count < PAIRS_LEAST) return median_us(scratch, &it->candidates[a]) / median_us(scratch, &it->candidates[b]);
    return fp8r_paired_ratio(scratch->a, scratch->b, count, coverage, scratch->ratios).median;
}

static bool is_timed(const struct sample_candidate *candidate)
{
    return candidate->count > 0 && !fp8r_candidate_is_wrong(candidate);
}

/* Of those of that name ("": of all); -1 where nothing of it was timed. */
static int find_fastest(struct comparison_scratch *scratch, const struct sample_case *it, const char *name)
{
    double best_us = INFINITY;
    int best = -1;
    for (int i = 0; i < it->count; i++) {
        if (!fp8r_label_is_named(it->candidates[i].name, name) || !is_timed(&it->candidates[i])) continue;
        double time_us = median_us(scratch, &it->candidates[i]);
        if (time_us < best_us) {
            best_us = time_us;
            best = i;
        }
    }
    return best;
}

/* What a name stands for; -1 likewise. */
static int find_named(struct comparison_scratch *scratch, const struct sample_case *it, const char *name)
{
    const struct sample_candidate *fallback = &it->candidates[it->fallback];
    bool is_default = fp8r_label_is_named(fallback->name, name) && is_timed(fallback);
    return is_default ? it->fallback : find_fastest(scratch, it, name);
}

/* ---- Which two ---- */

struct backends {
    char names[BACKENDS_MAX][FP8R_NAME_BYTES];
    size_t defaults[BACKENDS_MAX]; /* problems whose default is its */
    int count;
};

static int index_of(struct backends *backends, const char *label)
{
    size_t length = strcspn(label, ":");
    for (int i = 0; i < backends->count; i++)
        if (strncmp(backends->names[i], label, length) == 0 && backends->names[i][length] == '\0') return i;
    if (backends->count == BACKENDS_MAX) return 0;
    snprintf(backends->names[backends->count], FP8R_NAME_BYTES, "%.*s", (int)length, label);
    return backends->count++;
}

/* What choosing well between the two leaves to gain, a problem; *both: problems with both. */
static double left_to_gain(struct comparison_scratch *scratch, const struct samples *samples, const char *x,
                           const char *y, size_t *both)
{
    double sum = 0, weight = 0;
    *both = 0;
    for (size_t i = 0; i < samples->case_count; i++) {
        const struct sample_case *it = &samples->cases[i];
        int a = find_named(scratch, it, x), b = find_named(scratch, it, y),
            best = find_fastest(scratch, it, "");
        if (a < 0 || b < 0) continue;
        double better_us =
            fmin(median_us(scratch, &it->candidates[a]), median_us(scratch, &it->candidates[b]));
        sum += it->weight * (better_us / median_us(scratch, &it->candidates[best]) - 1);
        weight += it->weight;
        (*both)++;
    }
    return weight > 0 ? sum / weight : 0;
}

static int choose_pair(struct fp8r_fit_set *set, struct comparison_scratch *scratch, const struct samples *samples,
                       struct fp8r_tool_error *error)
{
    struct backends *backends = calloc(1, sizeof *backends);
    size_t most = 0;
    double least = INFINITY;
    if (!backends) return fp8r_tool_error_memory(error, "the backends");
    for (size_t i = 0; i < samples->case_count; i++) {
        const struct sample_case *it = &samples->cases[i];
        for (int j = 0; j < it->count; j++)
            (void)index_of(backends, it->candidates[j].name);
        backends->defaults[index_of(backends, it->candidates[it->fallback].name)]++;
    }
    for (int i = 0; i < backends->count; i++)
        for (int j = i + 1; j < backends->count; j++) {
            size_t both = 0;
            double gain = left_to_gain(scratch, samples, backends->names[i], backends->names[j], &both);
            if (both == 0 || both < most || (both == most && !(gain < least))) continue;
            bool is_swapped = backends->defaults[i] < backends->defaults[j]; /* the default is `else` */
            snprintf(set->x, sizeof set->x, "%s", backends->names[is_swapped ? i : j]);
            snprintf(set->y, sizeof set->y, "%s", backends->names[is_swapped ? j : i]);
            most = both;
            least = gain;
        }
    free(backends);
    return most > 0
               ? FP8R_EXIT_GOOD
               : fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                     "no two backends were measured on the same problem: there is nothing to "
                                     "choose between");
}

static int check_name(const struct samples *samples, const char *name, struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < samples->case_count; i++)
        for (int j = 0; j < samples->cases[i].count; j++)
            if (fp8r_label_is_named(samples->cases[i].candidates[j].name, name)) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                               "%.60s: no candidate of these samples has that name, %s is one", name,
                               samples->cases[0].candidates[0].name);
}

static int name_pair(struct fp8r_fit_set *set, struct comparison_scratch *scratch, const struct samples *samples,
                     const char *x, const char *y, struct fp8r_tool_error *error)
{
    if (samples->case_count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                   "these samples hold no problem (folders inside of a folder are not read)");
    if (!x) return choose_pair(set, scratch, samples, error);
    int code = check_name(samples, x, error);
    if (code == FP8R_EXIT_GOOD) code = check_name(samples, y, error);
    snprintf(set->x, sizeof set->x, "%s", x);
    snprintf(set->y, sizeof set->y, "%s", y);
    return code;
}

/* ---- Cases ---- */

/* What the full table takes: as the tuner decides where it has finished, the fastest elsewhere. */
static int table_of(struct comparison_scratch *scratch, const struct analysis *analysis, const struct sample_case *it)
{
    for (size_t i = 0; i < analysis->count; i++) {
        if (!fp8r_key_equal(&analysis->families[i].key, &it->key)) continue;
        for (size_t j = 0; j < analysis->families[i].count; j++) {
            const struct analysis_point *point = &analysis->families[i].points[j];
            if (point->it == it && point->chosen >= 0 && is_timed(&it->candidates[point->chosen]))
                return point->chosen;
        }
    }
    return find_fastest(scratch, it, "");
}

static void add_case(struct fp8r_fit_set *set, struct comparison_scratch *scratch, const struct analysis *analysis,
                     const struct sample_case *it, int device)
{
    struct fp8r_fit_origin origin = {
        .it = it, .x = find_named(scratch, it, set->x), .y = find_named(scratch, it, set->y)};
    size_t pairs = origin.x >= 0 && origin.y >= 0 && origin.x != origin.y
                       ? sample_pairs(&it->candidates[origin.y], &it->candidates[origin.x], SAMPLE_PHASES,
                                      scratch->a, scratch->b, scratch->capacity)
                       : 0;
    bool is_behind = pairs > 0 && (fp8r_candidate_is_behind(&it->candidates[origin.x]) ||
                                   fp8r_candidate_is_behind(&it->candidates[origin.y]));
    if (pairs < PAIRS_LEAST && !is_behind) { /* who was dropped far behind has few, and needs no more */
        set->left_out++;
        return;
    }
    origin.ratio = ratio_of(scratch, it, origin.y, origin.x);
    origin.low = 0;
    origin.high = INFINITY;
    if (pairs >= PAIRS_LEAST) {
        struct fp8r_ratio ratio = fp8r_paired_ratio(scratch->a, scratch->b, pairs, coverage, scratch->ratios);
        origin.low = ratio.interval.low;
        origin.high = ratio.interval.high;
    }
    origin.table = table_of(scratch, analysis, it);
    origin.x_price = ratio_of(scratch, it, origin.x, origin.table) - 1;
    origin.y_price = ratio_of(scratch, it, origin.y, origin.table) - 1;
    double x_us = median_us(scratch, &it->candidates[origin.x]);
    set->cases[set->count] = (struct fp8r_fit_case){.m = it->m,
                                                    .n = it->key.n,
                                                    .k = it->key.k,
                                                    .device = device,
                                                    .weight = it->weight,
                                                    .then_us = x_us,
                                                    .else_us = x_us * origin.ratio};
    set->origins[set->count++] = origin;
}

static int compare_cases(const void *a, const void *b)
{
    const struct sample_case *one = *(const struct sample_case *const *)a,
                             *other = *(const struct sample_case *const *)b;
    int by_key = fp8r_key_compare(&one->key, &other->key);
    return by_key ? by_key : (one->m > other->m) - (one->m < other->m);
}

static int add_machine(struct fp8r_fit_set *set, struct comparison_scratch *scratch, const struct samples *samples,
                       int machine, struct fp8r_tool_error *error)
{
    struct analysis analysis;
    size_t count = 0, before = set->count;
    const struct sample_case **sorted = calloc(samples->case_count + 1, sizeof *sorted);
    if (!sorted) return fp8r_tool_error_memory(error, "the problems of the fit");
    for (size_t i = 0; i < samples->case_count; i++)
        if (samples->cases[i].machine == machine) sorted[count++] = &samples->cases[i];
    qsort(sorted, count, sizeof *sorted, compare_cases);
    int code = set->device_count < FP8R_FIT_DEVICES_MAX
                   ? analysis_init(samples, machine, &analysis, error)
                   : fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "the samples are of more than %d machines",
                                         FP8R_FIT_DEVICES_MAX);
    if (code == FP8R_EXIT_GOOD) {
        for (size_t i = 0; i < count; i++)
            add_case(set, scratch, &analysis, sorted[i], set->device_count);
        analysis_fini(&analysis);
    }
    if (set->count > before) set->machines[set->device_count++] = machine;
    free(sorted);
    return code;
}

int fp8r_fit_set_init(struct fp8r_fit_set *set, const struct samples *samples, const char *x, const char *y,
                      struct fp8r_tool_error *error)
{
    struct comparison_scratch scratch;
    *set = (struct fp8r_fit_set){.cases = calloc(samples->case_count + 1, sizeof *set->cases),
                                 .origins = calloc(samples->case_count + 1, sizeof *set->origins)};
    int code = comparison_scratch_init(samples, &scratch) && set->cases && set->origins
                   ? FP8R_EXIT_GOOD
                   : fp8r_tool_error_memory(error, "the problems of the fit");
    if (code == FP8R_EXIT_GOOD) code = name_pair(set, &scratch, samples, x, y, error);
    for (int i = 0; i < samples->machine_count && code == FP8R_EXIT_GOOD; i++)
        code = add_machine(set, &scratch, samples, i, error);
    if (code == FP8R_EXIT_GOOD && set->count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "no problem was measured with both %s and %s",
                                   set->x, set->y);
    comparison_scratch_fini(&scratch);
    if (code != FP8R_EXIT_GOOD) fp8r_fit_set_fini(set);
    return code;
}

void fp8r_fit_set_fini(struct fp8r_fit_set *set)
{
    free(set->cases);
    free(set->origins);
    *set = (struct fp8r_fit_set){0};
}

struct fp8r_fit_price fp8r_fit_set_price(const struct fp8r_fit_set *set, const struct fp8r_fit *fit,
                                         int device)
{
    struct fp8r_fit_price price = {.worst = -INFINITY};
    double sum = 0, weight = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct fp8r_fit_case *one = &set->cases[i];
        if (one->device != device) continue;
        double own =
            fp8r_fit_holds(fit, one->m, one->n, one->k) ? set->origins[i].x_price : set->origins[i].y_price;
        sum += one->weight * own;
        weight += one->weight;
        price.worst = fmax(price.worst, own);
    }
    price.mean = weight > 0 ? sum / weight : 0;
    return price;
}
