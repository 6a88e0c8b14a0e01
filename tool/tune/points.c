/* Points into segments.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tune/border.h"

void fp8r_points_fini(struct fp8r_points *points)
{
    for (size_t i = 0; i < points->count; i++)
        free(points->points[i].medians_us);
    free(points->points);
    free(points->entrants);
    *points = (struct fp8r_points){0};
}

/* Geometric mean of an entrant's medians over points first..last; 0 where it lacks one. */
static double mean_us(const struct fp8r_points *points, size_t first, size_t last, int entrant)
{
    double sum = 0;
    for (size_t i = first; i <= last; i++) {
        if (!(points->points[i].medians_us[entrant] > 0)) return 0;
        sum += log(points->points[i].medians_us[entrant]);
    }
    return exp(sum / (double)(last - first + 1));
}

/* Another's time as a multiple of the chosen one's: the geometric mean over the points where it was measured, and how many
 * those are. */
static double mean_ratio(const struct fp8r_points *points, size_t first, size_t last, int entrant, size_t *count)
{
    double sum = 0;
    *count = 0;
    for (size_t i = first; i <= last; i++) {
        const double *medians = points->points[i].medians_us;
        if (!(medians[entrant] > 0)) continue;
        sum += log(medians[entrant] / medians[points->points[i].chosen]);
        ++*count;
    }
    return *count > 0 ? exp(sum / (double)*count) : INFINITY;
}

/* The best of those others that were measured at most points (who is far behind at one is not at the next); -1 where none
 * was. */
static int find_runner_up(const struct fp8r_points *points, size_t first, size_t last, double *ratio)
{
    int best = -1;
    size_t most = 1;
    for (int i = 0; i < points->entrant_count; i++) {
        size_t count;
        double own = mean_ratio(points, first, last, i, &count);
        if (i == points->points[first].chosen || count < most || (count == most && best >= 0 && own >= *ratio)) continue;
        best = i;
        most = count;
        *ratio = own;
    }
    return best;
}

static void make_segment(const struct fp8r_points *points, size_t first, size_t last,
                         struct fp8r_segment *segment)
{
    const struct fp8r_point *point = &points->points[first];
    const struct fp8r_entrant *chosen = &points->entrants[point->chosen];
    *segment = (struct fp8r_segment){.m_first = point->m,
                                     .m_last = points->points[last].m,
                                     .median_us = mean_us(points, first, last, point->chosen),
                                     .gain_low = point->gain_low,
                                     .gain_high = point->gain_high,
                                     .is_clear = point->is_clear};
    for (size_t i = first + 1; i <= last; i++) {
        segment->gain_low = fmin(segment->gain_low, points->points[i].gain_low);
        segment->gain_high = fmax(segment->gain_high, points->points[i].gain_high);
    }
    snprintf(segment->backend, sizeof segment->backend, "%s", chosen->backend);
    snprintf(segment->config, sizeof segment->config, "%s", chosen->config);
    snprintf(segment->rev, sizeof segment->rev, "%s", chosen->rev);
    double ratio = 0;
    int runner_up = find_runner_up(points, first, last, &ratio);
    if (runner_up < 0) return;
    segment->runner_up_us = ratio * segment->median_us;
    snprintf(segment->runner_up, sizeof segment->runner_up, "%s", points->entrants[runner_up].label);
}

/* How the chosen one stands to the default: it is the default, it replaces it, or no default was raced. */
static int relation(const struct fp8r_point *point)
{
    return point->gain_low > 0 ? point->chosen == point->fallback : 2;
}

static bool belong_together(const struct fp8r_point *a, const struct fp8r_point *b)
{
    return a->chosen == b->chosen && a->is_clear == b->is_clear && relation(a) == relation(b);
}

static int64_t border_behind(const struct fp8r_point *point)
{
    const struct fp8r_point *next = point + 1;
    struct fp8r_border border = {.m = point->m,
                                 .m_next = next->m,
                                 .stays = relation(point) == 1 && relation(next) == 1,
                                 .default_last = point->fallback != next->fallback ? point->default_last : 0};
    return fp8r_border_place(&border);
}

int fp8r_points_segments(const struct fp8r_points *points, struct fp8r_segment *segments)
{
    int count = 0;
    for (size_t first = 0, last = 0; first < points->count; first = ++last) {
        while (last + 1 < points->count && belong_together(&points->points[first], &points->points[last + 1]))
            last++;
        make_segment(points, first, last, &segments[count]);
        if (count > 0) {
            int64_t border = border_behind(&points->points[first - 1]);
            segments[count - 1].m_last = border;
            segments[count].m_first = border + 1;
        }
        count++;
    }
    return count;
}
