/* Where one decision ends and the next begins.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tune/analysis.h"
#include "tune/border.h"

bool analysis_is_switch(const struct analysis_family *family, size_t i)
{
    const struct analysis_point *left = &family->points[i], *right = &family->points[i + 1];
    return strcmp(left->it->candidates[left->chosen].name, right->it->candidates[right->chosen].name) != 0;
}

/* How the chosen one stands to the default: it is the default, it replaces it, or no default was measured. */
static int relation(const struct analysis_point *point)
{
    return point->gain_low > 0 ? point->chosen == point->it->fallback : 2;
}

bool analysis_is_border(const struct analysis_family *family, size_t i)
{
    const struct analysis_point *left = &family->points[i], *right = &family->points[i + 1];
    bool one_verdict = (left->verdict == ANALYSIS_CLEAR) == (right->verdict == ANALYSIS_CLEAR);
    return !one_verdict || relation(left) != relation(right) || analysis_is_switch(family, i);
}

int64_t analysis_border(const struct analysis_family *family, size_t i)
{
    const struct analysis_point *left = &family->points[i], *right = &family->points[i + 1];
    const char *here = left->it->candidates[left->it->fallback].name;
    bool changes = strcmp(here, right->it->candidates[right->it->fallback].name) != 0;
    struct fp8r_border border = {.m = left->it->m,
                                 .m_next = right->it->m,
                                 .stays = relation(left) == 1 && relation(right) == 1,
                                 .default_last = changes ? left->it->default_last : 0,
                                 .has_steps = family->has_steps};
    return fp8r_border_place(&border);
}
