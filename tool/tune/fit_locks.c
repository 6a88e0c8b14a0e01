/* The problems at which a test locks a rule. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tune/fit_files.h"

enum { SEARCH_M = 1 << 20 };

struct locks {
    const struct fp8r_fit_story *story;
    struct fp8r_fit_lock *items;
    size_t count, capacity;
    bool is_short;
};

/* What the boxes say, not the rule's text: the test holds one against the other. */
static void add(struct locks *locks, int64_t m, int64_t n, int64_t k)
{
    if (m < 1 || n < 1 || k < 1) return;
    if (locks->count == locks->capacity && !locks->is_short) {
        size_t capacity = locks->capacity > 0 ? 2 * locks->capacity : 64;
        struct fp8r_fit_lock *items = realloc(locks->items, capacity * sizeof *items);
        locks->is_short = !items;
        locks->items = items ? items : locks->items;
        locks->capacity = items ? capacity : locks->capacity;
    }
    if (locks->is_short) return;
    locks->items[locks->count++] =
        (struct fp8r_fit_lock){m, n, k, fp8r_fit_holds(locks->story->fit, m, n, k)};
}

/* Both sides of each bound, from the box's lowest corner and its highest. */
static void add_box(struct locks *locks, const struct fp8r_fit_box *box)
{
    static const int64_t far = 1 << 20; /* stands for a bound that there is not */
    for (int corner = 0; corner < 2; corner++) {
        int64_t at[3];
        for (int axis = 0; axis < 3; axis++)
            at[axis] = corner == 0 ? box->low[axis] : box->high[axis] < INT64_MAX ? box->high[axis] : far;
        add(locks, at[0], at[1], at[2]);
        for (int axis = 0; axis < 3; axis++) {
            int64_t kept = at[axis];
            at[axis] = box->low[axis] - 1;
            add(locks, at[0], at[1], at[2]);
            at[axis] = box->low[axis];
            add(locks, at[0], at[1], at[2]);
            at[axis] = box->high[axis] < INT64_MAX ? box->high[axis] : far;
            add(locks, at[0], at[1], at[2]);
            if (box->high[axis] < INT64_MAX)
                add(locks, at[0] + (axis == 0), at[1] + (axis == 1), at[2] + (axis == 2));
            at[axis] = kept;
        }
    }
}

static int add_family(struct locks *locks, int64_t n, int64_t k, struct fp8r_tool_error *error)
{
    struct fp8r_rule_borders borders;
    struct fp8r_rule_point point = {.m = 1, .n = n, .k = k, .b = 1};
    int code = fp8r_rule_borders_find(locks->story->rule, &point, 1, SEARCH_M, &borders, error);
    if (code != FP8R_EXIT_GOOD) return code;
    add(locks, 1, n, k);
    for (size_t i = 0; i < borders.count; i++) {
        add(locks, borders.items[i] - 1, n, k);
        add(locks, borders.items[i], n, k);
    }
    add(locks, SEARCH_M, n, k);
    fp8r_rule_borders_fini(&borders);
    return code;
}

static int compare(const void *a, const void *b)
{
    const struct fp8r_fit_lock *one = a, *other = b;
    if (one->n != other->n) return one->n < other->n ? -1 : 1;
    if (one->k != other->k) return one->k < other->k ? -1 : 1;
    return (one->m > other->m) - (one->m < other->m);
}

int fp8r_fit_locks(const struct fp8r_fit_story *story, struct fp8r_fit_lock **result, size_t *count,
                   struct fp8r_tool_error *error)
{
    struct locks locks = {.story = story};
    const struct fp8r_fit_set *set = story->set;
    int code = FP8R_EXIT_GOOD;
    for (int i = 0; i < story->fit->box_count; i++)
        add_box(&locks, &story->fit->boxes[i]);
    for (size_t i = 0; i < set->count && code == FP8R_EXIT_GOOD; i++)
        if (i == 0 || set->cases[i].n != set->cases[i - 1].n || set->cases[i].k != set->cases[i - 1].k)
            code = add_family(&locks, set->cases[i].n, set->cases[i].k, error);
    if (code == FP8R_EXIT_GOOD && locks.is_short) code = fp8r_tool_error_memory(error, "the rule's test");
    if (code != FP8R_EXIT_GOOD) {
        free(locks.items);
        return code;
    }
    qsort(locks.items, locks.count, sizeof *locks.items, compare);
    *count = 0;
    for (size_t i = 0; i < locks.count; i++)
        if (*count == 0 || compare(&locks.items[*count - 1], &locks.items[i]) != 0)
            locks.items[(*count)++] = locks.items[i];
    *result = locks.items;
    return FP8R_EXIT_GOOD;
}
