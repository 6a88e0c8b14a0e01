/* The protocol, family by family: the operands of a family are loaded once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/full.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure/clock.h"
#include "measure/random.h"
#include "measure/sequential.h"
#include "measure/statistics.h"
#include "tool_status.h"
#include "tune/deal.h"
#include "tune/entrants.h"
#include "tune/interrupt.h"
#include "tune/recorded_race.h"

enum {
    GRID_ROUNDS_LEAST = 9,
    GRID_ROUNDS_MOST = 25,
    BORDER_ROUNDS = 9,      /* each of two passes */
    RECORDED_ROUNDS = 7,    /* both, on a device that replays recordings */
    BORDER_DEPTH = 12,      /* halvings at most; a step of 2 takes three */
    CONFIRM_PAIRS_MOST = 120,
    CONFIRM_STEP = 15,
    RETRIES = 2,
    PAUSE_SECONDS = 1
};

/* Time for one problem's grid, a candidate: fast problems get more rounds for it. */
static const double grid_candidate_us = 200e3;
static const double behind_factor = 3, cache_factor = 4;

/* A device that replays recordings holds still, and has many configurations that are nearly alike: there is less to wait
 * for, those of one backend are soon told apart, and where the winner changes matters only if a wrong one costs something. */
static const double recorded_problem_us = 60e3, recorded_behind_factor = 2, sibling_factor = 1.08, border_loss = 0.05;

/* A border is placed when the M on its sides are this close. */
static const double border_ratio = 1.1, recorded_border_ratio = 1.25;

/* The middle half of a candidate's times may span this share of their median. */
static const double spread_most = 0.15;

/* A family under way. */
struct work {
    struct full *full;
    const struct fp8r_tune_family *family;
    const int *shard_of; /* of the family's problems */
    struct fp8r_points entrants;
    struct fp8r_inputs inputs;
    struct race_track track;
    const char **only; /* room for all entrants and a NULL */
    double *scratch; /* as many as any candidate has samples here */
    size_t scratch_count;
    size_t grid_done; /* this shard's problems of its grid, measured or found in the record */
};

static const struct sample_case *find_case(const struct work *work, const char *problem)
{
    return samples_find(&work->full->record->samples, work->full->record->machine, problem);
}

static int member_of(const struct work *work, int64_t m, fp8r_matmul *member, char problem[FP8R_TEXT_BYTES],
                     struct fp8r_tool_error *error)
{
    int code = fp8r_tool_status(error, fp8r_family_member(work->family->text, m, member));
    return code == FP8R_EXIT_GOOD ? fp8r_tool_status(error, fp8r_matmul_format(member, problem, FP8R_TEXT_BYTES)) : code;
}

/* Sorted times of a candidate in the tuning phases but the confirming one; how many. */
static size_t grid_times(struct work *work, const struct sample_candidate *it)
{
    size_t count = 0;
    if (it->count > work->scratch_count) {
        double *grown = realloc(work->scratch, it->count * sizeof *grown);
        if (!grown)
            return 0;
        work->scratch = grown;
        work->scratch_count = it->count;
    }
    for (size_t i = 0; i < it->count; i++)
        if (it->samples[i].phase == SAMPLE_GRID || it->samples[i].phase == SAMPLE_BORDER)
            work->scratch[count++] = it->samples[i].us;
    fp8r_sort(work->scratch, count);
    return count;
}

/* The fastest candidate by median; the default where it comes within the margin. -1 where nothing was measured. Who was
 * dropped has times of the first rounds alone, which are not those of the others where a device slows down as it warms. */
static int winner_of(struct work *work, const struct sample_case *it)
{
    double best_us = INFINITY, fallback_us = INFINITY;
    int best = -1;
    for (int i = 0; i < it->count; i++) {
        size_t count = grid_times(work, &it->candidates[i]);
        double median = count > 0 ? fp8r_median(work->scratch, count) : INFINITY;
        if (median < best_us && !it->candidates[i].dropped[0]) {
            best_us = median;
            best = i;
        }
        fallback_us = i == it->fallback ? median : fallback_us;
    }
    return fallback_us <= (1 + work->full->margin) * best_us ? it->fallback : best;
}

/* Do the winner's and the default's times hold still? */
static bool is_steady(struct work *work, const struct sample_case *it)
{
    int looked_at[2] = {winner_of(work, it), it->fallback};
    for (int i = 0; i < 2; i++) {
        size_t count = looked_at[i] >= 0 ? grid_times(work, &it->candidates[looked_at[i]]) : 0;
        if (count > 0 && fp8r_quantile(work->scratch, count, 0.75) - fp8r_quantile(work->scratch, count, 0.25) >
                             spread_most * fp8r_median(work->scratch, count))
            return false;
    }
    return true;
}

/* Waits for whatever disturbs to go away; a signal ends the wait. */
static void pause_a_little(void)
{
    struct timespec left = {.tv_sec = PAUSE_SECONDS};
    nanosleep(&left, NULL);
}

/* ---- Phases ---- */

static void set_factors(const struct work *work, struct race_rules *rules)
{
    bool records = work->full->device->records;
    rules->behind_factor = records ? recorded_behind_factor : behind_factor;
    rules->sibling_factor = records ? sibling_factor : 0;
}

static int race(struct work *work, struct race_rules *rules, const char *problem, const fp8r_matmul *member, size_t *index,
                struct fp8r_tool_error *error)
{
    rules->weight = fp8r_family_weight(work->family, member->a.rows);
    int code = race_run(&work->track, rules, problem, member, index, error);
    work->full->is_wrong |= code == FP8R_EXIT_FAILED;
    return code == FP8R_EXIT_FAILED ? FP8R_EXIT_GOOD : code;
}

/* One problem of the grid. Where its times do not hold still it stays open for another time, unless this is the last. */
static int measure_grid(struct work *work, int64_t m, bool is_last, struct fp8r_tool_error *error)
{
    struct full *full = work->full;
    fp8r_matmul member;
    char problem[FP8R_TEXT_BYTES];
    size_t index = 0;
    int code = member_of(work, m, &member, problem, error);
    struct race_rules rules = {.phase = SAMPLE_GRID,
                               .seed = full->seed + (uint64_t)m,
                               .rounds_least = full->device->records ? RECORDED_ROUNDS : GRID_ROUNDS_LEAST,
                               .rounds_most = GRID_ROUNDS_MOST,
                               .budget_us = full->device->records ? recorded_problem_us
                                                                  : grid_candidate_us * work->entrants.entrant_count};
    set_factors(work, &rules);
    if (code == FP8R_EXIT_GOOD)
        code = race(work, &rules, problem, &member, &index, error);
    if (code == FP8R_EXIT_UNMEASURED) /* nobody can run it: not a case */
        return FP8R_EXIT_GOOD;
    bool steady = code == FP8R_EXIT_GOOD && is_steady(work, &full->record->samples.cases[index]);
    if (code != FP8R_EXIT_GOOD || (!steady && !is_last))
        return code;
    full->measured++;
    return record_done(full->record, index, !steady, error);
}

/* Those that were in the race to its end at the measured M on either side, and the default. */
static const char *const *list_contenders(struct work *work, int64_t m, int fallback)
{
    const struct samples *samples = &work->full->record->samples;
    const struct sample_case *sides[2] = {NULL, NULL};
    int count = 0;
    for (size_t i = 0; i < samples->case_count; i++) {
        const struct sample_case *it = &samples->cases[i];
        const struct sample_case **side = &sides[it->m > m];
        if (it->machine != work->full->record->machine || !it->is_done || it->m == m ||
            !fp8r_key_equal(&it->key, &work->family->key))
            continue;
        if (!*side || llabs(it->m - m) < llabs((*side)->m - m))
            *side = it;
    }
    for (int i = 0; i < work->entrants.entrant_count; i++) {
        const char *label = work->entrants.entrants[i].label;
        bool stayed = i == fallback;
        for (int j = 0; j < 2; j++) {
            int at = sides[j] ? sample_case_candidate(sides[j], label) : -1;
            stayed |= at >= 0 && (at == sides[j]->fallback || !sides[j]->candidates[at].dropped[0]);
        }
        if (stayed)
            work->only[count++] = label;
    }
    work->only[count] = NULL;
    return work->only;
}

/* Between two measured M of different winners: a problem in their geometric middle, twice with different seeds. */
static int measure_border(struct work *work, int64_t m, struct fp8r_tool_error *error)
{
    struct full *full = work->full;
    const int rounds = full->device->records ? RECORDED_ROUNDS : BORDER_ROUNDS;
    const char *const *only = NULL;
    int fallback = -1;
    fp8r_matmul member;
    char problem[FP8R_TEXT_BYTES];
    size_t index = 0;
    int code = member_of(work, m, &member, problem, error);
    if (code == FP8R_EXIT_GOOD && full->device->records)
        code = fp8r_entrants_fallback(full->context, &member, work->entrants.entrants, work->entrants.entrant_count,
                                      &fallback, error);
    if (code == FP8R_EXIT_GOOD && full->device->records)
        only = list_contenders(work, m, fallback);
    for (int pass = 0; pass < 2 && code == FP8R_EXIT_GOOD; pass++) {
        struct race_rules rules = {.phase = SAMPLE_BORDER,
                                   .seed = full->seed + (uint64_t)m + (uint64_t)(pass + 1) * 1000003u,
                                   .only = only,
                                   .rounds_least = rounds,
                                   .rounds_most = rounds,
                                   .budget_us = INFINITY};
        set_factors(work, &rules);
        code = race(work, &rules, problem, &member, &index, error);
    }
    if (code != FP8R_EXIT_GOOD)
        return code;
    full->measured++;
    bool steady = is_steady(work, &full->record->samples.cases[index]);
    return record_done(full->record, index, !steady, error);
}

/* Enough pairs for a verdict? */
struct confirmation {
    const struct fp8r_sequential *sequential;
    int base, other;
    double base_us[CONFIRM_PAIRS_MOST * 4], other_us[CONFIRM_PAIRS_MOST * 4];
    struct fp8r_pair pairs[CONFIRM_PAIRS_MOST * 4];
};

static bool is_settled(void *arg, const struct sample_case *it)
{
    struct confirmation *confirmation = arg;
    struct fp8r_paired_result result;
    struct fp8r_tool_error ignored;
    size_t count = sample_pairs(&it->candidates[confirmation->base], &it->candidates[confirmation->other], SAMPLE_CONFIRM,
                                confirmation->base_us, confirmation->other_us,
                                sizeof confirmation->pairs / sizeof *confirmation->pairs);
    for (size_t i = 0; i < count; i++)
        confirmation->pairs[i] = (struct fp8r_pair){confirmation->base_us[i], confirmation->other_us[i]};
    return fp8r_sequential_decide(confirmation->sequential, confirmation->pairs, count, &result, &ignored) ==
               FP8R_EXIT_GOOD &&
           result.verdict != FP8R_PAIRED_GO_ON;
}

/* The grid's winner against the default, until the verdict is known. */
static int confirm(struct work *work, const struct sample_case *it, struct fp8r_tool_error *error)
{
    struct full *full = work->full;
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    struct fp8r_sequential sequential;
    struct confirmation confirmation = {.sequential = &sequential, .base = it->fallback, .other = winner_of(work, it)};
    if (it->is_noisy || confirmation.other < 0 || confirmation.other == it->fallback)
        return FP8R_EXIT_GOOD;
    options.margin = full->margin;
    int code = fp8r_sequential_init(&sequential, &options, error);
    if (code != FP8R_EXIT_GOOD || is_settled(&confirmation, it))
        return code;
    fp8r_matmul member;
    char problem[FP8R_TEXT_BYTES];
    size_t index;
    struct race_rules rules = {.phase = SAMPLE_CONFIRM,
                               .seed = full->seed + (uint64_t)it->m + 7919u,
                               .only = (const char *const[]){it->candidates[confirmation.base].name,
                                                             it->candidates[confirmation.other].name, NULL},
                               .rounds_least = CONFIRM_STEP,
                               .rounds_most = CONFIRM_PAIRS_MOST,
                               .budget_us = INFINITY,
                               .is_enough = is_settled,
                               .arg = &confirmation};
    code = member_of(work, it->m, &member, problem, error);
    return code == FP8R_EXIT_GOOD ? race(work, &rules, problem, &member, &index, error) : code;
}

/* ---- One family ---- */

static bool is_over(const struct full *full)
{
    double spent = (double)(fp8r_clock_ns() - full->start_ns) / 1e9;
    return full->budget_seconds > 0 && spent > full->budget_seconds;
}

/* Borders and confirmation of a family take about as long as its grid: they count as much. The phase is named, since the
 * number of borders shows only as they are found. */
static void show(struct work *work, const char *phase, int64_t m)
{
    struct full *full = work->full;
    char what[FP8R_TEXT_BYTES + 16];
    double spent = (double)(fp8r_clock_ns() - full->start_ns) / 1e9;
    double share = ((double)full->finished + (double)work->grid_done / 2) / (double)full->problems;
    if (full->share_found < 0)
        full->share_found = share;
    double made = share - full->share_found;
    snprintf(what, sizeof what, "%s: %s", phase, work->family->text);
    struct fp8r_progress progress = {what, m, share, made > 0.02 ? spent * (1 - share) / made : 0};
    full->progress(full->user, &progress);
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
        code = member_of(work, work->family->ms[i], &member, problem, error);
        const struct sample_case *it = code == FP8R_EXIT_GOOD ? find_case(work, problem) : NULL;
        if (code != FP8R_EXIT_GOOD || (it && it->is_done))
            continue;
        if (is_over(full)) {
            full->left += attempt == RETRIES;
            continue;
        }
        if (!has_paused)
            pause_a_little();
        has_paused = true;
        show(work, attempt > 0 ? "grid, again" : "grid", work->family->ms[i]);
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

/* The family's finished cases by m: new array of indices (free it), NULL when out of memory. */
static size_t *finished_cases(const struct work *work, size_t *count)
{
    const struct samples *samples = &work->full->record->samples;
    size_t *indices = calloc(samples->case_count + 1, sizeof *indices);
    *count = 0;
    for (size_t i = 0; indices && i < samples->case_count; i++) {
        const struct sample_case *it = &samples->cases[i];
        if (it->machine != work->full->record->machine || !it->is_done || !fp8r_key_equal(&it->key, &work->family->key))
            continue;
        size_t at = (*count)++;
        for (; at > 0 && samples->cases[indices[at - 1]].m > it->m; at--)
            indices[at] = indices[at - 1];
        indices[at] = i;
    }
    return indices;
}

/* Which shard halves the interval that begins at m: the one of the grid problem at or below it. */
static bool is_own_border(const struct work *work, int64_t m)
{
    size_t i = 0;
    while (i + 1 < work->family->m_count && work->family->ms[i + 1] <= m)
        i++;
    return work->shard_of[i] == work->full->shard;
}

/* Is every grid problem of the family measured, by whichever shard? */
static bool is_grid_complete(const struct work *work)
{
    for (size_t i = 0; i < work->family->m_count; i++) {
        fp8r_matmul member;
        char problem[FP8R_TEXT_BYTES];
        const struct sample_case *it;
        if (member_of(work, work->family->ms[i], &member, problem, NULL) != FP8R_EXIT_GOOD)
            return false;
        it = find_case(work, problem);
        if (!it || !it->is_done)
            return false;
    }
    return true;
}

static double median_at(struct work *work, const struct sample_case *it, const char *name)
{
    int i = sample_case_candidate(it, name);
    size_t count = i >= 0 ? grid_times(work, &it->candidates[i]) : 0;
    return count > 0 ? fp8r_median(work->scratch, count) : INFINITY;
}

/* Does either winner lose something on the other's side? */
static bool is_worth_placing(struct work *work, const struct sample_case *left, const char *left_winner,
                             const struct sample_case *right, const char *right_winner)
{
    double least = work->full->device->records ? 1 + border_loss : 0;
    return median_at(work, right, left_winner) > least * median_at(work, right, right_winner) ||
           median_at(work, left, right_winner) > least * median_at(work, left, left_winner);
}

/* The geometric middle; on a GPU, whose kernels work in tiles, a multiple of the smallest ones. */
static int64_t middle_of(int64_t left, int64_t right, bool has_steps)
{
    int64_t middle = (int64_t)sqrt((double)left * (double)right);
    int64_t step = !has_steps ? 1 : middle > 64 ? 16 : 8;
    return (middle + step / 2) / step * step;
}

/* The intervals to halve: neighbours of different winners that are not yet close. Writes their middles. */
static size_t list_middles(struct work *work, const size_t *cases, size_t count, int64_t *middles)
{
    size_t found = 0;
    const struct samples *samples = &work->full->record->samples;
    for (size_t i = 0; i + 1 < count; i++) {
        const struct sample_case *left = &samples->cases[cases[i]], *right = &samples->cases[cases[i + 1]];
        int left_winner = winner_of(work, left), right_winner = winner_of(work, right);
        bool records = work->full->device->records;
        int64_t middle = middle_of(left->m, right->m, records);
        bool placed = middle <= left->m || middle >= right->m ||
                      (double)right->m <= (records ? recorded_border_ratio : border_ratio) * (double)left->m;
        if (left_winner < 0 || right_winner < 0 || placed || !is_own_border(work, left->m))
            continue;
        const char *here = left->candidates[left_winner].name, *there = right->candidates[right_winner].name;
        if (strcmp(here, there) == 0 || !is_worth_placing(work, left, here, right, there))
            continue;
        middles[found++] = middle;
    }
    return found;
}

static int run_borders(struct work *work, struct fp8r_tool_error *error)
{
    struct full *full = work->full;
    struct fp8r_random random = {full->seed ^ fp8r_key_hash(&work->family->key)};
    int code = FP8R_EXIT_GOOD;
    if (!is_grid_complete(work)) {
        full->waiting += full->left == 0;
        return FP8R_EXIT_GOOD;
    }
    for (int depth = 0; depth < BORDER_DEPTH && code == FP8R_EXIT_GOOD; depth++) {
        size_t count = 0;
        size_t *cases = finished_cases(work, &count);
        int64_t *middles = calloc(count + 1, sizeof *middles);
        if (!cases || !middles)
            code = fp8r_tool_error_memory(error, "the borders");
        size_t left = code == FP8R_EXIT_GOOD ? list_middles(work, cases, count, middles) : 0;
        depth = left > 0 ? depth : BORDER_DEPTH;
        for (; left > 0 && code == FP8R_EXIT_GOOD && !is_over(full); left--) { /* in random order */
            size_t pick = (size_t)fp8r_random_below(&random, (int64_t)left);
            show(work, "borders", middles[pick]);
            code = measure_border(work, middles[pick], error);
            middles[pick] = middles[left - 1];
        }
        free(cases);
        free(middles);
    }
    return code;
}

static int run_confirmations(struct work *work, struct fp8r_tool_error *error)
{
    size_t count = 0;
    int code = FP8R_EXIT_GOOD;
    size_t *cases = finished_cases(work, &count);
    if (!cases)
        return fp8r_tool_error_memory(error, "the confirmations");
    for (size_t i = 0; i < count && code == FP8R_EXIT_GOOD && !is_over(work->full); i++) {
        int64_t m = work->full->record->samples.cases[cases[i]].m;
        if (!is_own_border(work, m))
            continue;
        show(work, "confirmation", m);
        code = confirm(work, &work->full->record->samples.cases[cases[i]], error);
    }
    free(cases);
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
        code = run_borders(&work, error);
    if (code == FP8R_EXIT_GOOD)
        code = run_confirmations(&work, error);
    full->finished += work.grid_done;
    fp8r_inputs_destroy(&work.inputs);
    fp8r_points_fini(&work.entrants);
    free(work.only);
    free(work.scratch);
    return code;
}

/* Of the record's cases on this machine, those whose times never held still, whoever measured them. */
static size_t count_noisy(const struct record *record)
{
    size_t count = 0;
    for (size_t i = 0; i < record->samples.case_count; i++)
        count += record->samples.cases[i].machine == record->machine && record->samples.cases[i].is_noisy;
    return count;
}

int full_tune(struct full *full, const struct fp8r_tune_families *families, struct fp8r_tool_error *error)
{
    size_t count = deal_count(families), at = 0;
    int *shard_of = calloc(count + 1, sizeof *shard_of);
    int code = FP8R_EXIT_GOOD;
    if (!shard_of || !deal(families, full->shards, shard_of))
        code = fp8r_tool_error_memory(error, "the problems");
    full->start_ns = fp8r_clock_ns();
    full->share_found = -1;
    for (size_t i = 0; i < count; i++)
        full->problems += shard_of && shard_of[i] == full->shard;
    for (size_t i = 0; i < families->count && code == FP8R_EXIT_GOOD; i++) {
        code = tune_family(full, &families->items[i], shard_of + at, error);
        at += families->items[i].m_count;
    }
    full->noisy = count_noisy(full->record);
    full->seconds = (double)(fp8r_clock_ns() - full->start_ns) / 1e9;
    fp8r_rotation_fini(&full->rotation);
    free(shard_of);
    return code;
}
