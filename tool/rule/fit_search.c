/* One box more: a beam of boxes, each step sets or tightens one bound of one box in every way the problems in
 * it allow. A sweep along an axis prices all bounds of one side at once. SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "rule/fit_table.h"

enum {
    BEAM = 16,
    BOUNDS = 2 * FP8R_FIT_AXES,                /* a box has at most so many */
    KEPT = FP8R_FIT_OFFERS_MAX / (BOUNDS + 1), /* offers of each number of bounds */
    SEEDS = 12
};

/* The best few, best first. Of two with one score the first stays: they cover the same problems. */
struct shortlist {
    struct fp8r_fit_offer items[BEAM];
    int count, capacity;
};

struct search {
    const struct fp8r_fit_table *table;
    const unsigned char *covered;
    double regret[FP8R_FIT_DEVICES_MAX]; /* without the box that is looked for */
    struct shortlist beam, next;
    struct shortlist kept[BOUNDS + 1]; /* by number of bounds */
};

static void shortlist_add(struct shortlist *list, const struct fp8r_fit_offer *offer)
{
    int place = list->count;
    while (place > 0 && fp8r_fit_score_compare(offer->score, list->items[place - 1].score) < 0)
        place--;
    if (place > 0 && fp8r_fit_score_compare(offer->score, list->items[place - 1].score) == 0) return;
    if (place == list->capacity) return;
    int moved = (list->count < list->capacity ? list->count++ : list->capacity - 1) - place;
    memmove(&list->items[place + 1], &list->items[place], (size_t)moved * sizeof *list->items);
    list->items[place] = *offer;
}

static int bounds_count(const struct fp8r_fit_box *box)
{
    int count = 0;
    for (int axis = 0; axis < FP8R_FIT_AXES; axis++)
        count += (box->low[axis] > 1) + (box->high[axis] < INT64_MAX);
    return count;
}

static void offer_take(struct search *search, const struct fp8r_fit_box *box, const double *regret)
{
    struct fp8r_fit_offer offer = {.box = *box,
                                   .score = fp8r_fit_score_of(regret, search->table->device_count)};
    shortlist_add(&search->next, &offer);
    shortlist_add(&search->kept[bounds_count(box)], &offer);
}

/* A sweep prices every value of one bound of a box, the others as they are: rows join from the far end on,
 * and at each value that may be a bound the box up to there is an offer; the last one has no such bound. */
static void bound_sweep(struct search *search, struct fp8r_fit_box box, int axis, bool is_low)
{
    const struct fp8r_fit_table *table = search->table;
    int64_t *bound = is_low ? &box.low[axis] : &box.high[axis];
    const struct fp8r_fit_row *last = NULL;
    double regret[FP8R_FIT_DEVICES_MAX];
    memcpy(regret, search->regret, sizeof regret);
    *bound = is_low ? 1 : INT64_MAX;
    const struct fp8r_fit_box loose = box;
    for (size_t i = 0; i < table->count; i++) {
        uint32_t index = table->order[axis][is_low ? table->count - 1 - i : i];
        const struct fp8r_fit_row *row = &table->rows[index];
        if (search->covered[index] || !fp8r_fit_box_holds(&loose, row->at)) continue;
        if (last != NULL && last->at[axis] != row->at[axis] && last->is_bound[axis]) {
            *bound = last->at[axis];
            offer_take(search, &box, regret);
        }
        regret[row->device] += row->loss_then - row->loss_else;
        last = row;
    }
    offer_take(search, &loose, regret);
}

static void box_vary(struct search *search, const struct fp8r_fit_box *box)
{
    for (int axis = 0; axis < FP8R_FIT_AXES; axis++) {
        bound_sweep(search, *box, axis, true);
        bound_sweep(search, *box, axis, false);
    }
}

/* From the box without bounds down: a beam, so that bounds that are only worth something together are found.
 */
static void search_down(struct search *search)
{
    const struct fp8r_fit_box all = fp8r_fit_box_all();
    search->next.count = 0;
    box_vary(search, &all);
    for (int step = 1; step < BOUNDS; step++) {
        search->beam = search->next;
        search->next.count = 0;
        for (int i = 0; i < search->beam.count; i++)
            box_vary(search, &search->beam.items[i].box);
    }
}

/* From the box of one problem up: finds the small corners that no single bound hints at. */
static void search_up(struct search *search, const struct fp8r_fit_row *seed)
{
    struct fp8r_fit_offer best = {.score = {INT64_MAX, INT64_MAX}};
    memcpy(best.box.low, seed->at, sizeof best.box.low);
    memcpy(best.box.high, seed->at, sizeof best.box.high);
    for (int step = 0; step < 2 * BOUNDS; step++) {
        search->next.count = 0;
        box_vary(search, &best.box);
        if (search->next.count == 0 || fp8r_fit_score_compare(search->next.items[0].score, best.score) >= 0)
            break;
        best = search->next.items[0];
    }
}

/* The problems that lose most without a box are the seeds. */
static void seeds_try(struct search *search)
{
    const struct fp8r_fit_table *table = search->table;
    uint32_t seeds[SEEDS];
    int count = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        double gain = table->rows[i].loss_else - table->rows[i].loss_then;
        if (search->covered[i] || !(gain > 0)) continue;
        int place = count;
        for (; place > 0; place--) {
            const struct fp8r_fit_row *before = &table->rows[seeds[place - 1]];
            if (!(gain > before->loss_else - before->loss_then)) break;
        }
        if (place == SEEDS) continue;
        if (count < SEEDS) count++;
        memmove(&seeds[place + 1], &seeds[place], (size_t)(count - 1 - place) * sizeof *seeds);
        seeds[place] = i;
    }
    for (int i = 0; i < count; i++)
        search_up(search, &table->rows[seeds[i]]);
}

int fp8r_fit_boxes_search(const struct fp8r_fit_table *table, const struct fp8r_fit_union *boxes,
                          unsigned char *covered, struct fp8r_fit_offer offers[FP8R_FIT_OFFERS_MAX])
{
    struct search search = {.table = table, .covered = covered, .next = {.capacity = BEAM}};
    int count = 0;
    for (int i = 0; i <= BOUNDS; i++)
        search.kept[i].capacity = KEPT;
    fp8r_fit_union_regret(table, boxes, search.regret);
    for (size_t i = 0; i < table->count; i++)
        covered[i] = fp8r_fit_union_holds(boxes, table->rows[i].at);
    search_down(&search);
    seeds_try(&search);
    for (int bounds = 0; bounds <= BOUNDS; bounds++) {
        for (int i = 0; i < search.kept[bounds].count; i++)
            offers[count++] = search.kept[bounds].items[i];
    }
    return count;
}
