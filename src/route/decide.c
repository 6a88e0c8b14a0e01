/* The decision, a step a function. Each step either decides or leaves a trace of why not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route/decide.h"

#include <string.h>

#include "backend/row.h"
#include "base/sizes.h"

const char *fp8r_source_name(enum fp8r_source source)
{
    static const char *const names[] = {"none",    "forced",    "route", "extrapolated", "neighbour",
                                        "default", "reference", "only",  "ambiguous"};
    return names[source];
}

/* Two models err by more than this, but neither more to one side than the other. */
static const double clearly_less = 0.97;

/* Everything the steps look at. */
struct view {
    const struct fp8r_router *router;
    const fp8r_problem *problem;
    const struct fp8r_candidates *candidates;
    const struct fp8r_limits *limits;
    struct fp8r_key key;
};

static void limit(struct fp8r_decision *decision, int64_t m_last)
{
    decision->m_last = fp8r_size_min(decision->m_last, m_last);
}

static bool settle(struct fp8r_decision *decision, enum fp8r_source source, int row, int config)
{
    decision->source = source;
    decision->row = row;
    decision->config = config;
    return true;
}

static bool is_reference(const struct fp8r_router *router, int row)
{
    return strcmp(router->registry->rows[row].backend.name, "reference") == 0;
}

static double expected_us(const struct view *view, int row)
{
    return fp8r_row_expect(&view->router->registry->rows[row], view->router->device, view->problem,
                           view->candidates->rows[row].config);
}

/* The first eligible row by priority, the reference left aside, or one whose model expects clearly less than that one's
 * own; -1 where there is none. */
static int default_row(const struct view *view)
{
    int best = -1;
    double best_us = 0;
    for (int i = 0; i < view->router->registry->count; i++) {
        if (!view->candidates->rows[i].is_eligible || is_reference(view->router, i) || (best >= 0 && !(best_us > 0)))
            continue;
        double us = expected_us(view, i);
        if (best >= 0 && !(us > 0 && us < clearly_less * best_us))
            continue;
        best = i;
        best_us = us;
    }
    return best;
}

/* A named configuration of an eligible row must itself be supported, and of the class that the family is held to. */
static bool config_runs(const struct view *view, int row, int config, fp8r_reason *reason)
{
    const struct fp8r_router *router = view->router;
    const struct fp8r_choice *choice = &view->candidates->rows[row];
    if (!choice->is_eligible) {
        *reason = choice->reason;
        return false;
    }
    if (config == choice->config)
        return true;
    const struct fp8r_row *it = &router->registry->rows[row];
    if (!fp8r_row_eligible(router->registry, router->device, view->problem, row, config, reason))
        return false;
    return !view->limits->is_capturing || fp8r_row_captures(it, router->device, view->problem, config, reason);
}

static bool forced(const struct view *view, struct fp8r_decision *decision)
{
    int row = view->router->forced_row, config = view->router->forced_config;
    if (row < 0)
        return false;
    if (config == FP8R_CONFIG_ANY)
        config = view->candidates->rows[row].config;
    if (config_runs(view, row, config, &decision->refusal))
        return settle(decision, FP8R_SOURCE_FORCED, row, config);
    decision->forced_refused = true;
    return false;
}

/* Names of a segment -> row and configuration that can run here. */
static enum fp8r_miss resolve(const struct view *view, const struct fp8r_segment *segment, int *row, int *config,
                              fp8r_reason *reason)
{
    const struct fp8r_registry *registry = view->router->registry;
    *row = fp8r_registry_find(registry, segment->backend, strlen(segment->backend));
    if (*row < 0)
        return FP8R_MISS_BACKEND;
    if (!registry->rows[*row].fits) {
        *reason = registry->rows[*row].reason;
        return FP8R_MISS_REFUSED;
    }
    *config = fp8r_row_config(&registry->rows[*row], segment->config);
    if (*config < 0)
        return FP8R_MISS_CONFIG;
    return config_runs(view, *row, *config, reason) ? FP8R_MISS_NONE : FP8R_MISS_REFUSED;
}

/* Behind the last segment: it counts only where it is also what the default would be. */
static bool extrapolated(const struct view *view, const struct fp8r_segment *last, struct fp8r_decision *decision)
{
    int row, config, fallback = default_row(view);
    decision->segment = last;
    decision->miss = resolve(view, last, &row, &config, &decision->refusal);
    if (decision->miss != FP8R_MISS_NONE)
        return false;
    if (row != fallback) {
        decision->miss = FP8R_MISS_BEYOND;
        return false;
    }
    return settle(decision, FP8R_SOURCE_EXTRAPOLATED, row, view->candidates->rows[row].config);
}

static const struct fp8r_entry *find_in_mode(const struct view *view, int mode)
{
    struct fp8r_key key = view->key;
    key.mode = (uint8_t)mode;
    return fp8r_table_find_kin(view->router->table, &key);
}

/* The key's entry; for want of one, that of the other way of timing. */
static const struct fp8r_entry *find_entry(const struct view *view)
{
    int mode = view->key.mode;
    const struct fp8r_entry *entry = find_in_mode(view, mode);
    if (entry || view->router->device->kind != FP8R_DEVICE_CUDA)
        return entry;
    return find_in_mode(view, mode == FP8R_MODE_GRAPH ? FP8R_MODE_EAGER : FP8R_MODE_GRAPH);
}

static bool measured(const struct view *view, struct fp8r_decision *decision)
{
    const struct fp8r_entry *entry = find_entry(view);
    int64_t m = view->problem->m;
    decision->entry = entry;
    decision->miss = entry ? FP8R_MISS_NO_M : FP8R_MISS_NO_ENTRY;
    if (!entry || entry->segment_count == 0)
        return false;
    const struct fp8r_segment *last = &entry->segments[entry->segment_count - 1];
    if (m > last->m_last)
        return extrapolated(view, last, decision);
    for (int i = 0; i < entry->segment_count; i++) /* what lies in a gap is the same up to the next segment */
        if (entry->segments[i].m_first > m)
            limit(decision, entry->segments[i].m_first - 1);
    const struct fp8r_segment *segment = fp8r_entry_segment(entry, m);
    if (!segment)
        return false;
    int row, config;
    decision->segment = segment;
    limit(decision, segment->m_last);
    decision->miss = resolve(view, segment, &row, &config, &decision->refusal);
    return decision->miss == FP8R_MISS_NONE && settle(decision, FP8R_SOURCE_ROUTE, row, config);
}

/* The row that a neighbouring entry clearly names at this m, eligible here; -1 = none. */
static int clear_row(const struct view *view, const struct fp8r_entry *entry, struct fp8r_decision *decision)
{
    const struct fp8r_segment *segment = fp8r_entry_segment(entry, view->problem->m);
    for (int i = 0; i < entry->segment_count; i++) {
        if (entry->segments[i].m_first > view->problem->m)
            limit(decision, entry->segments[i].m_first - 1);
        if (entry->segments[i].m_last >= view->problem->m)
            limit(decision, entry->segments[i].m_last);
    }
    if (!segment || !segment->is_clear)
        return -1;
    int row = fp8r_registry_find(view->router->registry, segment->backend, strlen(segment->backend));
    return row >= 0 && view->candidates->rows[row].is_eligible ? row : -1;
}

static bool neighbour(const struct view *view, struct fp8r_decision *decision)
{
    static const enum fp8r_axis axes[] = {FP8R_AXIS_N, FP8R_AXIS_K};
    for (int i = 0; i < 2; i++) {
        const struct fp8r_entry *below, *above;
        if (!fp8r_table_neighbours(view->router->table, &view->key, axes[i], &below, &above))
            continue;
        int row = clear_row(view, below, decision), other = clear_row(view, above, decision);
        if (row >= 0 && row == other) {
            decision->entry = below;
            decision->segment = fp8r_entry_segment(below, view->problem->m);
            return settle(decision, FP8R_SOURCE_NEIGHBOUR, row, view->candidates->rows[row].config);
        }
    }
    return false;
}

static bool has_eligible_before(const struct view *view, int row)
{
    for (int i = 0; i < row; i++)
        if (view->candidates->rows[i].is_eligible)
            return true;
    return false;
}

static bool fallback(const struct view *view, struct fp8r_decision *decision)
{
    int row = default_row(view);
    decision->is_overtaking = has_eligible_before(view, row);
    return row >= 0 && settle(decision, FP8R_SOURCE_DEFAULT, row, view->candidates->rows[row].config);
}

static bool reference(const struct view *view, struct fp8r_decision *decision)
{
    for (int i = 0; i < view->router->registry->count; i++)
        if (is_reference(view->router, i) && view->candidates->rows[i].is_eligible)
            return settle(decision, FP8R_SOURCE_REFERENCE, i, view->candidates->rows[i].config);
    return false;
}

/* Without leave to guess: one usable row is no guess, several are. */
static bool only(const struct view *view, struct fp8r_decision *decision)
{
    int usable = 0;
    for (int i = 0; i < view->router->registry->count; i++)
        usable += view->candidates->rows[i].is_eligible && !is_reference(view->router, i);
    if (usable == 0)
        return false;
    int row = default_row(view);
    return settle(decision, usable == 1 ? FP8R_SOURCE_ONLY : FP8R_SOURCE_AMBIGUOUS, usable == 1 ? row : -1,
                  usable == 1 ? view->candidates->rows[row].config : -1);
}

void fp8r_decide(const struct fp8r_router *router, const fp8r_problem *problem, uint64_t excluded, bool is_capturing,
                 struct fp8r_candidates *candidates, struct fp8r_decision *decision)
{
    const struct fp8r_limits limits = {.excluded = excluded, .held = router->forced_row, .is_capturing = is_capturing};
    struct view view = {.router = router, .problem = problem, .candidates = candidates, .limits = &limits};
    fp8r_candidates_init(router->registry, router->device, problem, &limits, candidates);
    fp8r_key_init(problem, router->mode, &view.key);
    *decision = (struct fp8r_decision){.row = -1, .config = -1, .m_last = candidates->m_last};
    if (forced(&view, decision) || measured(&view, decision))
        return;
    if (router->routed_only) {
        (void)(only(&view, decision) || reference(&view, decision));
        return;
    }
    (void)(neighbour(&view, decision) || fallback(&view, decision) || reference(&view, decision));
}
