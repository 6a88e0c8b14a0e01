/* What the phases of a family's tune share: its problems, winners and races.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/full_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure/clock.h"
#include "measure/statistics.h"
#include "tool_status.h"
#include "tune/named.h"

static const double behind_factor = 3;

/* A device that replays recordings holds still, and has many configurations that are nearly alike: those of one backend are
 * soon told apart. */
static const double recorded_behind_factor = 2, sibling_factor = 1.08;

/* The middle half of a candidate's times may span this share of their median. */
static const double spread_most = 0.15;

const struct sample_case *work_find_case(const struct work *work, const char *problem)
{
    return samples_find(&work->full->record->samples, work->full->record->machine, problem);
}

int work_member(const struct work *work, int64_t m, fp8r_matmul *member, char problem[FP8R_TEXT_BYTES],
                     struct fp8r_tool_error *error)
{
    int code = fp8r_tool_status(error, fp8r_family_member(work->family->text, m, member));
    return code == FP8R_EXIT_GOOD ? fp8r_tool_status(error, fp8r_matmul_format(member, problem, FP8R_TEXT_BYTES)) : code;
}

/* Sorted times of a candidate in the tuning phases but the confirming one, in work->scratch; how many. */
static size_t sorted_times(struct work *work, const struct sample_candidate *it)
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

double work_median(struct work *work, const struct sample_candidate *it)
{
    size_t count = fp8r_candidate_is_wrong(it) ? 0 : sorted_times(work, it);
    return count > 0 ? fp8r_median(work->scratch, count) : INFINITY;
}

/* The fastest candidate by median; the default where it comes within the margin. -1 where nothing was measured. Who was
 * dropped has times of the first rounds alone, which are not those of the others where a device slows down as it warms. */
int work_winner(struct work *work, const struct sample_case *it)
{
    double best_us = INFINITY, fallback_us = INFINITY;
    int best = -1;
    for (int i = 0; i < it->count; i++) {
        double median = work_median(work, &it->candidates[i]);
        if (median < best_us && !it->candidates[i].dropped[0]) {
            best_us = median;
            best = i;
        }
        fallback_us = i == it->fallback ? median : fallback_us;
    }
    return fallback_us <= (1 + work->full->margin) * best_us ? it->fallback : best;
}

static bool holds_still(const double *sorted, size_t count)
{
    return count == 0 || fp8r_quantile(sorted, count, 0.75) - fp8r_quantile(sorted, count, 0.25) <=
                             spread_most * fp8r_median(sorted, count);
}

/* Do two candidates' times change together, as when the clock changes meanwhile? Then their ratio holds still, which is
 * all that a decision asks for. */
static bool keep_their_ratio(const struct sample_candidate *a, const struct sample_candidate *b)
{
    size_t count = 0, room = a->count < b->count ? a->count : b->count;
    double *a_us = calloc(2 * room + 1, sizeof *a_us), *b_us = a_us + room;
    if (!a_us)
        return false;
    for (int phase = SAMPLE_GRID; phase <= SAMPLE_BORDER; phase++)
        count += sample_pairs(a, b, phase, a_us + count, b_us + count, room - count);
    for (size_t i = 0; i < count; i++)
        a_us[i] /= b_us[i];
    fp8r_sort(a_us, count);
    bool does = count > 0 && holds_still(a_us, count);
    free(a_us);
    return does;
}

bool work_is_steady(struct work *work, const struct sample_case *it)
{
    int winner = work_winner(work, it), looked_at[2] = {winner, it->fallback};
    bool steady = true;
    for (int i = 0; i < 2; i++) {
        size_t count = looked_at[i] >= 0 ? sorted_times(work, &it->candidates[looked_at[i]]) : 0;
        steady = steady && holds_still(work->scratch, count);
    }
    return steady || (winner >= 0 && it->fallback >= 0 && winner != it->fallback &&
                      keep_their_ratio(&it->candidates[it->fallback], &it->candidates[winner]));
}

void work_set_factors(const struct work *work, struct race_rules *rules)
{
    bool records = work->full->device->records;
    rules->behind_factor = records ? recorded_behind_factor : behind_factor;
    rules->sibling_factor = records ? sibling_factor : 0;
}

int work_race(struct work *work, struct race_rules *rules, const char *problem, const fp8r_matmul *member, size_t *index,
                struct fp8r_tool_error *error)
{
    rules->weight = fp8r_family_weight(work->family, member->a.rows);
    int code = race_run(&work->track, rules, problem, member, index, error);
    work->full->is_wrong |= code == FP8R_EXIT_FAILED;
    return code == FP8R_EXIT_FAILED ? FP8R_EXIT_GOOD : code;
}

bool work_is_over(const struct full *full)
{
    double spent = (double)(fp8r_clock_ns() - full->start_ns) / 1e9;
    return full->budget_seconds > 0 && spent > full->budget_seconds;
}

/* Borders and confirmation of a family take about as long as its grid: they count as much. The phase is named, since the
 * number of borders shows only as they are found. */
void work_show(struct work *work, const char *phase, int64_t m)
{
    struct full *full = work->full;
    char what[FP8R_TEXT_BYTES + 16];
    double spent = (double)(fp8r_clock_ns() - full->start_ns) / 1e9;
    double share = ((double)full->finished + (double)work->grid_done / 2) / (double)full->problems;
    if (full->share_found < 0)
        full->share_found = share;
    double made = share - full->share_found;
    snprintf(what, sizeof what, "%s: %s", phase, work->family->text);
    double left = made > 0.02 ? spent * (1 - share) / made : 0;
    if (full->budget_seconds > 0) left = fmin(left, fmax(full->budget_seconds - spent, 0));
    struct fp8r_progress progress = {what, m, share, left};
    full->progress(full->user, &progress);
}
