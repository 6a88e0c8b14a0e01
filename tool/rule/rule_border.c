/* Where a rule's answer changes along m. A comparison whose sides rise or fall with m changes at two places
 * at most, found by bisection; between all such places the rule's answer is constant. Pure.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "rule/rule_tree.h"

enum { SCAN_MAX = 1 << 20 };

struct search {
    const struct fp8r_rule *rule;
    struct fp8r_rule_point low, high; /* the same n, k, b */
};

/* What is known of a number as m goes from low to high: whether it ever falls or rises, and its two ends,
 * which are its extremes as long as it does not do both. */
struct course {
    bool is_known, rises, falls; /* neither: constant */
    int64_t at_low, at_high;
};

static struct course course_of(const struct search *search, const struct fp8r_rule_node *node);

static struct course course_reverse(struct course course)
{
    bool rises = course.rises;
    course.rises = course.falls;
    course.falls = rises;
    return course;
}

static struct course course_join(struct course a, struct course b)
{
    return (struct course){.is_known =
                               a.is_known && b.is_known && !((a.rises || b.rises) && (a.falls || b.falls)),
                           .rises = a.rises || b.rises,
                           .falls = a.falls || b.falls};
}

static bool is_constant(struct course course)
{
    return course.is_known && !course.rises && !course.falls;
}

static struct course course_scale(struct course course, int64_t factor)
{
    if (factor < 0) return course_reverse(course);
    if (factor == 0) course.rises = course.falls = false;
    return course;
}

/* Two factors that are never negative and go the same way, or one that stays. */
static struct course product_course(struct course left, struct course right)
{
    if (is_constant(left)) return course_scale(right, left.at_low);
    if (is_constant(right)) return course_scale(left, right.at_low);
    struct course product = course_join(left, right);
    if (left.at_low < 0 || left.at_high < 0 || right.at_low < 0 || right.at_high < 0)
        product.is_known = false;
    return product;
}

/* Over a constant, or a constant over what is positive throughout. */
static struct course quotient_course(struct course left, struct course right)
{
    if (is_constant(right)) return course_scale(left, right.at_low);
    struct course quotient = left.at_low < 0 ? right : course_reverse(right);
    quotient.is_known = is_constant(left) && right.is_known && right.at_low > 0 && right.at_high > 0;
    return quotient;
}

static struct course operation_course(const struct search *search, const struct fp8r_rule_node *node)
{
    const struct fp8r_rule_node *first = fp8r_rule_child(search->rule, node);
    struct course left = course_of(search, first), right = {0};
    if (node->kind == FP8R_RULE_NEGATE) return course_reverse(left);
    right = course_of(search, fp8r_rule_sibling(search->rule, first));
    switch (node->kind) {
    case FP8R_RULE_ADD:
        return course_join(left, right);
    case FP8R_RULE_SUBTRACT:
        return course_join(left, course_reverse(right));
    case FP8R_RULE_MULTIPLY:
        return product_course(left, right);
    case FP8R_RULE_DIVIDE:
        return quotient_course(left, right);
    default:
        return (struct course){.is_known = is_constant(left) && is_constant(right)};
    }
}

static struct course course_of(const struct search *search, const struct fp8r_rule_node *node)
{
    struct course course = {.is_known = true};
    if (node->kind == FP8R_RULE_NAME)
        course.rises = node->value == 0;
    else if (node->kind != FP8R_RULE_NUMBER)
        course = operation_course(search, node);
    if (!course.is_known) return course;
    course.is_known =
        fp8r_rule_number_eval(search->rule, node, &search->low, &course.at_low, NULL) == FP8R_EXIT_GOOD &&
        fp8r_rule_number_eval(search->rule, node, &search->high, &course.at_high, NULL) == FP8R_EXIT_GOOD;
    return course;
}

/* The first m in (low, high] where left - right has reached `step` (0 or 1) when it rises, left it when it
 * falls; m_high + 1: nowhere. False where a value cannot be computed. */
static bool step_find(const struct search *search, const struct fp8r_rule_node *left,
                      const struct fp8r_rule_node *right, int step, bool falls, int64_t *place)
{
    int64_t before = search->low.m, after = search->high.m;
    *place = after;
    while (before < after) {
        struct fp8r_rule_point point = search->low;
        point.m = before + (after - before) / 2;
        int64_t a, b;
        if (fp8r_rule_number_eval(search->rule, left, &point, &a, NULL) != FP8R_EXIT_GOOD ||
            fp8r_rule_number_eval(search->rule, right, &point, &b, NULL) != FP8R_EXIT_GOOD)
            return false;
        int order = (a > b) - (a < b);
        if ((order >= step) != falls)
            after = point.m;
        else
            before = point.m + 1;
        *place = after;
    }
    return true;
}

struct places {
    int64_t *items;
    size_t count;
};

/* Two places for each comparison in the rule; false if one of them goes up and down. */
static bool places_collect(const struct search *search, struct places *places)
{
    for (uint32_t i = 0; i < search->rule->count; i++) {
        const struct fp8r_rule_node *node = &search->rule->nodes[i], *left, *right;
        if (node->kind != FP8R_RULE_COMPARE) continue;
        left = fp8r_rule_child(search->rule, node);
        for (; (right = fp8r_rule_sibling(search->rule, left)) != NULL; left = right) {
            struct course course =
                course_join(course_of(search, left), course_reverse(course_of(search, right)));
            if (!course.is_known) return false;
            if (is_constant(course)) continue;
            for (int step = 0; step <= 1; step++) {
                if (!step_find(search, left, right, step, course.falls, &places->items[places->count++]))
                    return false;
            }
        }
    }
    return true;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Asks the rule at places[0..count) (ascending, above m_low) and keeps in the same array those where its
 * answer differs from the one before. places NULL: asks at every m, and only counts unless `keep`. */
static int answers_compare(const struct search *search, const int64_t *places, size_t count, int64_t *keep,
                           struct fp8r_rule_borders *borders, struct fp8r_tool_error *error)
{
    struct fp8r_rule_point point = search->low;
    bool holds, before;
    int rc = fp8r_rule_eval(search->rule, &point, &before, error);
    if (rc != 0) return rc;
    borders->holds_first = before;
    borders->count = 0;
    for (size_t i = 0; i < count; i++) {
        point.m = places != NULL ? places[i] : search->low.m + 1 + (int64_t)i;
        rc = fp8r_rule_eval(search->rule, &point, &holds, error);
        if (rc != 0) return rc;
        if (holds == before) continue;
        if (keep != NULL) keep[borders->count] = point.m;
        borders->count++;
        before = holds;
    }
    return FP8R_EXIT_GOOD;
}

static int scan(const struct search *search, struct fp8r_rule_borders *borders, struct fp8r_tool_error *error)
{
    uint64_t steps = (uint64_t)search->high.m - (uint64_t)search->low.m;
    if (steps > SCAN_MAX)
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "rule: it does not rise or fall steadily with m, so that its borders are looked for "
            "at every m; expected a range of at most %d, not %lld to %lld",
            SCAN_MAX, (long long)search->low.m, (long long)search->high.m);
    int rc = answers_compare(search, NULL, (size_t)steps, NULL, borders, error);
    if (rc != 0 || borders->count == 0) return rc;
    borders->items = malloc(borders->count * sizeof *borders->items);
    if (borders->items == NULL) return fp8r_tool_error_memory(error, "the rule's borders");
    return answers_compare(search, NULL, (size_t)steps, borders->items, borders, error);
}

int fp8r_rule_borders_find(const struct fp8r_rule *rule, const struct fp8r_rule_point *point, int64_t m_low,
                           int64_t m_high, struct fp8r_rule_borders *borders, struct fp8r_tool_error *error)
{
    struct search search = {.rule = rule, .low = *point, .high = *point};
    struct fp8r_rule_borders found = {0};
    struct places places = {0};
    if (m_low < 0 || m_high < m_low)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "expected a range of m from 0 or more, not %lld to %lld", (long long)m_low,
                                   (long long)m_high);
    search.low.m = m_low;
    search.high.m = m_high;
    places.items =
        malloc(2 * (size_t)rule->count * sizeof *places.items); /* a comparison has fewer than its nodes */
    if (places.items == NULL) return fp8r_tool_error_memory(error, "the rule's borders");
    int rc;
    if (places_collect(&search, &places)) {
        qsort(places.items, places.count, sizeof *places.items, compare);
        rc = answers_compare(&search, places.items, places.count, places.items, &found, error);
        found.items = places.items;
    } else {
        free(places.items);
        rc = scan(&search, &found, error);
    }
    if (rc == 0)
        *borders = found;
    else
        free(found.items);
    return rc;
}

void fp8r_rule_borders_fini(struct fp8r_rule_borders *borders)
{
    free(borders->items);
    *borders = (struct fp8r_rule_borders){0};
}
