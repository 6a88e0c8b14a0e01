/* Where one decision ends and the next begins.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tune/analysis.h"

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
    int64_t left = family->points[i].it->m, right = family->points[i + 1].it->m;
    if (family->has_steps)
        return left;
    int64_t middle = (int64_t)floor(sqrt((double)left) * sqrt((double)right) + 1e-9);
    return middle < left ? left : middle >= right ? right - 1 : middle;
}
