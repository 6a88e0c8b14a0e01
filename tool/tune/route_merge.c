/* Merging route files. Every choice between two contents is made by the contents alone, never by where they came from.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/route_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/route_build.h"

/* ---- Headers ---- */

static int refuse_machines(const struct fp8r_route_file *a, const char *a_name, const struct fp8r_route_file *b,
                           const char *b_name, struct fp8r_tool_error *error)
{
    char a_line[FP8R_HEADER_BYTES], b_line[FP8R_HEADER_BYTES];
    fp8r_header_describe(a, a_line);
    fp8r_header_describe(b, b_line);
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                               "%.60s (%.150s) and %.60s (%.150s) are of different machines or modes, which are never "
                               "merged", a_name, a_line, b_name, b_line);
}

static bool fits(const struct fp8r_route_file *a, const struct fp8r_route_file *b)
{
    char line[256];
    return a->mode == b->mode && a->is_cold == b->is_cold && a->is_behind_both == b->is_behind_both &&
           fp8r_identity_fits(&a->identity, &b->identity, line, sizeof line) &&
           fp8r_identity_fits(&b->identity, &a->identity, line, sizeof line);
}

static int add_libraries(struct fp8r_identity *into, const struct fp8r_identity *from, struct fp8r_tool_error *error)
{
    for (int i = 0; i < from->library_count; i++) {
        int at = 0;
        while (at < into->library_count && strcmp(into->libraries[at].backend, from->libraries[i].backend) != 0)
            at++;
        if (at == FP8R_LIBRARIES_MAX)
            return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "these files name more than %d libraries: one file "
                                                                  "holds no more", FP8R_LIBRARIES_MAX);
        if (at == into->library_count)
            into->libraries[into->library_count++] = from->libraries[i];
        else if (strcmp(from->libraries[i].version, into->libraries[at].version) > 0)
            into->libraries[at] = from->libraries[i];
    }
    return FP8R_EXIT_GOOD;
}

/* A fact, and the earliest place that any file gives it. */
struct placed_fact {
    struct fp8r_fact fact;
    int place;
};

static int compare_by_name(const void *a, const void *b)
{
    const struct placed_fact *one = a, *other = b;
    int by_name = strcmp(one->fact.name, other->fact.name);
    return by_name ? by_name : strcmp(other->fact.value, one->fact.value);
}

static int compare_by_place(const void *a, const void *b)
{
    const struct placed_fact *one = a, *other = b;
    return one->place != other->place ? one->place - other->place : strcmp(one->fact.name, other->fact.name);
}

static int add_facts(const struct fp8r_route_file *files, size_t count, struct fp8r_route_file *merged,
                     struct fp8r_tool_error *error)
{
    size_t found = 0, kept = 0;
    struct placed_fact *facts = calloc(count * FP8R_FACTS_MAX, sizeof *facts);
    if (!facts)
        return fp8r_tool_error_memory(error, "the facts of route files");
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < files[i].fact_count; j++)
            facts[found++] = (struct placed_fact){files[i].facts[j], j};
    qsort(facts, found, sizeof *facts, compare_by_name);
    for (size_t i = 0; i < found; i++) {
        if (kept == 0 || strcmp(facts[kept - 1].fact.name, facts[i].fact.name) != 0)
            facts[kept++] = facts[i];
        else if (facts[i].place < facts[kept - 1].place)
            facts[kept - 1].place = facts[i].place;
    }
    kept = kept < FP8R_FACTS_MAX ? kept : FP8R_FACTS_MAX;
    qsort(facts, kept, sizeof *facts, compare_by_place);
    for (size_t i = 0; i < kept; i++)
        merged->facts[merged->fact_count++] = facts[i].fact;
    free(facts);
    return FP8R_EXIT_GOOD;
}

static int merge_headers(const struct fp8r_route_file *files, const char *const *names, size_t count,
                         struct fp8r_route_file *merged, struct fp8r_tool_error *error)
{
    *merged = (struct fp8r_route_file){
        .identity = files[0].identity, .is_quick = true, .mode = files[0].mode, .is_cold = files[0].is_cold,
        .is_behind_both = files[0].is_behind_both};
    for (size_t i = 0; i < count; i++) {
        if (!fits(merged, &files[i]))
            return refuse_machines(&files[0], names[0], &files[i], names[i], error);
        int code = add_libraries(&merged->identity, &files[i].identity, error);
        if (code != FP8R_EXIT_GOOD)
            return code;
        merged->is_quick &= files[i].is_quick;
    }
    return add_facts(files, count, merged, error);
}

/* ---- Entries ---- */

static int64_t measured_rows(const struct fp8r_entry *entry, bool only_clear)
{
    int64_t rows = 0; /* segments do not overlap: no more than INT64_MAX */
    for (int i = 0; i < entry->segment_count; i++)
        if (entry->segments[i].is_clear || !only_clear)
            rows += entry->segments[i].m_last - entry->segments[i].m_first + 1;
    return rows;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_rows(const struct fp8r_rows_list *a, const struct fp8r_rows_list *b)
{
    for (int i = 0; i < a->count && i < b->count; i++)
        if (a->values[i] != b->values[i])
            return a->values[i] < b->values[i] ? -1 : 1;
    return a->count - b->count;
}

/* By their fields, in the order in which these are written. */
static int compare_segments(const struct fp8r_segment *a, const struct fp8r_segment *b)
{
    const int orders[] = {(a->m_first > b->m_first) - (a->m_first < b->m_first),
                          (a->m_last > b->m_last) - (a->m_last < b->m_last),
                          compare_rows(&a->at, &b->at),
                          strcmp(a->backend, b->backend),
                          strcmp(a->config, b->config),
                          strcmp(a->rev, b->rev),
                          order(a->median_us, b->median_us),
                          strcmp(a->runner_up, b->runner_up),
                          order(a->runner_up_us, b->runner_up_us),
                          strcmp(a->rival, b->rival),
                          order(a->rival_us, b->rival_us),
                          order(a->rival_low, b->rival_low),
                          order(a->rival_high, b->rival_high),
                          order(a->gain_low, b->gain_low),
                          order(a->gain_high, b->gain_high),
                          (int)b->is_clear - (int)a->is_clear};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (orders[i] != 0)
            return orders[i];
    return 0;
}

/* The better content first; 0 where both are the same. */
static int compare_contents(const struct fp8r_entry *a, const struct fp8r_entry *b)
{
    for (int only_clear = 0; only_clear < 2; only_clear++) {
        int64_t a_rows = measured_rows(a, only_clear), b_rows = measured_rows(b, only_clear);
        if (a_rows != b_rows)
            return a_rows > b_rows ? -1 : 1;
    }
    for (int i = 0; i < a->segment_count && i < b->segment_count; i++) {
        int by_segment = compare_segments(&a->segments[i], &b->segments[i]);
        if (by_segment != 0)
            return by_segment;
    }
    return a->segment_count - b->segment_count;
}

/* Those that may be taken first, then by family, the one to take first. */
static int compare_entries(const void *a, const void *b)
{
    const struct fp8r_entry *one = *(struct fp8r_entry *const *)a, *other = *(struct fp8r_entry *const *)b;
    int by_key = fp8r_key_compare(&one->key, &other->key);
    if (by_key == 0 && one->is_quick != other->is_quick)
        return one->is_quick ? 1 : -1;
    return by_key ? by_key : compare_contents(one, other);
}

static size_t gather(struct fp8r_route_file *files, size_t count, struct fp8r_entry **all)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < files[i].table.count; j++)
            all[found++] = &files[i].table.entries[j];
    qsort(all, found, sizeof *all, compare_entries);
    return found;
}

/* all: sorted. Each family's first entry is moved. */
static void take(struct fp8r_entry *const *all, size_t count, struct fp8r_route_file *merged,
                 struct fp8r_merge_summary *summary)
{
    for (size_t first = 0, next; first < count; first = next) {
        bool is_contested = false;
        for (next = first + 1; next < count && fp8r_key_equal(&all[first]->key, &all[next]->key); next++)
            is_contested |= all[next]->is_quick == all[first]->is_quick && compare_contents(all[first], all[next]) != 0;
        summary->contested += is_contested;
        struct fp8r_entry *entry = &merged->table.entries[merged->table.count++];
        *entry = *all[first];
        entry->file = 0;
        *all[first] = (struct fp8r_entry){.key = entry->key};
    }
}

static int merge_entries(struct fp8r_route_file *files, size_t count, struct fp8r_route_file *merged,
                         struct fp8r_merge_summary *summary, struct fp8r_tool_error *error)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += files[i].table.count;
    struct fp8r_entry **all = calloc(total + 1, sizeof *all);
    merged->table.entries = calloc(total + 1, sizeof *merged->table.entries);
    if (!all || !merged->table.entries) {
        free(all);
        return fp8r_tool_error_memory(error, "merged routes");
    }
    *summary = (struct fp8r_merge_summary){0};
    take(all, gather(files, count, all), merged, summary);
    free(all);
    return FP8R_EXIT_GOOD;
}

int fp8r_routes_merge(struct fp8r_route_file *files, const char *const *names, size_t count,
                      struct fp8r_route_file *merged, struct fp8r_merge_summary *summary, struct fp8r_tool_error *error)
{
    int code = merge_headers(files, names, count, merged, error);
    if (code == FP8R_EXIT_GOOD)
        code = merge_entries(files, count, merged, summary, error);
    if (code != FP8R_EXIT_GOOD)
        fp8r_route_file_fini(merged);
    return code;
}
