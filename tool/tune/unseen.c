/* Drawing, screening, racing, charging. SPDX-License-Identifier: Apache-2.0 */
#include "tune/unseen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "measure/clock.h"
#include "measure/statistics.h"
#include "tool_status.h"
#include "tune/entrants.h"
#include "tune/interrupt.h"
#include "tune/recorded_race.h"

enum {
    SIZE_HIGH = 32768, /* on a CPU, too: what is too long is drawn again */
    ROUNDS_LEAST = 20,
    ROUNDS_MOST = 60,
    RACERS_EXPECTED = 5,
    WARM_CALLS = 3, /* beside those of the rounds: verified once, warmed */
    MEMORY_SHARE =
        8, /* operands are at most this share of what is available: they are there twice, and rotate */
    SCREEN_M = 64,
    SCREEN_N = 256,
    SCREEN_K = 1024
};

const double unseen_worst_limit = 0.10;

static const double cold_factor = 4, behind_factor = 3;

/* Who is this many times behind on a small product of the same M and alignment is not raced on the large one:
 * a loop that takes minutes would not win there. */
static const double hopeless_factor = 8;

/* As in a tune of a device that replays recordings. */
static const double recorded_race_us = 150e3, recorded_behind_factor = 2, recorded_sibling_factor = 1.1;

/* Of a problem's time, what calls may take; the rest goes into making and copying operands. */
static const double timed_share = 0.5;

/* What all problems of a call share. */
struct work {
    struct unseen *unseen;
    struct record screening; /* in memory */
    struct fp8r_points entrants;
    struct fp8r_rotation rotation;
    const char **only; /* room for all entrants and a NULL */
    double problem_seconds;
    int64_t start_ns;
};

/* ---- One race ---- */

static int shape_read(const struct fp8r_random_problem *shape, fp8r_matmul *matmul,
                      char text[FP8R_TEXT_BYTES], struct fp8r_tool_error *error)
{
    char drawn[80];
    snprintf(drawn, sizeof drawn, "%lldx%lldx%lld", (long long)shape->m, (long long)shape->n,
             (long long)shape->k);
    int code = fp8r_tool_status(error, fp8r_matmul_parse(drawn, matmul));
    return code == FP8R_EXIT_GOOD ? fp8r_tool_status(error, fp8r_matmul_format(matmul, text, FP8R_TEXT_BYTES))
                                  : code;
}

/* Races a product on operands of its own, cold for the record and warm for screening. *it: the case, good
 * until the next race. */
static int race_shape(struct work *work, struct record *record, const struct race_rules *rules,
                      const fp8r_matmul *matmul, const char *text, const struct sample_case **it,
                      struct fp8r_tool_error *error)
{
    struct unseen *unseen = work->unseen;
    struct fp8r_inputs inputs;
    size_t index = 0;
    struct race_track track = {.context = unseen->context,
                               .device = unseen->device,
                               .rotation = &work->rotation,
                               .inputs = &inputs,
                               .entrants = &work->entrants,
                               .record = record,
                               .note = unseen->note,
                               .user = unseen->user};
    int code = fp8r_inputs_create(matmul, rules->seed, fp8r_inputs_guard(unseen->device->is_remote), &inputs, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_rotation_load(&work->rotation, unseen->device, &inputs,
                              record == unseen->record && !unseen->is_warm ? cold_factor : 0, error);
    if (code == FP8R_EXIT_GOOD) code = race_run(&track, rules, text, matmul, &index, error);
    fp8r_inputs_destroy(&inputs);
    unseen->is_wrong |= code == FP8R_EXIT_FAILED;
    code = code == FP8R_EXIT_FAILED ? FP8R_EXIT_GOOD : code;
    if (code == FP8R_EXIT_GOOD) *it = &record->samples.cases[index];
    return code;
}

static double median_of(const struct sample_candidate *it)
{
    double times[ROUNDS_MOST];
    size_t count = it->count < ROUNDS_MOST ? it->count : ROUNDS_MOST;
    for (size_t i = 0; i < count; i++)
        times[i] = it->samples[it->count - count + i].us;
    fp8r_sort(times, count);
    return count > 0 ? fp8r_median(times, count) : INFINITY;
}

/* ---- Limits ---- */

/* Microseconds that the default takes on a shape. */
static int time_default(struct work *work, const struct fp8r_random_problem *shape, double *us,
                        struct fp8r_tool_error *error)
{
    fp8r_matmul matmul;
    char text[FP8R_TEXT_BYTES];
    const struct sample_case *it = NULL;
    int fallback = -1, code = shape_read(shape, &matmul, text, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_entrants_fallback(work->unseen->context, &matmul, work->entrants.entrants,
                                      work->entrants.entrant_count, &fallback, error);
    if (code == FP8R_EXIT_GOOD && fallback < 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "no backend can run %s", text);
    if (code != FP8R_EXIT_GOOD) return code;
    struct race_rules rules = {.phase = SAMPLE_GATE,
                               .seed = work->unseen->seed,
                               .only = (const char *const[]){work->entrants.entrants[fallback].label, NULL},
                               .rounds_least = 3,
                               .rounds_most = 3,
                               .budget_us = INFINITY};
    code = race_shape(work, &work->screening, &rules, &matmul, text, &it, error);
    if (code == FP8R_EXIT_GOOD) *us = median_of(&it->candidates[it->fallback]);
    return code == FP8R_EXIT_GOOD && !(*us < INFINITY)
               ? fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "the default could not be timed on %s",
                                     text)
               : code;
}

/* A problem is short enough where the default, at the rates that it shows here, takes no longer than a call
 * may: with few rows it reads weights, with many it computes. */
static int set_limits(struct work *work, struct fp8r_tool_error *error)
{
    struct unseen *unseen = work->unseen;
    struct fp8r_random_problems *draws = &unseen->draws;
    int64_t available = fp8r_size_min(unseen->device->available_bytes, fp8r_host_available_bytes());
    double reading_us = 0, computing_us = 0;
    double call_us =
        1e6 * timed_share * work->problem_seconds / RACERS_EXPECTED / (ROUNDS_LEAST + WARM_CALLS);
    fp8r_random_problems_init(draws, fp8r_context_device(unseen->context)->kind, available, unseen->seed);
    draws->size_high = SIZE_HIGH;
    const struct fp8r_random_problem reading = {1, 4096, 4096}, computing = {draws->m_high, 1024, 1024};
    int code = time_default(work, &reading, &reading_us, error);
    if (code == FP8R_EXIT_GOOD) code = time_default(work, &computing, &computing_us, error);
    if (code != FP8R_EXIT_GOOD) return code;
    double bytes = call_us / reading_us * (double)(reading.n * reading.k);
    double operations = call_us / computing_us * 2 * (double)(computing.m * computing.n * computing.k);
    draws->weight_bytes_max = fmin(draws->weight_bytes_max, bytes);
    draws->operations_max = operations;
    return code;
}

/* ---- One problem ---- */

static int find_routed(fp8r_context *context, const fp8r_matmul *matmul, struct unseen_problem *problem,
                       struct fp8r_tool_error *error)
{
    fp8r_explanation *explanation = NULL;
    int code = fp8r_tool_status(error, fp8r_explain(context, matmul, &explanation));
    if (code != FP8R_EXIT_GOOD) return code;
    snprintf(problem->source, sizeof problem->source, "%s", fp8r_explanation_source(explanation));
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *candidate = fp8r_explanation_candidate(explanation, i);
        if (candidate->verdict == FP8R_VERDICT_CHOSEN)
            snprintf(problem->routed, sizeof problem->routed, "%.63s:%.63s", candidate->backend,
                     candidate->config);
    }
    fp8r_explanation_destroy(explanation);
    return *problem->routed
               ? FP8R_EXIT_GOOD
               : fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "no backend can run %s", problem->text);
}

/* work->only: those that are worth racing; the routed one always is. A device that replays recordings finds that out as
 * soon as they race. */
static int screen(struct work *work, const struct fp8r_random_problem *shape,
                  const struct unseen_problem *problem, struct fp8r_tool_error *error)
{
    const struct fp8r_random_problem small = {fp8r_size_min(shape->m, SCREEN_M),
                                              fp8r_size_min(shape->n, SCREEN_N + shape->n % 128),
                                              fp8r_size_min(shape->k, SCREEN_K + shape->k % 128)};
    struct race_rules rules = {.phase = SAMPLE_GATE,
                               .seed = work->unseen->seed,
                               .rounds_least = 1,
                               .rounds_most = 1,
                               .budget_us = INFINITY};
    fp8r_matmul matmul;
    char text[FP8R_TEXT_BYTES];
    const struct sample_case *it = NULL;
    double best = INFINITY;
    int count = 0, code;
    if (work->unseen->device->records) {
        for (; count < work->entrants.entrant_count; count++)
            work->only[count] = work->entrants.entrants[count].label;
        work->only[count] = NULL;
        return FP8R_EXIT_GOOD;
    }
    code = shape_read(&small, &matmul, text, error);
    if (code == FP8R_EXIT_GOOD) code = race_shape(work, &work->screening, &rules, &matmul, text, &it, error);
    for (int i = 0; code == FP8R_EXIT_GOOD && i < it->count; i++)
        best = fmin(best, median_of(&it->candidates[i]));
    for (int i = 0; code == FP8R_EXIT_GOOD && i < work->entrants.entrant_count; i++) {
        const char *label = work->entrants.entrants[i].label;
        int candidate = sample_case_candidate(it, label);
        if (strcmp(label, problem->routed) == 0 || candidate < 0 ||
            median_of(&it->candidates[candidate]) <= hopeless_factor * best)
            work->only[count++] = label;
    }
    work->only[count] = NULL;
    return code;
}

static int race_problem(struct work *work, const fp8r_matmul *matmul, struct unseen_problem *problem,
                        struct fp8r_tool_error *error)
{
    const struct sample_case *it = NULL;
    const bool records = work->unseen->device->records;
    struct race_rules rules = {.phase = SAMPLE_GATE,
                               .seed = work->unseen->seed + work->unseen->count,
                               .only = work->only,
                               .rounds_least = ROUNDS_LEAST,
                               .rounds_most = ROUNDS_MOST,
                               .budget_us = records ? recorded_race_us : 1e6 * timed_share * work->problem_seconds,
                               .behind_factor = records ? recorded_behind_factor : behind_factor,
                               .sibling_factor = records ? recorded_sibling_factor : 0,
                               .keep = problem->routed};
    int code = race_shape(work, work->unseen->record, &rules, matmul, problem->text, &it, error);
    if (code != FP8R_EXIT_GOOD) return code;
    int routed = sample_case_candidate(it, problem->routed);
    if (routed < 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "%s: the routes choose %s, which did not race",
                                   problem->text, problem->routed);
    for (int i = 0; i < it->count; i++)
        problem->raced += it->candidates[i].count > 0;
    problem->routed_us = it->candidates[routed].count > 0 ? median_of(&it->candidates[routed]) : 0;
    code = regret_of(it, SAMPLE_GATE, routed, &problem->regret, error);
    snprintf(problem->best, sizeof problem->best, "%s", it->candidates[problem->regret.best].name);
    return code;
}

static int measure_problem(struct work *work, const struct fp8r_random_problem *shape,
                           struct fp8r_tool_error *error)
{
    struct unseen *unseen = work->unseen;
    struct unseen_problem *problem = &unseen->problems[unseen->count];
    fp8r_matmul matmul;
    int code = shape_read(shape, &matmul, problem->text, error);
    if (code == FP8R_EXIT_GOOD) code = find_routed(unseen->routed, &matmul, problem, error);
    if (code == FP8R_EXIT_GOOD) code = screen(work, shape, problem, error);
    if (code == FP8R_EXIT_GOOD) code = race_problem(work, &matmul, problem, error);
    if (code != FP8R_EXIT_GOOD) return code;
    unseen->count++;
    regret_add(&unseen->summary, &problem->regret, unseen->margin);
    return FP8R_EXIT_GOOD;
}

/* ---- All of them ---- */

static double spent_seconds(const struct work *work)
{
    return (double)(fp8r_clock_ns() - work->start_ns) / 1e9;
}

static void show(const struct work *work, int64_t done, const struct fp8r_random_problem *shape)
{
    const struct unseen *unseen = work->unseen;
    char what[80];
    double spent = spent_seconds(work);
    snprintf(what, sizeof what, "unseen problem %lld of %lld, %lldx%lld", (long long)done + 1,
             (long long)unseen->wanted, (long long)shape->n, (long long)shape->k);
    struct fp8r_progress progress = {what, shape->m, (double)done / (double)unseen->wanted,
                                     done > 0 ? spent / (double)done * (double)(unseen->wanted - done)
                                              : work->problem_seconds * (double)unseen->wanted};
    unseen->progress(unseen->user, &progress);
}

static int measure_all(struct work *work, struct fp8r_tool_error *error)
{
    struct unseen *unseen = work->unseen;
    int code = set_limits(work, error);
    for (int64_t i = 0; i < unseen->wanted && code == FP8R_EXIT_GOOD; i++) {
        struct fp8r_random_problem shape = fp8r_random_problems_next(&unseen->draws);
        if (unseen->budget_seconds > 0 && spent_seconds(work) > unseen->budget_seconds) {
            unseen->left = unseen->wanted - i;
            break;
        }
        if (fp8r_interrupted()) return FP8R_EXIT_INTERRUPTED;
        show(work, i, &shape);
        code = measure_problem(work, &shape, error);
    }
    return code;
}

int unseen_measure(struct unseen *unseen, struct fp8r_tool_error *error)
{
    struct work work = {.unseen = unseen, .start_ns = fp8r_clock_ns()};
    work.problem_seconds =
        unseen->budget_seconds > 0 ? unseen->budget_seconds / (double)unseen->wanted : UNSEEN_SECONDS;
    int code =
        fp8r_entrants_list(unseen->context, &work.entrants.entrants, &work.entrants.entrant_count, error);
    if (code != FP8R_EXIT_GOOD) return code;
    unseen->problems = calloc((size_t)unseen->wanted, sizeof *unseen->problems);
    work.only = calloc((size_t)work.entrants.entrant_count + 1, sizeof *work.only);
    code =
        unseen->problems && work.only ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the unseen problems");
    if (code == FP8R_EXIT_GOOD) {
        const struct record *record = unseen->record;
        code = record_open(&work.screening, NULL, "", &record->samples.machines[record->machine],
                           unseen->seed, unseen->margin, error);
    }
    if (code == FP8R_EXIT_GOOD) {
        code = measure_all(&work, error);
        (void)record_close(&work.screening, NULL); /* in memory: closing it cannot fail */
    }
    fp8r_rotation_fini(&work.rotation);
    fp8r_points_fini(&work.entrants);
    free(work.only);
    return code;
}

void unseen_fini(struct unseen *unseen)
{
    free(unseen->problems);
    unseen->problems = NULL;
    unseen->count = 0;
}

int unseen_exit(const struct unseen *unseen)
{
    const struct regret_summary *summary = &unseen->summary;
    if (summary->counted == 0) return FP8R_EXIT_UNMEASURED;
    return summary->mean > unseen->margin || summary->worst_low > unseen_worst_limit ? FP8R_EXIT_FAILED
                                                                                     : FP8R_EXIT_GOOD;
}
