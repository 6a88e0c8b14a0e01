/* From boxes to the rule: a beam of unions grows by one box at a time; each union is pruned to the conditions
 * it needs for the regret that is allowed, and the shortest wins. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "rule/fit_table.h"

enum { BEAM = 6 };

struct ranked {
    struct fp8r_fit_union boxes;
    struct fp8r_fit_score score;
    int conditions;
};

struct ranking {
    struct ranked items[BEAM];
    int count;
};

struct growth {
    const struct fp8r_fit_table *table;
    int64_t regret_max;     /* as a score's worst */
    unsigned char *covered; /* scratch */
    struct ranked best;
    struct ranking beam;
};

static struct ranked rank(const struct growth *growth, const struct fp8r_fit_union *boxes)
{
    return (struct ranked){.boxes = *boxes,
                           .score = fp8r_fit_union_score(growth->table, boxes),
                           .conditions = fp8r_fit_union_conditions(boxes)};
}

/* Within the bound: the shorter, then the better. Out of it: the better, then the shorter. */
static bool is_preferred(const struct growth *growth, const struct ranked *a, const struct ranked *b)
{
    bool a_within = a->score.worst <= growth->regret_max, b_within = b->score.worst <= growth->regret_max;
    int order = fp8r_fit_score_compare(a->score, b->score);
    if (a_within != b_within) return a_within;
    if (a_within && a->conditions != b->conditions) return a->conditions < b->conditions;
    if (order != 0) return order < 0;
    return a->conditions < b->conditions;
}

/* One way to make a union shorter. */
struct pruning {
    enum { DROP_BOX, DROP_BOUND, DROP_BOUND_EVERYWHERE, SHARE_AXIS } what;
    int box, axis;
    bool is_low;
};

/* The i-th pruning of a union; false after the last. */
static bool pruning_at(const struct fp8r_fit_union *boxes, int i, struct pruning *pruning)
{
    int box = i / 10, move = i % 10;
    *pruning = (struct pruning){.box = box, .axis = move / 2 % FP8R_FIT_AXES, .is_low = move % 2 == 0};
    if (box == boxes->count) {
        pruning->what = DROP_BOUND_EVERYWHERE;
        return boxes->count > 1 && move < 2 * FP8R_FIT_AXES;
    }
    pruning->what = DROP_BOUND;
    if (move >= 2 * FP8R_FIT_AXES) {
        pruning->what = move == 2 * FP8R_FIT_AXES ? DROP_BOX : SHARE_AXIS;
        pruning->axis = move - 2 * FP8R_FIT_AXES - 1;
    }
    return true;
}

static void bound_set(struct fp8r_fit_box *box, int axis, bool is_low, int64_t value)
{
    if (is_low)
        box->low[axis] = value;
    else
        box->high[axis] = value;
}

static struct fp8r_fit_union pruned(const struct fp8r_fit_union *boxes, const struct pruning *pruning)
{
    struct fp8r_fit_union shorter = *boxes;
    int axis = pruning->axis;
    if (pruning->what == DROP_BOX) {
        for (int i = pruning->box + 1; i < boxes->count; i++)
            shorter.boxes[i - 1] = boxes->boxes[i];
        shorter.count--;
    }
    for (int i = 0; i < boxes->count; i++) {
        if (pruning->what == DROP_BOUND_EVERYWHERE || (pruning->what == DROP_BOUND && i == pruning->box))
            bound_set(&shorter.boxes[i], axis, pruning->is_low, pruning->is_low ? 1 : INT64_MAX);
        if (pruning->what != SHARE_AXIS) continue;
        shorter.boxes[i].low[axis] = boxes->boxes[pruning->box].low[axis];
        shorter.boxes[i].high[axis] = boxes->boxes[pruning->box].high[axis];
    }
    return shorter;
}

/* Prunes for as long as the regret stays within the bound, or, where it is beyond already, does not rise;
 * each time in the way that costs least. */
static struct ranked prune(const struct growth *growth, struct ranked from)
{
    for (;;) {
        int64_t worst_max = from.score.worst > growth->regret_max ? from.score.worst : growth->regret_max;
        struct ranked found = {.conditions = -1};
        struct pruning pruning;
        for (int i = 0; pruning_at(&from.boxes, i, &pruning); i++) {
            struct fp8r_fit_union shorter = pruned(&from.boxes, &pruning);
            struct ranked offer = rank(growth, &shorter);
            bool is_shorter = offer.conditions < from.conditions ||
                              (offer.conditions == from.conditions && shorter.count < from.boxes.count);
            if (!is_shorter || offer.score.worst > worst_max) continue;
            if (found.conditions < 0 || fp8r_fit_score_compare(offer.score, found.score) < 0) found = offer;
        }
        if (found.conditions < 0) return from;
        from = found;
    }
}

/* How many of the axis's values are below `value`. */
static size_t values_below(const struct fp8r_fit_table *table, int axis, int64_t value)
{
    size_t low = 0, high = table->value_count[axis];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table->values[axis][middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct fp8r_fit_union bound_moved(const struct fp8r_fit_union *boxes, int axis, bool is_low,
                                         int64_t from, int64_t to)
{
    struct fp8r_fit_union moved = *boxes;
    for (int i = 0; i < moved.count; i++) {
        int64_t bound = is_low ? moved.boxes[i].low[axis] : moved.boxes[i].high[axis];
        if (bound == from) bound_set(&moved.boxes[i], axis, is_low, to);
    }
    return moved;
}

/* Moves a bound, in all boxes that have it, to the value within reach that loses least. True if that is less.
 */
static bool bound_move(const struct growth *growth, struct ranked *from, int box, int axis, bool is_low)
{
    enum { REACH = 32 }; /* different values, either way */
    const struct fp8r_fit_table *table = growth->table;
    const struct fp8r_fit_box *own = &from->boxes.boxes[box];
    int64_t value = is_low ? own->low[axis] : own->high[axis];
    struct ranked best = *from;
    if (value == (is_low ? 1 : INT64_MAX)) return false;
    size_t place = values_below(table, axis, value), end = place + REACH;
    for (size_t i = place > REACH ? place - REACH : 0; i < end && i < table->value_count[axis]; i++) {
        struct fp8r_fit_union moved = bound_moved(&from->boxes, axis, is_low, value, table->values[axis][i]);
        struct ranked offer = rank(growth, &moved);
        if (offer.conditions <= from->conditions && fp8r_fit_score_compare(offer.score, best.score) < 0)
            best = offer;
    }
    bool is_better = fp8r_fit_score_compare(best.score, from->score) < 0;
    *from = best;
    return is_better;
}

/* The search set each bound while others were missing; now that all are there, each is looked at again. */
static void polish(const struct growth *growth, struct ranked *from)
{
    bool is_better = true;
    for (int round = 0; is_better && round < 4; round++) {
        is_better = false;
        for (int i = 0; i < from->boxes.count * 2 * FP8R_FIT_AXES; i++)
            is_better |= bound_move(growth, from, i / (2 * FP8R_FIT_AXES), i / 2 % FP8R_FIT_AXES, i % 2 == 0);
    }
}

/* A short list, best first by score; of two with one score the shorter. */
static void ranking_add(struct ranking *list, const struct ranked *offer)
{
    int place = list->count;
    for (; place > 0; place--) {
        const struct ranked *before = &list->items[place - 1];
        int order = fp8r_fit_score_compare(offer->score, before->score);
        if (order == 0 && offer->conditions >= before->conditions) return;
        if (order > 0) break;
    }
    if (place == BEAM) return;
    if (list->count < BEAM) list->count++;
    for (int i = list->count - 1; i > place; i--)
        list->items[i] = list->items[i - 1];
    list->items[place] = *offer;
}

static void contend(struct growth *growth, const struct ranked *offer)
{
    if (is_preferred(growth, offer, &growth->best)) growth->best = *offer;
}

/* One box more on every union of the beam. What is short enough as it is contends at once; what is best by
 * score is pruned first, which is where most of the time goes. */
static void grow(struct growth *growth)
{
    struct fp8r_fit_offer offers[FP8R_FIT_OFFERS_MAX];
    struct ranking next = {.count = 0};
    for (int i = 0; i < growth->beam.count; i++) {
        int count =
            fp8r_fit_boxes_search(growth->table, &growth->beam.items[i].boxes, growth->covered, offers);
        for (int j = 0; j < count; j++) {
            struct fp8r_fit_union boxes = growth->beam.items[i].boxes;
            boxes.boxes[boxes.count++] = offers[j].box;
            struct ranked grown = rank(growth, &boxes);
            contend(growth, &grown);
            ranking_add(&next, &grown);
        }
    }
    for (int i = 0; i < next.count; i++) {
        struct ranked shorter = prune(growth, next.items[i]);
        contend(growth, &shorter);
    }
    struct ranked shorter = prune(growth, growth->best);
    contend(growth, &shorter);
    growth->beam = next;
}

int fp8r_fit_union_find(const struct fp8r_fit_table *table, const struct fp8r_fit_options *options,
                        struct fp8r_fit_union *boxes, struct fp8r_tool_error *error)
{
    const struct fp8r_fit_union none = {.count = 0}, always = {.boxes = {fp8r_fit_box_all()}, .count = 1};
    struct growth growth = {.table = table, .beam = {.count = 1}};
    growth.regret_max = (int64_t)llround(options->regret_max * 1e12);
    growth.covered = malloc(table->count);
    if (growth.covered == NULL) return fp8r_tool_error_memory(error, "the search for a rule");
    growth.beam.items[0] = growth.best = rank(&growth, &none);
    const struct ranked all = rank(&growth, &always);
    if (is_preferred(&growth, &all, &growth.best)) growth.best = all;
    for (int level = 0; level < options->boxes_max; level++) {
        /* A rule with a box more has at least as many conditions as boxes. */
        if (growth.best.score.worst <= growth.regret_max && growth.best.conditions <= level) break;
        grow(&growth);
    }
    free(growth.covered);
    polish(&growth, &growth.best);
    growth.best = prune(&growth, growth.best);
    *boxes = growth.best.boxes;
    return FP8R_EXIT_GOOD;
}
