/* One problem: the pick against everyone else who was measured with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/audit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/sequential.h"
#include "measure/statistics.h"
#include "tune/named.h"
#include "tune/regret.h"

enum { FEW_PAIRS = 8, FIRST_LOOK = 30, HALF_PAIRS = 4 };

/* For what is surely no loss, where few pairs were taken because all of them said so. */
static const double few_coverage = 0.99;

const char *fp8r_audit_verdict_name(enum fp8r_audit_verdict verdict)
{
    static const char *const names[] = {"fine", "lost", "open", "refused", "wrong", "unmeasured"};
    return names[verdict];
}

/* A judgement under way; the arrays hold as many as any candidate has samples. */
struct judge {
    const struct fp8r_audit_rules *rules;
    const struct fp8r_audit_question *question;
    const struct sample_case *it;
    struct fp8r_sequential sequential;
    double *pick_us, *other_us, *ratios;
    struct fp8r_pair *pairs;
    size_t capacity;
};

static void judge_fini(struct judge *judge)
{
    free(judge->pick_us);
    free(judge->other_us);
    free(judge->ratios);
    free(judge->pairs);
}

static int judge_init(struct judge *judge, struct fp8r_tool_error *error)
{
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    options.margin = judge->rules->margin;
    options.candidates = judge->rules->comparisons > 0 ? judge->rules->comparisons : 1;
    judge->capacity = 1;
    for (int i = 0; i < judge->it->count; i++)
        if (judge->it->candidates[i].count > judge->capacity)
            judge->capacity = judge->it->candidates[i].count;
    judge->pick_us = calloc(judge->capacity, sizeof *judge->pick_us);
    judge->other_us = calloc(judge->capacity, sizeof *judge->other_us);
    judge->ratios = calloc(judge->capacity, sizeof *judge->ratios);
    judge->pairs = calloc(judge->capacity, sizeof *judge->pairs);
    if (!judge->pick_us || !judge->other_us || !judge->ratios || !judge->pairs)
        return fp8r_tool_error_memory(error, "the audit of a problem");
    return fp8r_sequential_init(&judge->sequential, &options, error);
}

/* Sorted times of a candidate, into ratios; how many. */
static size_t take_times(struct judge *judge, int candidate)
{
    const struct sample_candidate *of = &judge->it->candidates[candidate];
    size_t count = 0;
    for (size_t i = 0; i < of->count; i++) {
        bool in_phase = judge->rules->phase == SAMPLE_PHASES || of->samples[i].phase == judge->rules->phase;
        if (in_phase) judge->ratios[count++] = of->samples[i].us;
    }
    fp8r_sort(judge->ratios, count);
    return count;
}

static double median_us(struct judge *judge, int candidate)
{
    size_t count = take_times(judge, candidate);
    return count > 0 ? fp8r_median(judge->ratios, count) : INFINITY;
}

/* Which candidate a backend's name stands for: the default where that is its own, which is what its model
 * picks; otherwise its fastest, as a guess in its favour. */
static int find_pick(struct judge *judge, const char *name, bool *is_guess)
{
    const struct sample_case *it = judge->it;
    int found = -1, choices = 0;
    double best_us = 0;
    *is_guess = false;
    if (fp8r_label_is_named(it->candidates[it->fallback].name, name)) return it->fallback;
    for (int i = 0; i < it->count; i++) {
        if (!fp8r_label_is_named(it->candidates[i].name, name)) continue;
        double time_us = fp8r_candidate_is_wrong(&it->candidates[i]) ? INFINITY : median_us(judge, i);
        if (found < 0 || time_us < best_us) {
            found = i;
            best_us = time_us;
        }
        choices++;
    }
    *is_guess = choices > 1;
    return found;
}

static bool is_alternative(const struct judge *judge, int candidate, int pick)
{
    const struct sample_candidate *it = &judge->it->candidates[candidate];
    const char *rival = judge->question->rival;
    return candidate != pick && !fp8r_candidate_is_wrong(it) &&
           (!*rival || fp8r_label_is_named(it->name, rival));
}

/* What the pairs of the pick and one other say. */
struct comparison {
    int other;
    enum fp8r_audit_verdict verdict;
    bool is_settled;
    struct fp8r_paired_result pairs;
};

/* One of the two was dropped after a few rounds, far behind the best. A sample that the machine disturbed weighs too much
 * in so few pairs, so that the medians of all that each has are compared; there is no interval. */
static void compare_dropped(struct judge *judge, int pick, struct comparison *comparison)
{
    bool pick_is_behind = fp8r_candidate_is_behind(&judge->it->candidates[pick]);
    bool other_is_behind = fp8r_candidate_is_behind(&judge->it->candidates[comparison->other]);
    comparison->pairs.ratio = median_us(judge, pick);
    comparison->pairs.ratio /= median_us(judge, comparison->other);
    bool looks_lost = comparison->pairs.ratio > 1 + judge->rules->margin;
    comparison->verdict = !pick_is_behind || !looks_lost ? FP8R_AUDIT_FINE
                          : other_is_behind              ? FP8R_AUDIT_OPEN
                                                         : FP8R_AUDIT_LOST;
    /* An audit can race a dropped pick again; of measurements already taken no pairs follow. */
    comparison->is_settled = !pick_is_behind || judge->rules->phase != SAMPLE_AUDIT;
}

/* Fewer pairs than the first look asks for: a single interval, at the same split error. */
static void compare_few(struct judge *judge, struct comparison *comparison)
{
    size_t count = (size_t)comparison->pairs.pairs;
    double limit = 1 + judge->rules->margin;
    double coverage = 1 - 2 * judge->sequential.options.error / (double)judge->sequential.options.candidates;
    struct fp8r_ratio split =
        fp8r_paired_ratio(judge->pick_us, judge->other_us, count, coverage, judge->ratios);
    struct fp8r_interval single = fp8r_median_interval(judge->ratios, count, few_coverage);
    comparison->pairs.ratio = split.median;
    if (split.interval.coverage >= coverage) {
        comparison->pairs.low = split.interval.low;
        comparison->pairs.high = split.interval.high;
    }
    if (comparison->pairs.low > limit) {
        comparison->verdict =
            FP8R_AUDIT_LOST; /* of few that were taken once; who can goes on to the first look */
        comparison->is_settled = false;
    } else {
        bool surely = count >= FEW_PAIRS && single.coverage >= few_coverage && single.high < limit;
        comparison->verdict = split.median > limit ? FP8R_AUDIT_OPEN : FP8R_AUDIT_FINE;
        comparison->is_settled = surely;
    }
}

static int compare_many(struct judge *judge, size_t count, struct comparison *comparison,
                        struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < count; i++)
        judge->pairs[i] = (struct fp8r_pair){judge->pick_us[i], judge->other_us[i]};
    int code = fp8r_sequential_decide(&judge->sequential, judge->pairs, count, &comparison->pairs, error);
    if (code != FP8R_EXIT_GOOD) return code;
    bool looks_lost = comparison->pairs.ratio > 1 + judge->rules->margin;
    comparison->is_settled = comparison->pairs.verdict != FP8R_PAIRED_GO_ON;
    comparison->verdict = comparison->pairs.verdict == FP8R_PAIRED_CLEAR                ? FP8R_AUDIT_LOST
                          : comparison->pairs.verdict == FP8R_PAIRED_TIE || !looks_lost ? FP8R_AUDIT_FINE
                                                                                        : FP8R_AUDIT_OPEN;
    return FP8R_EXIT_GOOD;
}

/* comparison->pairs.pairs is 0 where they never raced together. */
static int compare(struct judge *judge, int pick, int other, struct comparison *comparison,
                   struct fp8r_tool_error *error)
{
    size_t count = sample_pairs(&judge->it->candidates[pick], &judge->it->candidates[other],
                                judge->rules->phase, judge->pick_us, judge->other_us, judge->capacity);
    *comparison = (struct comparison){
        .other = other, .pairs = {.ratio = 1, .high = INFINITY, .pairs = (int)count}, .is_settled = true};
    if (count == 0) return FP8R_EXIT_GOOD;
    if (count >= FIRST_LOOK) return compare_many(judge, count, comparison, error);
    for (size_t i = 0; i < count; i++)
        if (!(judge->pick_us[i] > 0 && judge->other_us[i] > 0 &&
              isfinite(judge->pick_us[i] / judge->other_us[i])))
            return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: a time is not a positive number",
                                       judge->it->problem);
    bool is_dropped = fp8r_candidate_is_behind(&judge->it->candidates[pick]) ||
                      fp8r_candidate_is_behind(&judge->it->candidates[other]);
    if (is_dropped && count < FEW_PAIRS)
        compare_dropped(judge, pick, comparison);
    else
        compare_few(judge, comparison);
    return FP8R_EXIT_GOOD;
}

/* A loss that many pairs show stands above one that few suggest. */
static int severity(const struct comparison *comparison)
{
    if (comparison->verdict == FP8R_AUDIT_LOST) return comparison->pairs.pairs >= FIRST_LOOK ? 3 : 2;
    return comparison->verdict == FP8R_AUDIT_OPEN;
}

/* What a pick loses that was dropped before there were enough rounds. */
static double charge_dropped(struct judge *judge, int pick)
{
    double best_us = INFINITY;
    for (int i = 0; i < judge->it->count; i++)
        if (!fp8r_candidate_is_wrong(&judge->it->candidates[i])) best_us = fmin(best_us, median_us(judge, i));
    return median_us(judge, pick) / best_us - 1;
}

/* Over rounds with everybody: a tune's grid where there is one, otherwise the audit's own. */
static int charge(struct judge *judge, int pick, double *charged, struct fp8r_tool_error *error)
{
    const struct sample_candidate *it = &judge->it->candidates[pick];
    struct regret regret;
    int phase = judge->rules->phase;
    for (size_t i = 0; i < it->count && phase == SAMPLE_PHASES; i++)
        if (it->samples[i].phase == SAMPLE_GRID) phase = SAMPLE_GRID;
    if (phase == SAMPLE_PHASES) phase = SAMPLE_AUDIT;
    int code = regret_of(judge->it, phase, pick, &regret, error);
    *charged = NAN;
    if (code == FP8R_EXIT_GOOD && regret.pairs >= HALF_PAIRS)
        *charged = regret.value;
    else if (code == FP8R_EXIT_GOOD && fp8r_candidate_is_behind(it))
        *charged = charge_dropped(judge, pick);
    return code;
}

static int judge_pick(struct judge *judge, int pick, struct fp8r_audit_result *result,
                      struct fp8r_tool_error *error)
{
    struct comparison worst = {.other = -1, .pairs = {.ratio = 0, .high = INFINITY}, .is_settled = true};
    for (int i = 0; i < judge->it->count; i++) {
        struct comparison one;
        if (!is_alternative(judge, i, pick)) continue;
        int code = compare(judge, pick, i, &one, error);
        if (code != FP8R_EXIT_GOOD) return code;
        result->is_partial |= one.pairs.pairs == 0 && !fp8r_candidate_is_behind(&judge->it->candidates[i]);
        bool is_worse = severity(&one) > severity(&worst) ||
                        (severity(&one) == severity(&worst) && one.pairs.ratio > worst.pairs.ratio);
        if (one.pairs.pairs > 0 && (worst.other < 0 || is_worse)) worst = one;
    }
    result->pick_us = median_us(judge, pick);
    result->verdict = worst.verdict;
    result->is_settled = worst.is_settled;
    result->ratio = worst.other >= 0 ? worst.pairs.ratio : 1;
    result->low = worst.pairs.low;
    result->high = worst.pairs.high;
    result->pairs = worst.pairs.pairs;
    if (worst.other >= 0)
        snprintf(result->other, sizeof result->other, "%s", judge->it->candidates[worst.other].name);
    return charge(judge, pick, &result->regret, error);
}

int fp8r_audit_judge(const struct fp8r_audit_rules *rules, const struct fp8r_audit_question *question,
                     const struct sample_case *it, struct fp8r_audit_result *result,
                     struct fp8r_tool_error *error)
{
    *result = (struct fp8r_audit_result){
        .question = question, .verdict = FP8R_AUDIT_UNMEASURED, .ratio = 1, .high = INFINITY, .regret = NAN};
    snprintf(result->pick, sizeof result->pick, "%s", question->pick);
    if (question->refusal[0]) {
        result->verdict = FP8R_AUDIT_REFUSED;
        result->is_settled = true;
        return FP8R_EXIT_GOOD;
    }
    if (!it) return FP8R_EXIT_GOOD;
    struct judge judge = {.rules = rules, .question = question, .it = it};
    int code = judge_init(&judge, error);
    int pick = code == FP8R_EXIT_GOOD ? find_pick(&judge, question->pick, &result->is_guess) : -1;
    if (pick >= 0) snprintf(result->pick, sizeof result->pick, "%s", it->candidates[pick].name);
    if (code == FP8R_EXIT_GOOD && (pick < 0 || fp8r_candidate_is_wrong(&it->candidates[pick]))) {
        result->verdict = pick < 0 ? FP8R_AUDIT_REFUSED : FP8R_AUDIT_WRONG;
        result->is_settled = true;
    } else if (code == FP8R_EXIT_GOOD && take_times(&judge, pick) > 0) {
        code = judge_pick(&judge, pick, result, error);
    }
    judge_fini(&judge);
    return code;
}
