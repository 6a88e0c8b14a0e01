/* All problems of an audit: what they add up to, and the stretches of M that are lost.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/audit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More open problems than this share of the judged ones, and the audit says nothing. */
static const double open_share_most = 0.1;

static bool is_judged(const struct fp8r_audit_result *result)
{
    return result->verdict == FP8R_AUDIT_FINE || result->verdict == FP8R_AUDIT_LOST ||
           result->verdict == FP8R_AUDIT_OPEN;
}

/* ---- Sums ---- */

static void sum_up(struct fp8r_audit *audit)
{
    double time_us = 0, lost_us = 0, regret = 0;
    for (size_t i = 0; i < audit->count; i++) {
        const struct fp8r_audit_result *result = &audit->results[i];
        audit->verdicts[result->verdict]++;
        if (!is_judged(result)) continue;
        double weighted_us = result->question->weight * result->pick_us;
        audit->judged++;
        time_us += weighted_us;
        if (result->verdict == FP8R_AUDIT_LOST) lost_us += weighted_us * (1 - 1 / result->ratio);
        if (isnan(result->regret)) continue;
        regret += result->regret;
        audit->regret_worst =
            audit->regret_count == 0 ? result->regret : fmax(audit->regret_worst, result->regret);
        audit->regret_count++;
    }
    if (audit->judged > 0)
        audit->problem_share = (double)audit->verdicts[FP8R_AUDIT_LOST] / (double)audit->judged;
    if (time_us > 0) audit->time_share = lost_us / time_us;
    if (audit->regret_count > 0) audit->regret_mean = regret / (double)audit->regret_count;
}

/* ---- Stretches ---- */

static int compare_families(const void *a, const void *b)
{
    const struct fp8r_audit_result *one = a, *other = b;
    int by_key = fp8r_key_compare(&one->question->key, &other->question->key);
    int64_t m = one->question->m, n = other->question->m;
    return by_key ? by_key : (m > n) - (m < n);
}

static bool is_of_family(const struct fp8r_audit_result *a, const struct fp8r_audit_result *b)
{
    return fp8r_key_equal(&a->question->key, &b->question->key);
}

static void add_stretch(struct fp8r_audit *audit, size_t first, size_t last)
{
    const struct fp8r_audit_result *results = audit->results;
    struct fp8r_audit_stretch *stretch = &audit->stretches[audit->stretch_count++];
    *stretch = (struct fp8r_audit_stretch){.question = results[first].question,
                                           .m_first = results[first].question->m,
                                           .m_last = results[last].question->m};
    if (first > 0 && is_of_family(&results[first - 1], &results[first]))
        stretch->right_before = results[first - 1].question->m;
    if (last + 1 < audit->count && is_of_family(&results[last + 1], &results[last]))
        stretch->right_after = results[last + 1].question->m;
    for (size_t i = first; i <= last; i++) {
        if (!(results[i].ratio > stretch->worst)) continue;
        stretch->worst = results[i].ratio;
        memcpy(stretch->pick, results[i].pick, sizeof stretch->pick);
        memcpy(stretch->other, results[i].other, sizeof stretch->other);
    }
}

/* Of the families of the grid: problems drawn at random have one M each. The results are by family and M. */
static void find_stretches(struct fp8r_audit *audit)
{
    for (size_t first = 0, last; first < audit->count; first = last + 1) {
        last = first;
        if (audit->results[first].question->is_random || audit->results[first].verdict != FP8R_AUDIT_LOST)
            continue;
        while (last + 1 < audit->count && is_of_family(&audit->results[last + 1], &audit->results[first]) &&
               audit->results[last + 1].verdict == FP8R_AUDIT_LOST)
            last++;
        add_stretch(audit, first, last);
    }
}

/* ---- All of it ---- */

/* What a reader should see first. */
static int order_of(enum fp8r_audit_verdict verdict)
{
    static const int orders[] = {
        [FP8R_AUDIT_WRONG] = 0,   [FP8R_AUDIT_LOST] = 1, [FP8R_AUDIT_OPEN] = 2,
        [FP8R_AUDIT_REFUSED] = 3, [FP8R_AUDIT_FINE] = 4, [FP8R_AUDIT_UNMEASURED] = 5};
    return orders[verdict];
}

static int compare_losses(const void *a, const void *b)
{
    const struct fp8r_audit_result *one = a, *other = b;
    int by_order = order_of(one->verdict) - order_of(other->verdict);
    if (by_order) return by_order;
    if (one->ratio != other->ratio) return one->ratio < other->ratio ? 1 : -1;
    return compare_families(a, b);
}

int fp8r_audit_init(struct fp8r_audit *audit, const struct fp8r_audit_rules *rules,
                    const struct samples *samples, int machine, const struct fp8r_audit_questions *questions,
                    struct fp8r_tool_error *error)
{
    *audit = (struct fp8r_audit){.results = calloc(questions->count + 1, sizeof *audit->results),
                                 .stretches = calloc(questions->count + 1, sizeof *audit->stretches)};
    int code = audit->results && audit->stretches ? FP8R_EXIT_GOOD
                                                  : fp8r_tool_error_memory(error, "the results of the audit");
    for (size_t i = 0; i < questions->count && code == FP8R_EXIT_GOOD; i++) {
        const struct fp8r_audit_question *question = &questions->items[i];
        code = fp8r_audit_judge(rules, question, samples_find(samples, machine, question->problem),
                                &audit->results[audit->count], error);
        audit->count += code == FP8R_EXIT_GOOD;
    }
    if (code != FP8R_EXIT_GOOD) {
        fp8r_audit_fini(audit);
        return code;
    }
    qsort(audit->results, audit->count, sizeof *audit->results, compare_families);
    find_stretches(audit);
    qsort(audit->results, audit->count, sizeof *audit->results, compare_losses);
    sum_up(audit);
    return FP8R_EXIT_GOOD;
}

void fp8r_audit_fini(struct fp8r_audit *audit)
{
    free(audit->results);
    free(audit->stretches);
    *audit = (struct fp8r_audit){0};
}

int fp8r_audit_exit(const struct fp8r_audit *audit, size_t left)
{
    size_t open = audit->verdicts[FP8R_AUDIT_OPEN] + left;
    if (audit->verdicts[FP8R_AUDIT_LOST] + audit->verdicts[FP8R_AUDIT_WRONG] > 0) return FP8R_EXIT_FAILED;
    if (audit->judged > 0 && (double)open > open_share_most * (double)(audit->judged + left))
        return FP8R_EXIT_INCONCLUSIVE;
    return audit->judged == 0 || audit->verdicts[FP8R_AUDIT_REFUSED] > 0 ? FP8R_EXIT_UNMEASURED
                                                                         : FP8R_EXIT_GOOD;
}
