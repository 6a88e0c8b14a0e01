/* A fitted rule as files that go into somebody's repository: the rule in C and Python, a test in each that
 * locks it at its borders, an annotated table of the shapes behind it, and route files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FIT_FILES_H
#define FP8R_FIT_FILES_H

#include "tune/fit_set.h"

/* What all files are made from. Borrowed. */
struct fp8r_fit_story {
    const struct fp8r_fit *fit;
    const struct fp8r_rule *rule;
    const char *text; /* the rule as such */
    const struct fp8r_fit_set *set;
    const struct samples *samples;
    double bound;
};

/* A problem, and what the rule must say of it. */
struct fp8r_fit_lock {
    int64_t m, n, k;
    bool holds;
};

/* Both sides of every border: of each box along each axis, and along M of each measured N and K. New array
 * (free it), ascending, without repeats. Exit codes: INTERNAL. */
int fp8r_fit_locks(const struct fp8r_fit_story *story, struct fp8r_fit_lock **locks, size_t *count,
                   struct fp8r_tool_error *error);

/* The rule's routes of a device's measured families. Fini the file. Exit codes: INTERNAL. */
int fp8r_fit_routes(const struct fp8r_fit_story *story, int device, struct fp8r_route_file *file,
                    struct fp8r_tool_error *error);

/* The annotated table as Markdown, new text (free it); NULL when out of memory. */
char *fp8r_fit_shapes(const struct fp8r_fit_story *story);

/* The rule as a whole function of C (with what it needs) or Python, new text (free it); NULL when out of
 * memory. */
char *fp8r_fit_function(const struct fp8r_fit_story *story, enum fp8r_rule_dialect dialect);

/* Writes rule.txt, rule.h, rule.py, test_rule.c, test_rule.py, shapes.md and rule.routes (rule-1.routes,
 * rule-2.routes
 * ... where there are several machines) into the folder, which is made where missing. Exit codes: BAD_DATA
 * where it cannot be written, INTERNAL. */
int fp8r_fit_write(const struct fp8r_fit_story *story, const char *folder, struct fp8r_tool_error *error);

#endif
