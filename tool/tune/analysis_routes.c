/* From decisions to a route file: neighbouring points of one decision become one segment.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/analysis.h"

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

/* The fastest of those others that were measured at most points of the segment: who is far behind is dropped. */
static void add_runner_up(const struct analysis_family *family, size_t first, size_t last, const char *chosen,
                          struct fp8r_segment *segment)
{
    size_t most = 0;
    double best = INFINITY;
    for (size_t i = first; i <= last; i++) {
        const struct sample_case *it = family->points[i].it;
        for (int j = 0; j < it->count; j++) {
            const char *name = it->candidates[j].name;
            size_t count = 0;
            bool is_new = strcmp(name, chosen) != 0 && !is_listed(family, first, i, name);
            double ratio = is_new ? ratio_of(family, first, last, name, &count) : INFINITY;
            if (count < most || !(ratio < (count > most ? INFINITY : best)))
                continue;
            most = count;
            best = ratio;
            snprintf(segment->runner_up, sizeof segment->runner_up, "%s", name);
        }
    }
    segment->runner_up_us = most > 0 ? best * segment->median_us : 0;
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
