/* The cases of a fit, prepared: what each loses under either choice, sorted along each axis; and boxes over
 * them. Private to tool/rule. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FIT_TABLE_H
#define FP8R_FIT_TABLE_H

#include "rule/fit.h"

#define FP8R_FIT_AXES 3

struct fp8r_fit_row {
    int64_t at[FP8R_FIT_AXES];
    bool is_bound[FP8R_FIT_AXES]; /* a bound of a box may be set here: every value, or where there are many
                                     every few */
    int device;
    double loss_then, loss_else;     /* share of the device's regret */
    double single_then, single_else; /* regret of this problem alone */
};

struct fp8r_fit_table {
    struct fp8r_fit_row *rows;      /* by m, n, k, device, times */
    uint32_t *order[FP8R_FIT_AXES]; /* rows ascending along an axis */
    int64_t *values[FP8R_FIT_AXES]; /* the different ones, ascending */
    size_t value_count[FP8R_FIT_AXES];
    size_t count;
    int device_count;
};

/* Boxes joined by `or`. */
struct fp8r_fit_union {
    struct fp8r_fit_box boxes[FP8R_FIT_BOXES_MAX];
    int count;
};

/* What is minimised, in 1e-12, so that sums in another order are the same score: the worst device's regret,
 * then that of all devices. */
struct fp8r_fit_score {
    int64_t worst, all;
};

/* The cases for which skip (of the sorted cases; NULL: none) is not set. */
int fp8r_fit_table_init(struct fp8r_fit_table *table, const struct fp8r_fit_case *cases,
                        const unsigned char *skip, size_t count, struct fp8r_tool_error *error);
void fp8r_fit_table_fini(struct fp8r_fit_table *table);

static inline struct fp8r_fit_box fp8r_fit_box_all(void)
{
    return (struct fp8r_fit_box){.low = {1, 1, 1}, .high = {INT64_MAX, INT64_MAX, INT64_MAX}};
}

static inline bool fp8r_fit_box_holds(const struct fp8r_fit_box *box, const int64_t at[FP8R_FIT_AXES])
{
    for (int i = 0; i < FP8R_FIT_AXES; i++) {
        if (at[i] < box->low[i] || at[i] > box->high[i]) return false;
    }
    return true;
}

static inline bool fp8r_fit_union_holds(const struct fp8r_fit_union *boxes, const int64_t at[FP8R_FIT_AXES])
{
    for (int i = 0; i < boxes->count; i++) {
        if (fp8r_fit_box_holds(&boxes->boxes[i], at)) return true;
    }
    return false;
}

/* Bounds in the text of the union: == has two, and those of an axis that all boxes share count once. */
int fp8r_fit_union_conditions(const struct fp8r_fit_union *boxes);

/* The regret of each device under the union. */
void fp8r_fit_union_regret(const struct fp8r_fit_table *table, const struct fp8r_fit_union *boxes,
                           double device[FP8R_FIT_DEVICES_MAX]);

struct fp8r_fit_score fp8r_fit_score_of(const double *device, int device_count);
struct fp8r_fit_score fp8r_fit_union_score(const struct fp8r_fit_table *table,
                                           const struct fp8r_fit_union *boxes);

static inline int fp8r_fit_score_compare(struct fp8r_fit_score a, struct fp8r_fit_score b)
{
    if (a.worst != b.worst) return a.worst < b.worst ? -1 : 1;
    return (a.all > b.all) - (a.all < b.all);
}

/* A box to add to a union, and the union's score with it. */
struct fp8r_fit_offer {
    struct fp8r_fit_box box;
    struct fp8r_fit_score score;
};

#define FP8R_FIT_OFFERS_MAX 24

/* The best boxes to add, a few of each number of bounds; returns how many. covered: bytes for table->count
 * rows. */
int fp8r_fit_boxes_search(const struct fp8r_fit_table *table, const struct fp8r_fit_union *boxes,
                          unsigned char *covered, struct fp8r_fit_offer offers[FP8R_FIT_OFFERS_MAX]);

/* The shortest union within regret_max, or the best. */
int fp8r_fit_union_find(const struct fp8r_fit_table *table, const struct fp8r_fit_options *options,
                        struct fp8r_fit_union *boxes, struct fp8r_tool_error *error);

#endif
