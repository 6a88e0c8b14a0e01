/* Choosing routes and summing up. SPDX-License-Identifier: Apache-2.0 */
#include "tune/gate_routes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/random.h"
#include "tool_status.h"

const char *gate_verdict_name(enum gate_verdict verdict)
{
    static const char *const names[GATE_VERDICTS] = {"left", "fine", "unmeasured", "inconclusive",
                                                     "regression"};
    return names[verdict];
}

/* First, middle and last of the rows that were measured; where the file does not say which these are, first m, geometric
 * middle and last m. Each once. */
static void set_points(struct gate_route *route)
{
    const struct fp8r_rows_list *at = &route->segment->at;
    int64_t first = route->segment->m_first, last = route->segment->m_last;
    int64_t middle = (int64_t)(sqrt((double)first) * sqrt((double)last));
    if (at->count > 0) {
        first = at->values[0];
        middle = at->values[at->count / 2];
        last = at->values[at->count - 1];
    }
    const int64_t ms[GATE_POINTS] = {first, middle, last};
    for (int i = 0; i < GATE_POINTS; i++)
        if (i == 0 || (ms[i] > route->points[route->point_count - 1].m && ms[i] <= last))
            route->points[route->point_count++].m = ms[i];
}

static void set_finding(const struct fp8r_table_report *report, struct gate_route *route)
{
    for (size_t i = 0; i < report->count; i++) {
        if (report->findings[i].segment != route->segment) continue;
        route->is_stale = report->findings[i].kind == FP8R_FINDING_STALE;
        if (route->is_stale) continue;
        route->verdict = GATE_UNMEASURED;
        snprintf(route->why, sizeof route->why, "%s", report->findings[i].sentence);
    }
}

static int add_entry(const struct fp8r_entry *entry, const struct fp8r_table_report *report,
                     struct fp8r_random *random, struct gate_routes *routes, struct fp8r_tool_error *error)
{
    char family[FP8R_FAMILY_BYTES];
    uint64_t entry_lot = fp8r_random_next(random);
    int code = fp8r_tool_status(error, fp8r_entry_family(entry, family));
    for (int i = 0; i < entry->segment_count && code == FP8R_EXIT_GOOD; i++) {
        struct gate_route *route = &routes->items[routes->count++];
        *route = (struct gate_route){.entry = entry,
                                     .segment = &entry->segments[i],
                                     .lot = fp8r_random_next(random),
                                     .entry_lot = entry_lot};
        memcpy(route->family, family, sizeof family);
        snprintf(route->label, sizeof route->label, "%.63s:%.63s", route->segment->backend,
                 route->segment->config);
        set_points(route);
        set_finding(report, route);
        routes->stale += route->is_stale;
    }
    return code;
}

/* Stale ones, then by lot. */
static int compare_lots(const void *a, const void *b)
{
    const struct gate_route *one = a, *other = b;
    if (one->is_stale != other->is_stale) return one->is_stale ? -1 : 1;
    return (one->lot > other->lot) - (one->lot < other->lot);
}

/* Stale ones, then entries by lot, each with its routes in a row. */
static int compare_turns(const void *a, const void *b)
{
    const struct gate_route *one = a, *other = b;
    if (one->is_stale != other->is_stale) return one->is_stale ? -1 : 1;
    if (one->entry_lot != other->entry_lot) return one->entry_lot < other->entry_lot ? -1 : 1;
    return (one->segment > other->segment) - (one->segment < other->segment);
}

/* Draws those that are kept, and puts them into an order in which a budget that ends early has taken entries
 * at random, and each entry's operands are loaded once. */
static void draw(struct gate_routes *routes, double share)
{
    size_t kept = (size_t)ceil(fmin(fmax(share, 0), 1) * (double)routes->count);
    qsort(routes->items, routes->count, sizeof *routes->items, compare_lots);
    routes->count = kept < 1 && routes->count > 0 ? 1 : kept;
    qsort(routes->items, routes->count, sizeof *routes->items, compare_turns);
}

/* ---- Which are wanted ---- */

static bool is_of_family(const struct gate_wanted *wanted, const struct fp8r_entry *entry)
{
    return wanted->families->count == 0 || fp8r_families_find(wanted->families, &entry->key) >= 0;
}

/* A name that is nowhere in the file is a mistake: nothing would be said of it. */
static int check_families(const struct gate_wanted *wanted, const struct fp8r_table *table, struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < wanted->families->count; i++)
        if (!fp8r_table_find(table, &wanted->families->items[i].key))
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--family %.200s: the file has no such entry",
                                       wanted->families->items[i].text);
    return FP8R_EXIT_GOOD;
}

static int add_wanted(const struct fp8r_route_file *file, const struct fp8r_table_report *report,
                      const struct gate_wanted *wanted, uint64_t seed, struct gate_routes *routes,
                      struct fp8r_tool_error *error)
{
    struct fp8r_random random = {seed};
    size_t place = 0;
    int code = check_families(wanted, &file->table, error);
    for (size_t i = 0; i < file->table.count && code == FP8R_EXIT_GOOD; i++) {
        const struct fp8r_entry *entry = &file->table.entries[i];
        if (is_of_family(wanted, entry) && (int)(place++ % (size_t)wanted->shards) == wanted->shard - 1)
            code = add_entry(entry, report, &random, routes, error);
    }
    return code;
}

int gate_routes_init(const struct fp8r_route_file *file, const struct fp8r_table_report *report,
                     const struct gate_wanted *wanted, uint64_t seed, struct gate_routes *routes,
                     struct fp8r_tool_error *error)
{
    size_t count = 0;
    *routes = (struct gate_routes){0};
    for (size_t i = 0; i < file->table.count; i++)
        count += (size_t)file->table.entries[i].segment_count;
    routes->items = calloc(count + 1, sizeof *routes->items);
    if (!routes->items) return fp8r_tool_error_memory(error, "the routes");
    int code = add_wanted(file, report, wanted, seed, routes, error);
    routes->all = count;
    if (code == FP8R_EXIT_GOOD)
        draw(routes, wanted->share);
    else
        gate_routes_fini(routes);
    return code;
}

void gate_routes_fini(struct gate_routes *routes)
{
    free(routes->items);
    *routes = (struct gate_routes){0};
}

/* ---- Summing up ---- */

static enum gate_verdict verdict_of(const struct gate_comparison *comparison)
{
    switch (comparison->result.verdict) {
    case FP8R_PAIRED_REGRESSION:
        return GATE_REGRESSION;
    case FP8R_PAIRED_FINE:
        return GATE_FINE;
    default: /* one that was cut short because another had decided the point says nothing */
        return GATE_INCONCLUSIVE;
    }
}

enum gate_verdict gate_point_verdict(const struct gate_point *point)
{
    enum gate_verdict worst = GATE_FINE;
    for (int i = 0; i < point->count; i++)
        worst = verdict_of(&point->against[i]) > worst ? verdict_of(&point->against[i]) : worst;
    return worst;
}

static bool is_worse(const struct gate_comparison *one, const struct gate_comparison *other)
{
    if (verdict_of(one) != verdict_of(other)) return verdict_of(one) > verdict_of(other);
    return one->result.ratio > other->result.ratio;
}

const struct gate_comparison *gate_route_worst(const struct gate_route *route, const struct gate_point **at)
{
    const struct gate_comparison *worst = NULL;
    for (int i = 0; i < route->point_count; i++)
        for (int j = 0; j < route->points[i].count; j++)
            if (!worst || is_worse(&route->points[i].against[j], worst)) {
                worst = &route->points[i].against[j];
                *at = &route->points[i];
            }
    return worst;
}

int gate_route_compare(const void *a, const void *b)
{
    const struct gate_route *one = a, *other = b;
    const struct gate_point *at;
    if (one->verdict != other->verdict) return one->verdict > other->verdict ? -1 : 1;
    const struct gate_comparison *mine = gate_route_worst(one, &at), *theirs = gate_route_worst(other, &at);
    double my_ratio = mine ? mine->result.ratio : 0, their_ratio = theirs ? theirs->result.ratio : 0;
    if (my_ratio != their_ratio) return my_ratio > their_ratio ? -1 : 1;
    int by_family = strcmp(one->family, other->family);
    return by_family ? by_family
                     : (one->segment->m_first > other->segment->m_first) -
                           (one->segment->m_first < other->segment->m_first);
}

int gate_routes_exit(const struct gate_routes *routes)
{
    static const int codes[GATE_VERDICTS] = {[GATE_UNMEASURED] = FP8R_EXIT_UNMEASURED,
                                             [GATE_INCONCLUSIVE] = FP8R_EXIT_INCONCLUSIVE,
                                             [GATE_REGRESSION] = FP8R_EXIT_FAILED};
    int code = FP8R_EXIT_GOOD;
    size_t left = 0;
    for (size_t i = 0; i < routes->count; i++) {
        code = fp8r_exit_worse(code, codes[routes->items[i].verdict]);
        left += routes->items[i].verdict == GATE_LEFT;
    }
    return left == routes->count ? fp8r_exit_worse(code, FP8R_EXIT_UNMEASURED) : code;
}
