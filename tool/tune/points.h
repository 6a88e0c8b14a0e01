/* Results of one family at its measured M, and the segments of a route file that follow from them. Pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_POINTS_H
#define FP8R_POINTS_H

#include "route/table.h"

/* A backend in one configuration. */
struct fp8r_entrant {
    char backend[FP8R_NAME_BYTES], config[FP8R_NAME_BYTES], rev[FP8R_REV_BYTES];
    char label[FP8R_LABEL_BYTES];
};

struct fp8r_point {
    int64_t m;
    int chosen, fallback; /* indices of entrants; fallback: the default */
    bool is_clear;
    double gain_low, gain_high; /* interval of default time / chosen time */
    double *medians_us;         /* one an entrant; 0 where it was not measured */
    int64_t default_last;       /* up to this m the default is the same; 0: unknown */
};

struct fp8r_points {
    struct fp8r_entrant *entrants;
    int entrant_count;
    struct fp8r_point *points; /* by ascending m */
    size_t count, capacity;
};

/* Segments from points: neighbours of equal choice and verdict become one, unless the choice is the default at one of them and
 * replaces it at the other. Writes up to points->count
 * segments and returns how many. */
int fp8r_points_segments(const struct fp8r_points *points, struct fp8r_segment *segments);

void fp8r_points_fini(struct fp8r_points *points);

#endif
