/* A rule as the route file it amounts to on measured families: exact borders, measured times.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/fit_files.h"
#include "tune/machine.h"

static const double margin = 0.02;

/* From m on, the candidate that a point's side stands for. */
struct piece {
    int64_t m_first, m_last;
    size_t point; /* of the set: whose times speak for it */
    bool holds;
};

static const char *label_of(const struct fp8r_fit_set *set, const struct piece *piece)
{
    const struct fp8r_fit_origin *origin = &set->origins[piece->point];
    return origin->it->candidates[piece->holds ? origin->x : origin->y].name;
}

static double time_us(const struct fp8r_fit_set *set, const struct piece *piece, bool of_picked)
{
    const struct fp8r_fit_case *one = &set->cases[piece->point];
    return piece->holds == of_picked ? one->then_us : one->else_us;
}

/* The pieces of points first..end-1, which are one family by ascending M. Between two points the rule may
 * change more than once. */
static int cut(const struct fp8r_fit_story *story, size_t first, size_t end, struct piece **pieces,
               size_t *count, struct fp8r_tool_error *error)
{
    const struct fp8r_fit_case *cases = story->set->cases;
    struct fp8r_rule_borders borders;
    struct fp8r_rule_point point = {.m = 1, .n = cases[first].n, .k = cases[first].k, .b = 1};
    int code = fp8r_rule_borders_find(story->rule, &point, cases[first].m, cases[end - 1].m, &borders, error);
    if (code != FP8R_EXIT_GOOD) return code;
    size_t border = 0;
    *count = 0;
    *pieces = calloc(borders.count + (end - first), sizeof **pieces);
    if (!*pieces) code = fp8r_tool_error_memory(error, "the rule's routes");
    bool holds = borders.holds_first;
    for (size_t i = first; i < end && code == FP8R_EXIT_GOOD; i++) {
        int64_t m = cases[i].m, next = i + 1 < end ? cases[i + 1].m : INT64_MAX;
        if (border < borders.count && borders.items[border] == m && ++border) holds = !holds;
        (*pieces)[(*count)++] = (struct piece){m, m, i, holds};
        for (; border < borders.count && borders.items[border] < next; border++) {
            holds = !holds;
            (*pieces)[(*count)++] = (struct piece){borders.items[border], borders.items[border], i, holds};
        }
    }
    fp8r_rule_borders_fini(&borders);
    return code;
}

/* Interval of the default's time / the picked one's at a point; 0 where too few pairs were taken for one. */
static void gain_of(const struct fp8r_fit_set *set, const struct piece *piece, double *low, double *high)
{
    const struct fp8r_fit_origin *origin = &set->origins[piece->point];
    int picked = piece->holds ? origin->x : origin->y, other = piece->holds ? origin->y : origin->x;
    *low = *high = 1;
    if (picked == origin->it->fallback || other != origin->it->fallback) return;
    *low = piece->holds ? origin->low : 1 / origin->high;
    *high = piece->holds ? origin->high : 1 / origin->low;
    if (!(*low > 0) || !isfinite(*high)) *low = *high = 0;
}

/* Pieces first..last, of one label. */
static void make_segment(const struct fp8r_fit_set *set, const struct piece *pieces, size_t first,
                         size_t last, struct fp8r_segment *segment)
{
    const char *label = label_of(set, &pieces[first]);
    const struct sample_case *it = set->origins[pieces[first].point].it;
    const struct sample_candidate *chosen = &it->candidates[sample_case_candidate(it, label)];
    struct piece other = pieces[first];
    size_t length = strcspn(label, ":");
    double logs = 0, other_logs = 0;
    other.holds = !other.holds;
    *segment = (struct fp8r_segment){
        .m_first = pieces[first].m_first, .m_last = pieces[last].m_last, .is_clear = true};
    for (size_t i = first; i <= last; i++) {
        double low, high;
        gain_of(set, &pieces[i], &low, &high);
        if (i == first || low < segment->gain_low) {
            segment->gain_low = low;
            segment->gain_high = high;
        }
        logs += log(time_us(set, &pieces[i], true));
        other_logs += log(time_us(set, &pieces[i], false));
        segment->is_clear = segment->is_clear && low > 1 + margin;
    }
    segment->median_us = exp(logs / (double)(last - first + 1));
    segment->runner_up_us = exp(other_logs / (double)(last - first + 1));
    snprintf(segment->runner_up, sizeof segment->runner_up, "%s", label_of(set, &other));
    snprintf(segment->backend, sizeof segment->backend, "%.*s", (int)length, label);
    snprintf(segment->config, sizeof segment->config, "%s", label + length + (label[length] == ':'));
    snprintf(segment->rev, sizeof segment->rev, "%s", chosen->rev);
}

static int make_entry(const struct fp8r_fit_story *story, size_t first, size_t end, bool is_quick,
                      struct fp8r_entry *entry, struct fp8r_tool_error *error)
{
    const struct fp8r_fit_set *set = story->set;
    struct piece *pieces = NULL;
    size_t count = 0;
    int code = cut(story, first, end, &pieces, &count, error);
    *entry = (struct fp8r_entry){.key = set->origins[first].it->key, .is_quick = is_quick};
    if (code == FP8R_EXIT_GOOD) entry->segments = calloc(count, sizeof *entry->segments);
    if (code == FP8R_EXIT_GOOD && !entry->segments) code = fp8r_tool_error_memory(error, "the rule's routes");
    for (size_t i = 0; i + 1 < count && code == FP8R_EXIT_GOOD; i++) {
        int64_t m = pieces[i].m_first, next = pieces[i + 1].m_first;
        /* Where only the configuration changes, the rule says nothing of the place: the middle, as in any
         * table. */
        bool is_rule = pieces[i].holds != pieces[i + 1].holds;
        int64_t middle = (int64_t)floor(sqrt((double)m) * sqrt((double)next) + 1e-9);
        pieces[i].m_last = is_rule || middle >= next ? next - 1 : middle < m ? m : middle;
        pieces[i + 1].m_first = pieces[i].m_last + 1;
    }
    for (size_t i = 0, last; i < count && code == FP8R_EXIT_GOOD; i = last + 1) {
        for (last = i;
             last + 1 < count && strcmp(label_of(set, &pieces[i]), label_of(set, &pieces[last + 1])) == 0;)
            last++;
        make_segment(set, pieces, i, last, &entry->segments[entry->segment_count++]);
    }
    free(pieces);
    return code;
}

int fp8r_fit_routes(const struct fp8r_fit_story *story, int device, struct fp8r_route_file *file,
                    struct fp8r_tool_error *error)
{
    const struct fp8r_fit_set *set = story->set;
    int code = FP8R_EXIT_GOOD;
    *file = story->samples->machines[set->machines[device]];
    file->table = (struct fp8r_table){0};
    if (file->fact_count < FP8R_FACTS_MAX) fp8r_machine_fact(file, "rule", story->text);
    file->table.entries = calloc(set->count + 1, sizeof *file->table.entries);
    if (!file->table.entries) code = fp8r_tool_error_memory(error, "the rule's routes");
    for (size_t first = 0, end; first < set->count && code == FP8R_EXIT_GOOD; first = end) {
        const struct fp8r_key *key = &set->origins[first].it->key;
        for (end = first + 1; end < set->count && set->cases[end].device == set->cases[first].device &&
                              fp8r_key_equal(key, &set->origins[end].it->key);)
            end++;
        if (set->cases[first].device != device) continue;
        code =
            make_entry(story, first, end, file->is_quick, &file->table.entries[file->table.count++], error);
    }
    if (code != FP8R_EXIT_GOOD) fp8r_route_file_fini(file);
    return code;
}
