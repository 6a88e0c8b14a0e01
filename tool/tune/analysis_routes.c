/* From decisions to a route file: neighbouring points of one decision become one segment.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/statistics.h"
#include "tune/analysis.h"

enum { PAIRS_MOST = 64 };

static const double rival_coverage = 0.95;

/* The median of a candidate of that name at a point; 0 where it was not measured. */
static double median_of(const struct analysis_point *point, const char *name)
{
    int i = sample_case_candidate(point->it, name);
    return i >= 0 ? point->candidates[i].median_us : 0;
}

/* Geometric mean over points first..last; 0 unless measured at all of them. */
static double mean_of(const struct analysis_family *family, size_t first, size_t last, const char *name)
{
    double logs = 0;
    for (size_t i = first; i <= last; i++) {
        double median = median_of(&family->points[i], name);
        if (!(median > 0))
            return 0;
        logs += log(median);
    }
    return exp(logs / (double)(last - first + 1));
}

/* Another's time as a multiple of the chosen one's: the geometric mean over the points where it was measured, and how many
 * those are. */
static double ratio_of(const struct analysis_family *family, size_t first, size_t last, const char *name, size_t *count)
{
    double logs = 0;
    *count = 0;
    for (size_t i = first; i <= last; i++) {
        const struct analysis_point *point = &family->points[i];
        double median = median_of(point, name);
        if (!(median > 0))
            continue;
        logs += log(median / point->candidates[point->chosen].median_us);
        ++*count;
    }
    return *count > 0 ? exp(logs / (double)*count) : INFINITY;
}

static bool is_listed(const struct analysis_family *family, size_t first, size_t last, const char *name)
{
    for (size_t i = first; i < last; i++)
        if (sample_case_candidate(family->points[i].it, name) >= 0)
            return true;
    return false;
}

static bool is_sibling(const char *label, const char *other)
{
    size_t length = strcspn(label, ":");
    return strncmp(label, other, length) == 0 && (other[length] == ':' || other[length] == '\0');
}

/* The fastest of those others (of other backends) that were measured at most points of the segment, since who is far
 * behind is dropped: its name, or "", and its time as a multiple of the chosen one's. */
static void find_second(const struct analysis_family *family, size_t first, size_t last, const char *chosen,
                        bool of_others, char name_of[FP8R_LABEL_BYTES], double *ratio_of_it)
{
    size_t most = 0;
    double best = INFINITY;
    for (size_t i = first; i <= last; i++) {
        const struct sample_case *it = family->points[i].it;
        for (int j = 0; j < it->count; j++) {
            const char *name = it->candidates[j].name;
            size_t count = 0;
            bool is_new = strcmp(name, chosen) != 0 && !(of_others && is_sibling(chosen, name)) &&
                          !is_listed(family, first, i, name);
            double ratio = is_new ? ratio_of(family, first, last, name, &count) : INFINITY;
            if (count < most || !(ratio < (count > most ? INFINITY : best)))
                continue;
            most = count;
            best = ratio;
            snprintf(name_of, FP8R_LABEL_BYTES, "%s", name);
        }
    }
    *ratio_of_it = most > 0 ? best : 0;
}

static void add_runner_up(const struct analysis_family *family, size_t first, size_t last, const char *chosen,
                          struct fp8r_segment *segment)
{
    double ratio;
    find_second(family, first, last, chosen, false, segment->runner_up, &ratio);
    segment->runner_up_us = ratio * segment->median_us;
}

/* Paired times of the rival and of the chosen one at a point: the interval of their ratio; false without pairs. */
static bool hold_against(const struct analysis_point *point, const char *rival, struct fp8r_interval *interval)
{
    double rival_us[PAIRS_MOST], chosen_us[PAIRS_MOST], ratios[PAIRS_MOST];
    int i = sample_case_candidate(point->it, rival);
    size_t count = 0;
    for (int phase = SAMPLE_GRID; i >= 0 && count == 0 && phase <= SAMPLE_BORDER; phase++)
        count = sample_pairs(&point->it->candidates[i], &point->it->candidates[point->chosen], phase, rival_us, chosen_us,
                             PAIRS_MOST);
    if (count > 0)
        *interval = fp8r_paired_ratio(rival_us, chosen_us, count, rival_coverage, ratios).interval;
    return count > 0;
}

/* The same among other backends, with its interval where that is lowest. */
static void add_rival(const struct analysis_family *family, size_t first, size_t last, const char *chosen,
                      struct fp8r_segment *segment)
{
    struct fp8r_segment best = {.median_us = segment->median_us};
    find_second(family, first, last, chosen, true, best.rival, &best.rival_us);
    for (size_t i = first; i <= last && *best.rival; i++) {
        struct fp8r_interval interval;
        if (!hold_against(&family->points[i], best.rival, &interval) ||
            (best.rival_low > 0 && interval.low >= best.rival_low))
            continue;
        best.rival_low = interval.low;
        best.rival_high = interval.high;
    }
    if (!(best.rival_low > 0))
        return;
    memcpy(segment->rival, best.rival, sizeof segment->rival);
    segment->rival_us = best.rival_us * segment->median_us;
    segment->rival_low = best.rival_low;
    segment->rival_high = best.rival_high;
}

/* All of them, or as many as there is room for, evenly. */
static void add_rows(const struct analysis_family *family, size_t first, size_t last, struct fp8r_segment *segment)
{
    size_t count = last - first + 1, kept = count < FP8R_ROWS_LIST_MAX ? count : FP8R_ROWS_LIST_MAX;
    for (size_t i = 0; i < kept; i++)
        segment->at.values[i] = family->points[first + (kept > 1 ? i * (count - 1) / (kept - 1) : 0)].it->m;
    segment->at.count = (int)kept;
}

/* Points first..last, which share their decision. */
static void make_segment(const struct analysis_family *family, size_t first, size_t last, struct fp8r_segment *segment)
{
    const struct analysis_point *point = &family->points[first];
    const struct sample_candidate *chosen = &point->it->candidates[point->chosen];
    size_t length = strcspn(chosen->name, ":");
    *segment = (struct fp8r_segment){.m_first = first == 0 ? point->it->m : analysis_border(family, first - 1) + 1,
                                     .m_last = family->points[last].it->m,
                                     .median_us = mean_of(family, first, last, chosen->name),
                                     .is_clear = point->verdict == ANALYSIS_CLEAR,
                                     .gain_low = point->gain_low,
                                     .gain_high = point->gain_high};
    if (last + 1 < family->count)
        segment->m_last = analysis_border(family, last);
    for (size_t i = first; i <= last; i++) /* the least sure point speaks for all */
        if (family->points[i].gain_low < segment->gain_low) {
            segment->gain_low = family->points[i].gain_low;
            segment->gain_high = family->points[i].gain_high;
        }
    snprintf(segment->backend, sizeof segment->backend, "%.*s", (int)length, chosen->name);
    snprintf(segment->config, sizeof segment->config, "%s", chosen->name + length + (chosen->name[length] == ':'));
    snprintf(segment->rev, sizeof segment->rev, "%s", chosen->rev);
    add_runner_up(family, first, last, chosen->name, segment);
    if (!family->has_steps)
        return;
    add_rival(family, first, last, chosen->name, segment);
    add_rows(family, first, last, segment);
}

static bool make_entry(const struct analysis_family *family, bool is_quick, struct fp8r_entry *entry)
{
    *entry = (struct fp8r_entry){.key = family->key, .is_quick = is_quick};
    entry->segments = calloc(family->count, sizeof *entry->segments);
    if (!entry->segments)
        return false;
    for (size_t first = 0, last; first < family->count; first = last + 1) {
        for (last = first; last + 1 < family->count && !analysis_is_border(family, last);)
            last++;
        make_segment(family, first, last, &entry->segments[entry->segment_count++]);
    }
    return true;
}

int analysis_routes(const struct samples *samples, int machine, const struct analysis *analysis,
                    struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    *file = samples->machines[machine];
    file->table = (struct fp8r_table){0};
    file->table.entries = calloc(analysis->count + 1, sizeof *file->table.entries);
    bool made = file->table.entries != NULL;
    for (size_t i = 0; made && i < analysis->count; i++) {
        made = make_entry(&analysis->families[i], file->is_quick, &file->table.entries[i]);
        file->table.count += made;
    }
    if (made)
        return FP8R_EXIT_GOOD;
    fp8r_route_file_fini(file);
    return fp8r_tool_error_memory(error, "the routes");
}
