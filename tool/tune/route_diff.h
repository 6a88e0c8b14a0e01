/* Two tables of routes held against each other, range of M by range of M: what is chosen differently, and what both sides
 * knew when they chose.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_DIFF_H
#define FP8R_ROUTE_DIFF_H

#include "route/table.h"
#include "tool_error.h"

enum fp8r_change {
    FP8R_CHANGE_NONE,
    FP8R_CHANGE_BORDER,  /* both tables have these two choices side by side, with the border elsewhere */
    FP8R_CHANGE_CONFIG,  /* the same backend in another configuration */
    FP8R_CHANGE_BACKEND,
    FP8R_CHANGE_NEW,     /* measured in the new table only */
    FP8R_CHANGE_GONE,    /* in the old one only */
    FP8R_CHANGES
};

/* "same", "border", "config", "backend", "new", "gone". */
const char *fp8r_change_name(enum fp8r_change change);

/* Rows of one family that no segment of either table divides. */
struct fp8r_diff_range {
    const struct fp8r_entry *entry; /* of a table that has the family */
    int64_t m_first, m_last;
    const struct fp8r_segment *before, *after; /* one of them may be NULL */
    enum fp8r_change change;
    bool is_contradiction; /* clear for one choice before, for another one after */
    char why[240];         /* "" where nothing is to be said */
};

struct fp8r_table_diff {
    struct fp8r_diff_range *ranges; /* by family and M */
    size_t count, capacity;
    size_t changes[FP8R_CHANGES]; /* ranges of each kind */
    size_t contradictions;
    size_t points, points_changed; /* powers of two measured in both tables, and those with another choice */
    double length, length_changed; /* the same in log2 M */
};

/* A border that moved by less than this factor is no contradiction: its place between two measured M is a guess. */
enum { FP8R_DIFF_BORDER_FACTOR = 2 };

/* The tables must live as long; fini frees the ranges. Exit codes: INTERNAL. */
int fp8r_table_compare(const struct fp8r_table *before, const struct fp8r_table *after, struct fp8r_table_diff *diff,
                       struct fp8r_tool_error *error);
void fp8r_table_diff_fini(struct fp8r_table_diff *diff);

#endif
