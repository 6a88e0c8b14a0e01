/* Losses, orders and scores: the arithmetic under the search. Pure but for its allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rule/fit_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ordered {
    int64_t at;
    uint32_t row;
};

static int ordered_compare(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static void losses_fill(struct fp8r_fit_table *table, const struct fp8r_fit_case *cases,
                        const unsigned char *skip, size_t count)
{
    double weight[FP8R_FIT_DEVICES_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        if (skip == NULL || !skip[i]) weight[cases[i].device] += cases[i].weight;
    }
    for (size_t i = 0; i < count; i++) {
        const struct fp8r_fit_case *one = &cases[i];
        if (skip != NULL && skip[i]) continue;
        double better_us = fmin(one->then_us, one->else_us);
        double share = weight[one->device] > 0 ? one->weight / weight[one->device] : 0;
        struct fp8r_fit_row row = {.at = {one->m, one->n, one->k},
                                   .device = one->device,
                                   .single_then = one->then_us / better_us - 1,
                                   .single_else = one->else_us / better_us - 1};
        row.loss_then = share * row.single_then;
        row.loss_else = share * row.single_else;
        table->rows[table->count++] = row;
        if (table->device_count <= one->device) table->device_count = one->device + 1;
    }
}

/* Of many different values every few may be bounds: a search that tries them all takes long and finds the
 * same rule, whose bounds are looked at again at the end. */
static void axis_fill(struct fp8r_fit_table *table, int axis, struct ordered *ordered)
{
    enum { BOUNDS_MAX = 48 };
    size_t values = 0;
    for (size_t i = 0; i < table->count; i++)
        ordered[i] = (struct ordered){table->rows[i].at[axis], (uint32_t)i};
    qsort(ordered, table->count, sizeof *ordered, ordered_compare);
    for (size_t i = 0; i < table->count; i++) {
        table->order[axis][i] = ordered[i].row;
        if (i == 0 || ordered[i].at != ordered[i - 1].at) table->values[axis][values++] = ordered[i].at;
    }
    table->value_count[axis] = values;
    for (size_t i = 0, value = 0; i < table->count; i++) {
        value += ordered[i].at != table->values[axis][value];
        table->rows[ordered[i].row].is_bound[axis] = value % (values / BOUNDS_MAX + 1) == 0;
    }
}

int fp8r_fit_table_init(struct fp8r_fit_table *table, const struct fp8r_fit_case *cases,
                        const unsigned char *skip, size_t count, struct fp8r_tool_error *error)
{
    *table = (struct fp8r_fit_table){0};
    struct ordered *ordered = malloc(count * sizeof *ordered);
    table->rows = malloc(count * sizeof *table->rows);
    table->order[0] = malloc(FP8R_FIT_AXES * count * sizeof *table->order[0]);
    table->values[0] = malloc(FP8R_FIT_AXES * count * sizeof *table->values[0]);
    if (ordered == NULL || table->rows == NULL || table->order[0] == NULL || table->values[0] == NULL) {
        free(ordered);
        fp8r_fit_table_fini(table);
        return fp8r_tool_error_memory(error, "the problems of the fit");
    }
    losses_fill(table, cases, skip, count);
    for (size_t axis = 0; axis < FP8R_FIT_AXES; axis++) {
        table->order[axis] = table->order[0] + axis * count;
        table->values[axis] = table->values[0] + axis * count;
        axis_fill(table, (int)axis, ordered);
    }
    free(ordered);
    return FP8R_EXIT_GOOD;
}

void fp8r_fit_table_fini(struct fp8r_fit_table *table)
{
    free(table->rows);
    free(table->order[0]);
    free(table->values[0]);
    *table = (struct fp8r_fit_table){0};
}

static int axis_conditions(const struct fp8r_fit_box *box, int axis)
{
    return (box->low[axis] > 1) + (box->high[axis] < INT64_MAX);
}

int fp8r_fit_union_conditions(const struct fp8r_fit_union *boxes)
{
    int conditions = 0;
    for (int axis = 0; axis < FP8R_FIT_AXES; axis++) {
        bool is_shared = true;
        int own = 0;
        for (int i = 0; i < boxes->count; i++) {
            const struct fp8r_fit_box *box = &boxes->boxes[i], *first = &boxes->boxes[0];
            own += axis_conditions(box, axis);
            is_shared =
                is_shared && box->low[axis] == first->low[axis] && box->high[axis] == first->high[axis];
        }
        conditions += is_shared && boxes->count > 0 ? axis_conditions(&boxes->boxes[0], axis) : own;
    }
    return conditions;
}

void fp8r_fit_union_regret(const struct fp8r_fit_table *table, const struct fp8r_fit_union *boxes,
                           double device[FP8R_FIT_DEVICES_MAX])
{
    memset(device, 0, FP8R_FIT_DEVICES_MAX * sizeof *device);
    for (size_t i = 0; i < table->count; i++) {
        const struct fp8r_fit_row *row = &table->rows[i];
        device[row->device] += fp8r_fit_union_holds(boxes, row->at) ? row->loss_then : row->loss_else;
    }
}

/* A millionfold time is as bad as any. */
static int64_t rounded(double regret)
{
    return (int64_t)llround(fmin(regret, 1e6) * 1e12);
}

struct fp8r_fit_score fp8r_fit_score_of(const double *device, int device_count)
{
    double worst = 0, all = 0;
    for (int i = 0; i < device_count; i++) {
        worst = fmax(worst, device[i]);
        all += device[i];
    }
    return (struct fp8r_fit_score){.worst = rounded(worst), .all = rounded(all)};
}

struct fp8r_fit_score fp8r_fit_union_score(const struct fp8r_fit_table *table,
                                           const struct fp8r_fit_union *boxes)
{
    double device[FP8R_FIT_DEVICES_MAX];
    fp8r_fit_union_regret(table, boxes, device);
    return fp8r_fit_score_of(device, table->device_count);
}
