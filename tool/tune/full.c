/* The protocol, family by family: the operands of a family are loaded once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/full.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure/clock.h"
#include "tool_status.h"
#include "tune/deal.h"
#include "tune/entrants.h"
#include "tune/full_work.h"

enum {
    GRID_ROUNDS_LEAST = 9,
    GRID_ROUNDS_MOST = 25,
    RETRIES = 2,
    PAUSE_SECONDS = 1
};

/* Time for one problem's grid, a candidate: fast problems get more rounds for it. A device that replays recordings holds
 * still: there it is for all candidates. */
static const double grid_candidate_us = 200e3, recorded_problem_us = 60e3;
static const double cache_factor = 4;

/* Waits for whatever disturbs to go away; a signal ends the wait. */
static void pause_a_little(void)
{
    struct timespec left = {.tv_sec = PAUSE_SECONDS};
    nanosleep(&left, NULL);
}

/* One problem of the grid. Where its times do not hold still it stays open for another time, unless this is the last. */
static int measure_grid(struct work *work, int64_t m, bool is_last, struct fp8r_tool_error *error)
{
    struct full *full = work->full;
    fp8r_matmul member;
    char problem[FP8R_TEXT_BYTES];
    size_t index = 0;
    int code = work_member(work, m, &member, problem, error);
    struct race_rules rules = {.phase = SAMPLE_GRID,
                               .seed = full->seed + (uint64_t)m,
                               .rounds_least = full->device->records ? RECORDED_ROUNDS : GRID_ROUNDS_LEAST,
                               .rounds_most = GRID_ROUNDS_MOST,
                               .budget_us = full->device->records ? recorded_problem_us
                                                                  : grid_candidate_us * work->entrants.entrant_count};
    work_set_factors(work, &rules);
    if (code == FP8R_EXIT_GOOD)
        code = work_race(work, &rules, problem, &member, &index, error);
    if (code == FP8R_EXIT_UNMEASURED) /* nobody can run it: not a case */
        return FP8R_EXIT_GOOD;
    bool steady = code == FP8R_EXIT_GOOD && work_is_steady(work, &full->record->samples.cases[index]);
    if (code != FP8R_EXIT_GOOD || (!steady && !is_last))
        return code;
    full->measured++;
    return record_done(full->record, index, !steady, error);
}

/* Every problem of this shard's that is not finished, once. */
static int run_grid_once(struct work *work, int attempt, struct fp8r_tool_error *error)
{
    struct full *full = work->full;
    size_t own = 0;
    bool has_paused = attempt == 0;
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < work->family->m_count && code == FP8R_EXIT_GOOD; i++) {
        fp8r_matmul member;
        char problem[FP8R_TEXT_BYTES];
        if (work->shard_of[i] != full->shard)
            continue;
        work->grid_done = own++;
        code = work_member(work, work->family->ms[i], &member, problem, error);
        const struct sample_case *it = code == FP8R_EXIT_GOOD ? work_find_case(work, problem) : NULL;
        if (code != FP8R_EXIT_GOOD || (it && it->is_done))
            continue;
        if (work_is_over(full)) {
            full->left += attempt == RETRIES;
            continue;
        }
        if (!has_paused)
            pause_a_little();
        has_paused = true;
        work_show(work, attempt > 0 ? "grid, again" : "grid", work->family->ms[i]);
        code = measure_grid(work, work->family->ms[i], attempt == RETRIES, error);
    }
    work->grid_done = own;
    return code;
}

/* Problems whose times do not hold still are measured again after the others, and after a pause. */
static int run_grid(struct work *work, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (int attempt = 0; attempt <= RETRIES && code == FP8R_EXIT_GOOD; attempt++)
        code = run_grid_once(work, attempt, error);
    return code;
}

static int load_operands(struct work *work, struct fp8r_tool_error *error)
{
    const struct fp8r_tune_family *family = work->family;
    fp8r_matmul largest;
    int code = fp8r_tool_status(error, fp8r_family_member(family->text, family->ms[family->m_count - 1], &largest));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_inputs_create(&largest, work->full->seed, fp8r_inputs_guard(work->full->device->is_remote), &work->inputs, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_rotation_load(&work->full->rotation, work->full->device, &work->inputs,
                                  work->full->is_warm ? 0 : cache_factor, error);
    if (code == FP8R_EXIT_GOOD && !work->full->is_warm && !fp8r_rotation_is_cold(&work->full->rotation, cache_factor))
        work->full->note(work->full->user, "memory is too short to rotate the operands out of the caches: times are of "
                                           "operands that are partly warm");
    return code;
}

static int tune_family(struct full *full, const struct fp8r_tune_family *family, const int *shard_of,
                       struct fp8r_tool_error *error)
{
    struct work work = {.full = full, .family = family, .shard_of = shard_of};
    int code = fp8r_entrants_list(full->context, &work.entrants.entrants, &work.entrants.entrant_count, error);
    work.track = (struct race_track){.context = full->context,
                                     .device = full->device,
                                     .rotation = &full->rotation,
                                     .inputs = &work.inputs,
                                     .entrants = &work.entrants,
                                     .record = full->record,
                                     .timed_ns = &full->timed_ns,
                                     .note = full->note,
                                     .user = full->user};
    work.only = calloc((size_t)work.entrants.entrant_count + 1, sizeof *work.only);
    if (code == FP8R_EXIT_GOOD && !work.only)
        code = fp8r_tool_error_memory(error, "the contenders");
    if (code == FP8R_EXIT_GOOD)
        code = load_operands(&work, error);
    if (code == FP8R_EXIT_GOOD)
        code = run_grid(&work, error);
    if (code == FP8R_EXIT_GOOD)
        code = work_borders(&work, error);
    if (code == FP8R_EXIT_GOOD)
        code = work_confirmations(&work, error);
    full->finished += work.grid_done;
    fp8r_inputs_destroy(&work.inputs);
    fp8r_points_fini(&work.entrants);
    free(work.only);
    free(work.scratch);
    return code;
}

/* What was finished with other code than today's is neither done nor to be mixed with new times. Asked of all families before
 * anything is measured. */
static int check_revisions(const struct full *full, const struct fp8r_tune_families *families,
                           struct fp8r_tool_error *error)
{
    struct fp8r_entrant *entrants = NULL;
    int count = 0, code = fp8r_entrants_list(full->context, &entrants, &count, error);
    const struct samples *samples = &full->record->samples;
    for (size_t i = 0; i < samples->case_count && code == FP8R_EXIT_GOOD; i++) {
        const struct sample_case *it = &samples->cases[i];
        bool is_looked_at = it->machine == full->record->machine && fp8r_families_find(families, &it->key) >= 0;
        for (int j = 0; is_looked_at && j < count && code == FP8R_EXIT_GOOD; j++) {
            int at = sample_case_candidate(it, entrants[j].label);
            if (at >= 0 && strcmp(it->candidates[at].rev, entrants[j].rev) != 0)
                code = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                           "%s was measured with revision \"%s\" of %s, which is \"%s\" now, and times of both "
                                           "are not pooled: --samples names a new folder, or move the samples away",
                                           it->problem, it->candidates[at].rev, entrants[j].backend, entrants[j].rev);
        }
    }
    free(entrants);
    return code;
}

int full_tune(struct full *full, const struct fp8r_tune_families *families, struct fp8r_tool_error *error)
{
    size_t count = deal_count(families), at = 0;
    int *shard_of = calloc(count + 1, sizeof *shard_of);
    int code = FP8R_EXIT_GOOD;
    if (!shard_of || !deal(families, full->shards, shard_of))
        code = fp8r_tool_error_memory(error, "the problems");
    if (code == FP8R_EXIT_GOOD)
        code = check_revisions(full, families, error);
    full->start_ns = fp8r_clock_ns();
    full->share_found = -1;
    for (size_t i = 0; i < count; i++)
        full->problems += shard_of && shard_of[i] == full->shard;
    for (size_t i = 0; i < families->count && code == FP8R_EXIT_GOOD; i++) {
        int64_t timed_before_ns = full->timed_ns;
        code = tune_family(full, &families->items[i], shard_of + at, error);
        full->is_measured[i] = full->timed_ns > timed_before_ns;
        at += families->items[i].m_count;
    }
    full->seconds = (double)(fp8r_clock_ns() - full->start_ns) / 1e9;
    fp8r_rotation_fini(&full->rotation);
    free(shard_of);
    return code;
}
