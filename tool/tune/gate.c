/* Measuring the routes of a file anew. SPDX-License-Identifier: Apache-2.0 */
#include "tune/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "measure/clock.h"
#include "measure/statistics.h"
#include "problem/problem.h"
#include "tool_status.h"
#include "tune/entrants.h"
#include "tune/recorded_race.h"

enum { PAIRS_LEAST = 30, PAIRS_MOST = 120 };

static const double cache_factor = 4;

/* Operands and their copies are at most this share of the memory that is available. */
static const int64_t memory_share = 4;

/* Routes of one entry in a row: their operands are loaded once. */
struct turn {
    struct gate *gate;
    struct gate_route *routes;
    size_t count;
    struct fp8r_points entrants;
    struct fp8r_inputs inputs;
    struct race_track track;
};

/* One point under way. Indices of the rivals are those of the case, known once it is announced. */
struct duel {
    struct fp8r_sequential sequential;
    const char *chosen;
    struct gate_point *point;
    struct fp8r_tool_error *error;
    int code;
};

/* ---- Verdicts ---- */

static double median_of(const struct sample_candidate *it)
{
    double times[PAIRS_MOST];
    size_t count = 0;
    for (size_t i = 0; i < it->count && count < PAIRS_MOST; i++)
        if (it->samples[i].phase == SAMPLE_GATE) times[count++] = it->samples[i].us;
    fp8r_sort(times, count);
    return count > 0 ? fp8r_median(times, count) : 0;
}

static int compare(const struct fp8r_sequential *sequential, const struct sample_candidate *chosen,
                   const struct sample_candidate *rival, struct gate_comparison *comparison,
                   struct fp8r_tool_error *error)
{
    double base_us[PAIRS_MOST], other_us[PAIRS_MOST];
    struct fp8r_pair pairs[PAIRS_MOST];
    size_t count = sample_pairs(chosen, rival, SAMPLE_GATE, base_us, other_us, PAIRS_MOST);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct fp8r_pair){.base_us = base_us[i], .other_us = other_us[i]};
    comparison->median_us = median_of(rival);
    return fp8r_sequential_decide(sequential, pairs, count, &comparison->result, error);
}

/* All of the point's comparisons from the samples so far. */
static int judge(struct duel *duel, const struct sample_case *it)
{
    int chosen = sample_case_candidate(it, duel->chosen), code = FP8R_EXIT_GOOD;
    for (int i = 0; i < duel->point->count && code == FP8R_EXIT_GOOD; i++) {
        struct gate_comparison *comparison = &duel->point->against[i];
        int rival = sample_case_candidate(it, comparison->label);
        code = compare(&duel->sequential, &it->candidates[chosen], &it->candidates[rival], comparison,
                       duel->error);
    }
    return code;
}

static bool is_out(const struct sample_case *it, const char *label)
{
    return it->candidates[sample_case_candidate(it, label)].dropped[0] != '\0';
}

/* One regression is enough; otherwise every comparison wants its verdict. Those whose result was wrong never
 * get one. */
static bool is_enough(void *arg, const struct sample_case *it)
{
    struct duel *duel = arg;
    bool settled = true;
    duel->code = judge(duel, it);
    for (int i = 0; i < duel->point->count; i++) {
        const struct gate_comparison *comparison = &duel->point->against[i];
        if (comparison->result.verdict == FP8R_PAIRED_REGRESSION) return true;
        settled =
            settled && (comparison->result.verdict != FP8R_PAIRED_GO_ON || is_out(it, comparison->label));
    }
    return settled || duel->code != FP8R_EXIT_GOOD || is_out(it, duel->chosen);
}

/* ---- Points ---- */

static bool has_entrant(const struct turn *turn, const char *label)
{
    for (int i = 0; i < turn->entrants.entrant_count; i++)
        if (strcmp(turn->entrants.entrants[i].label, label) == 0) return true;
    return false;
}

static bool can_run(fp8r_context *context, const fp8r_matmul *member, const char *label)
{
    fp8r_plan *plan = NULL;
    fp8r_status status = fp8r_plan_create(context, member, label, &plan);
    fp8r_plan_destroy(plan);
    return status == FP8R_OK;
}

static void add_rival(const struct turn *turn, const fp8r_matmul *member, const char *chosen,
                      const char *label, bool is_default, struct gate_point *point)
{
    for (int i = 0; i < point->count; i++)
        if (strcmp(point->against[i].label, label) == 0) {
            point->against[i].is_default |= is_default;
            return;
        }
    if (strcmp(label, chosen) == 0 || !has_entrant(turn, label) ||
        !can_run(turn->gate->context, member, label))
        return;
    struct gate_comparison *comparison = &point->against[point->count++];
    *comparison = (struct gate_comparison){.is_runner_up = !is_default, .is_default = is_default};
    snprintf(comparison->label, sizeof comparison->label, "%s", label);
}

static int list_rivals(const struct turn *turn, const struct gate_route *route, const fp8r_matmul *member,
                       struct gate_point *point, struct fp8r_tool_error *error)
{
    int fallback = -1;
    int code = fp8r_entrants_fallback(turn->gate->context, member, turn->entrants.entrants,
                                      turn->entrants.entrant_count, &fallback, error);
    if (*route->segment->runner_up)
        add_rival(turn, member, route->label, route->segment->runner_up, false, point);
    if (code == FP8R_EXIT_GOOD && fallback >= 0)
        add_rival(turn, member, route->label, turn->entrants.entrants[fallback].label, true, point);
    return code;
}

static void set_unmeasured(struct gate_route *route, const char *why)
{
    if (route->verdict < GATE_UNMEASURED) route->verdict = GATE_UNMEASURED;
    snprintf(route->why, sizeof route->why, "%s", why);
}

/* A rival that turned out wrong was not raced; a chosen one that is wrong needs no race. */
static void conclude(const struct duel *duel, struct gate_route *route, const struct sample_case *it)
{
    struct gate_point *point = duel->point;
    const struct sample_candidate *chosen = &it->candidates[sample_case_candidate(it, duel->chosen)];
    int kept = 0;
    for (int i = 0; i < point->count; i++)
        if (it->candidates[sample_case_candidate(it, point->against[i].label)].count > 0)
            point->against[kept++] = point->against[i];
    point->count = kept;
    point->median_us = median_of(chosen);
    point->verdict = chosen->dropped[0] ? GATE_REGRESSION : gate_point_verdict(point);
    if (chosen->dropped[0])
        snprintf(route->why, sizeof route->why, "M=%lld: %s", (long long)point->m, chosen->dropped);
    route->verdict = point->verdict > route->verdict ? point->verdict : route->verdict;
}

static int race_point(struct turn *turn, struct gate_route *route, const fp8r_matmul *member,
                      struct gate_point *point, struct fp8r_tool_error *error)
{
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_GATE);
    struct duel duel = {.chosen = route->label, .point = point, .error = error};
    char problem[FP8R_TEXT_BYTES];
    size_t index = 0;
    const char *only[GATE_RIVALS + 2] = {route->label};
    for (int i = 0; i < point->count; i++)
        only[i + 1] = point->against[i].label;
    options.margin = turn->gate->margin;
    options.candidates = point->count > 0 ? point->count : 1;
    int code = fp8r_sequential_init(&duel.sequential, &options, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_matmul_format(member, problem, sizeof problem));
    if (code != FP8R_EXIT_GOOD) return code;
    struct race_rules rules = {.phase = SAMPLE_GATE,
                               .seed = turn->gate->seed + (uint64_t)point->m,
                               .only = only,
                               .rounds_least = point->count > 0 ? PAIRS_LEAST : 1,
                               .rounds_most = point->count > 0 ? PAIRS_MOST : 1,
                               .budget_us = INFINITY,
                               .is_enough = is_enough,
                               .arg = &duel};
    code = race_run(&turn->track, &rules, problem, member, &index, error);
    turn->gate->is_wrong |= code == FP8R_EXIT_FAILED;
    if (code != FP8R_EXIT_GOOD && code != FP8R_EXIT_FAILED) return code;
    const struct sample_case *it = &turn->gate->record->samples.cases[index];
    code = judge(&duel, it);
    conclude(&duel, route, it);
    return code;
}

/* The member of the family with those rows. Where its own key is another (a column-major a of odd M is less
 * aligned), the route says nothing of it. */
static int take_member(const struct gate_route *route, int64_t m, fp8r_matmul *member, bool *is_member,
                       struct fp8r_tool_error *error)
{
    struct fp8r_product product;
    struct fp8r_key key;
    int code = fp8r_tool_status(error, fp8r_family_member(route->family, m, member));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_product_init(member, FP8R_DATA_IGNORED, &product));
    if (code != FP8R_EXIT_GOOD) return code;
    fp8r_key_init(&product.problem, route->entry->key.mode, &key);
    *is_member = fp8r_key_equal(&key, &route->entry->key);
    return code;
}

static bool has_room(const struct gate *gate, const fp8r_matmul *member)
{
    int64_t needed,
        room = fp8r_size_min(gate->device->available_bytes, fp8r_host_available_bytes()) / memory_share;
    return fp8r_matmul_span_bytes(member, &needed) && needed <= room;
}

static double spent_seconds(const struct gate *gate)
{
    return (double)(fp8r_clock_ns() - gate->start_ns) / 1e9;
}

/* By the times in the file. */
static bool is_too_late(const struct gate *gate, const struct gate_route *route)
{
    double round_us =
        route->segment->median_us + fmax(route->segment->runner_up_us, route->segment->median_us);
    return gate->budget_seconds > 0 &&
           spent_seconds(gate) + PAIRS_LEAST * round_us / 1e6 > gate->budget_seconds;
}

static void show(const struct gate *gate, const struct gate_route *route, int64_t m)
{
    double share = gate->points > 0 ? (double)gate->points_done / (double)gate->points : 0,
           spent = spent_seconds(gate);
    double left = share > 0.02 ? spent / share - spent : 0;
    if (gate->budget_seconds > 0) left = fmin(left, gate->budget_seconds - spent);
    struct fp8r_progress progress = {route->family, m, share, left};
    gate->progress(gate->user, &progress);
}

static int measure_point(struct turn *turn, struct gate_route *route, struct gate_point *point,
                         struct fp8r_tool_error *error)
{
    struct gate *gate = turn->gate;
    fp8r_matmul member;
    bool is_member = false;
    int code = take_member(route, point->m, &member, &is_member, error);
    if (code != FP8R_EXIT_GOOD || !is_member || is_too_late(gate, route)) return code;
    show(gate, route, point->m);
    if (member.a.rows > turn->inputs.matmul.a.rows || !can_run(gate->context, &member, route->label)) {
        set_unmeasured(route, member.a.rows > turn->inputs.matmul.a.rows
                                  ? "its operands have no room in memory"
                                  : fp8r_last_error());
        point->verdict = GATE_UNMEASURED;
        return FP8R_EXIT_GOOD;
    }
    code = list_rivals(turn, route, &member, point, error);
    return code == FP8R_EXIT_GOOD ? race_point(turn, route, &member, point, error) : code;
}

/* ---- Turns ---- */

/* Operands of the largest member that has room. None may have: then nothing is loaded, and no point can run.
 */
static int load_operands(struct turn *turn, struct fp8r_tool_error *error)
{
    fp8r_matmul largest = {0};
    for (size_t i = 0; i < turn->count; i++) {
        const struct gate_route *route = &turn->routes[i];
        for (int j = 0; j < route->point_count; j++) {
            fp8r_matmul member;
            int code =
                fp8r_tool_status(error, fp8r_family_member(route->family, route->points[j].m, &member));
            if (code != FP8R_EXIT_GOOD) return code;
            if (route->verdict != GATE_UNMEASURED && member.a.rows > largest.a.rows &&
                has_room(turn->gate, &member))
                largest = member;
        }
    }
    if (largest.a.rows == 0) return FP8R_EXIT_GOOD;
    int code = fp8r_inputs_create(&largest, turn->gate->seed, fp8r_inputs_guard(turn->gate->device->is_remote), &turn->inputs, error);
    return code == FP8R_EXIT_GOOD
               ? fp8r_rotation_load(&turn->gate->rotation, turn->gate->device, &turn->inputs,
                                    turn->gate->is_warm ? 0 : cache_factor, error)
               : code;
}

static int measure_routes(struct turn *turn, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < turn->count; i++) {
        struct gate_route *route = &turn->routes[i];
        bool misses = route->verdict == GATE_UNMEASURED;
        for (int j = 0; j < route->point_count && code == FP8R_EXIT_GOOD; j++, turn->gate->points_done++)
            code = misses ? FP8R_EXIT_GOOD : measure_point(turn, route, &route->points[j], error);
    }
    return code;
}

static int take_turn(struct gate *gate, struct gate_route *routes, size_t count,
                     struct fp8r_tool_error *error)
{
    struct turn turn = {.gate = gate, .routes = routes, .count = count};
    int code =
        fp8r_entrants_list(gate->context, &turn.entrants.entrants, &turn.entrants.entrant_count, error);
    turn.track = (struct race_track){.context = gate->context,
                                     .device = gate->device,
                                     .rotation = &gate->rotation,
                                     .inputs = &turn.inputs,
                                     .entrants = &turn.entrants,
                                     .record = gate->record,
                                     .note = gate->note,
                                     .user = gate->user};
    if (code == FP8R_EXIT_GOOD) code = load_operands(&turn, error);
    if (code == FP8R_EXIT_GOOD) code = measure_routes(&turn, error);
    fp8r_inputs_destroy(&turn.inputs);
    fp8r_points_fini(&turn.entrants);
    return code;
}

int gate_measure(struct gate *gate, struct gate_routes *routes, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    gate->start_ns = fp8r_clock_ns();
    for (size_t i = 0; i < routes->count; i++)
        gate->points += (size_t)routes->items[i].point_count;
    for (size_t first = 0, next; first < routes->count && code == FP8R_EXIT_GOOD; first = next) {
        bool is_over = is_too_late(gate, &routes->items[first]);
        for (next = first + 1;
             next < routes->count && routes->items[next].entry == routes->items[first].entry;)
            next++;
        if (!is_over) code = take_turn(gate, &routes->items[first], next - first, error);
    }
    fp8r_rotation_fini(&gate->rotation);
    return code;
}
