/* Where the winner changes between measured M: halving, in random order, twice with different seeds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/random.h"
#include "tool_status.h"
#include "tune/entrants.h"
#include "tune/full_work.h"

enum {
    BORDER_ROUNDS = 9, /* each of two passes */
    BORDER_DEPTH = 12  /* halvings at most; a step of 2 takes three */
};

/* On a device that replays recordings a border matters only if a wrong winner costs something. */
static const double border_loss = 0.05;

/* A border is placed when the M on its sides are this close. */
static const double border_ratio = 1.1, recorded_border_ratio = 1.25;

/* The family's finished cases by m: new array of indices (free it), NULL when out of memory. */
size_t *work_finished(const struct work *work, size_t *count)
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
bool work_is_own_border(const struct work *work, int64_t m)
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
        if (work_member(work, work->family->ms[i], &member, problem, NULL) != FP8R_EXIT_GOOD)
            return false;
        it = work_find_case(work, problem);
        if (!it || !it->is_done)
            return false;
    }
    return true;
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
    int code = work_member(work, m, &member, problem, error);
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
        work_set_factors(work, &rules);
        code = work_race(work, &rules, problem, &member, &index, error);
    }
    if (code != FP8R_EXIT_GOOD)
        return code;
    full->measured++;
    bool steady = work_is_steady(work, &full->record->samples.cases[index]);
    return record_done(full->record, index, !steady, error);
}

static double median_at(struct work *work, const struct sample_case *it, const char *name)
{
    int i = sample_case_candidate(it, name);
    return i >= 0 ? work_median(work, &it->candidates[i]) : INFINITY;
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
        int left_winner = work_winner(work, left), right_winner = work_winner(work, right);
        bool records = work->full->device->records;
        int64_t middle = middle_of(left->m, right->m, records);
        bool placed = middle <= left->m || middle >= right->m ||
                      (double)right->m <= (records ? recorded_border_ratio : border_ratio) * (double)left->m;
        if (left_winner < 0 || right_winner < 0 || placed || !work_is_own_border(work, left->m))
            continue;
        const char *here = left->candidates[left_winner].name, *there = right->candidates[right_winner].name;
        if (strcmp(here, there) == 0 || !is_worth_placing(work, left, here, right, there))
            continue;
        middles[found++] = middle;
    }
    return found;
}

int work_borders(struct work *work, struct fp8r_tool_error *error)
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
        size_t *cases = work_finished(work, &count);
        int64_t *middles = calloc(count + 1, sizeof *middles);
        if (!cases || !middles)
            code = fp8r_tool_error_memory(error, "the borders");
        size_t left = code == FP8R_EXIT_GOOD ? list_middles(work, cases, count, middles) : 0;
        depth = left > 0 ? depth : BORDER_DEPTH;
        for (; left > 0 && code == FP8R_EXIT_GOOD && !work_is_over(full); left--) { /* in random order */
            size_t pick = (size_t)fp8r_random_below(&random, (int64_t)left);
            work_show(work, "borders", middles[pick]);
            code = measure_border(work, middles[pick], error);
            middles[pick] = middles[left - 1];
        }
        free(cases);
        free(middles);
    }
    return code;
}
