/* A fit from cases to numbers: checks them, finds the rule, and finds it again without each family in turn,
 * to say what it loses where it has not looked. SPDX-License-Identifier: Apache-2.0 */
#include "rule/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rule/fit_table.h"

enum { FOLDS_MAX = 24 };

static int options_check(const struct fp8r_fit_options *options, struct fp8r_tool_error *error)
{
    if (!(options->regret_max >= 0 && options->regret_max < 1))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "the regret allowed is %g, must be at least 0 and below 1 (0.01 is 1 %%)",
                                   options->regret_max);
    if (options->boxes_max < 1 || options->boxes_max > FP8R_FIT_BOXES_MAX)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "the number of boxes is %d, must be 1 to %d",
                                   options->boxes_max, FP8R_FIT_BOXES_MAX);
    return FP8R_EXIT_GOOD;
}

static bool is_time(double time_us)
{
    return time_us > 0 && isfinite(time_us);
}

static int cases_check(const struct fp8r_fit_case *cases, size_t count, struct fp8r_tool_error *error)
{
    if (count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "there is no problem to fit a rule to");
    if (count > UINT32_MAX / FP8R_FIT_AXES)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%zu problems are too many to fit a rule to",
                                   count);
    for (size_t i = 0; i < count; i++) {
        const struct fp8r_fit_case *one = &cases[i];
        const char *wrong = one->m < 1 || one->n < 1 || one->k < 1                   ? "an extent below 1"
                            : one->device < 0 || one->device >= FP8R_FIT_DEVICES_MAX ? "a device out of range"
                            : !(one->weight >= 0 && isfinite(one->weight))           ? "a weight below 0"
                            : !(is_time(one->then_us) && is_time(one->else_us))
                                ? "a time that is not positive"
                                : NULL;
        if (wrong != NULL)
            return fp8r_tool_error_set(
                error, FP8R_EXIT_BAD_DATA,
                "problem %zu (m=%lld n=%lld k=%lld) has %s, must have extents of 1 or more, a "
                "device below %d, a weight of 0 or more and positive times",
                i + 1, (long long)one->m, (long long)one->n, (long long)one->k, wrong, FP8R_FIT_DEVICES_MAX);
    }
    return FP8R_EXIT_GOOD;
}

static int number_compare(double a, double b)
{
    return (a > b) - (a < b);
}

/* Families together, then by everything else: the same cases in any order are the same fit. */
static int case_compare(const void *left, const void *right)
{
    const struct fp8r_fit_case *a = left, *b = right;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    if (a->k != b->k) return a->k < b->k ? -1 : 1;
    if (a->m != b->m) return a->m < b->m ? -1 : 1;
    if (a->device != b->device) return a->device - b->device;
    int order = number_compare(a->weight, b->weight);
    if (order == 0) order = number_compare(a->then_us, b->then_us);
    return order != 0 ? order : number_compare(a->else_us, b->else_us);
}

static void regret_settle(struct fp8r_fit_regret *regret)
{
    regret->worst = 0;
    for (int i = 0; i < FP8R_FIT_DEVICES_MAX; i++)
        regret->worst = fmax(regret->worst, regret->device[i]);
}

/* Adds what the rows marked in `only` (NULL: all) lose under the union. */
static void regret_add(struct fp8r_fit_regret *regret, const struct fp8r_fit_table *table,
                       const struct fp8r_fit_union *boxes, const unsigned char *only)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct fp8r_fit_row *row = &table->rows[i];
        if (only != NULL && !only[i]) continue;
        bool holds = fp8r_fit_union_holds(boxes, row->at);
        regret->device[row->device] += holds ? row->loss_then : row->loss_else;
        regret->worst_single = fmax(regret->worst_single, holds ? row->single_then : row->single_else);
    }
    regret_settle(regret);
}

static size_t families_count(const struct fp8r_fit_table *table)
{
    size_t count = 1;
    for (size_t i = 1; i < table->count; i++) {
        const int64_t *at = table->rows[i].at, *before = table->rows[i - 1].at;
        count += at[1] != before[1] || at[2] != before[2];
    }
    return count;
}

/* Marks the rows of every folds-th family, from fold on. */
static void fold_mark(const struct fp8r_fit_table *table, size_t fold, size_t folds, unsigned char *marks)
{
    size_t family = 0;
    for (size_t i = 0; i < table->count; i++) {
        const int64_t *at = table->rows[i].at;
        if (i > 0) family += at[1] != table->rows[i - 1].at[1] || at[2] != table->rows[i - 1].at[2];
        marks[i] = family % folds == fold;
    }
}

static int held_out_measure(const struct fp8r_fit_table *whole, const struct fp8r_fit_case *sorted,
                            const struct fp8r_fit_options *options, struct fp8r_fit *fit,
                            struct fp8r_tool_error *error)
{
    size_t families = families_count(whole), folds = families < FOLDS_MAX ? families : FOLDS_MAX;
    int rc = FP8R_EXIT_GOOD;
    if (families == 1) return rc;
    unsigned char *marks = malloc(whole->count);
    if (marks == NULL) return fp8r_tool_error_memory(error, "the families held out");
    for (size_t fold = 0; rc == FP8R_EXIT_GOOD && fold < folds; fold++) {
        struct fp8r_fit_table part;
        struct fp8r_fit_union boxes;
        fold_mark(whole, fold, folds, marks);
        rc = fp8r_fit_table_init(&part, sorted, marks, whole->count, error);
        if (rc == FP8R_EXIT_GOOD) rc = fp8r_fit_union_find(&part, options, &boxes, error);
        if (rc == FP8R_EXIT_GOOD) regret_add(&fit->held_out, whole, &boxes, marks);
        fp8r_fit_table_fini(&part);
    }
    fit->folds = (int)folds;
    free(marks);
    return rc;
}

static int box_compare(const void *left, const void *right)
{
    const struct fp8r_fit_box *a = left, *b = right;
    for (int axis = 0; axis < FP8R_FIT_AXES; axis++) {
        if (a->low[axis] != b->low[axis]) return a->low[axis] < b->low[axis] ? -1 : 1;
        if (a->high[axis] != b->high[axis]) return a->high[axis] < b->high[axis] ? -1 : 1;
    }
    return 0;
}

static void fit_fill(const struct fp8r_fit_table *table, const struct fp8r_fit_options *options,
                     struct fp8r_fit_union *boxes, struct fp8r_fit *fit)
{
    const struct fp8r_fit_union never = {.count = 0}, always = {.boxes = {fp8r_fit_box_all()}, .count = 1};
    qsort(boxes->boxes, (size_t)boxes->count, sizeof *boxes->boxes, box_compare);
    memcpy(fit->boxes, boxes->boxes, sizeof fit->boxes);
    fit->box_count = boxes->count;
    fit->condition_count = fp8r_fit_union_conditions(boxes);
    fit->device_count = table->device_count;
    regret_add(&fit->regret, table, boxes, NULL);
    regret_add(&fit->always, table, &always, NULL);
    regret_add(&fit->never, table, &never, NULL);
    fit->is_within = fp8r_fit_union_score(table, boxes).worst <= llround(options->regret_max * 1e12);
}

int fp8r_fit_find(const struct fp8r_fit_case *cases, size_t count, const struct fp8r_fit_options *options,
                  struct fp8r_fit *fit, struct fp8r_tool_error *error)
{
    struct fp8r_fit_table table = {0};
    struct fp8r_fit_union boxes;
    struct fp8r_fit found = {.box_count = 0};
    int rc = options_check(options, error);
    if (rc == FP8R_EXIT_GOOD) rc = cases_check(cases, count, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    struct fp8r_fit_case *sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL) return fp8r_tool_error_memory(error, "the problems of the fit");
    memcpy(sorted, cases, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, case_compare);
    rc = fp8r_fit_table_init(&table, sorted, NULL, count, error);
    if (rc == FP8R_EXIT_GOOD) rc = fp8r_fit_union_find(&table, options, &boxes, error);
    if (rc == FP8R_EXIT_GOOD) rc = held_out_measure(&table, sorted, options, &found, error);
    if (rc == FP8R_EXIT_GOOD) {
        fit_fill(&table, options, &boxes, &found);
        *fit = found;
    }
    fp8r_fit_table_fini(&table);
    free(sorted);
    return rc;
}

bool fp8r_fit_holds(const struct fp8r_fit *fit, int64_t m, int64_t n, int64_t k)
{
    const int64_t at[FP8R_FIT_AXES] = {m, n, k};
    for (int i = 0; i < fit->box_count; i++) {
        if (fp8r_fit_box_holds(&fit->boxes[i], at)) return true;
    }
    return false;
}
