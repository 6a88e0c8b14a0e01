/* Confirmation: those who lead a problem's grid are held against the default, in one race of their own.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "measure/sequential.h"
#include "tune/challengers.h"
#include "tune/full_work.h"
#include "tune/named.h"

enum { CONFIRM_PAIRS_MOST = 120, CONFIRM_STEP = 15, PAIRS_ROOM = CONFIRM_PAIRS_MOST * 4 };

struct confirmation {
    struct fp8r_sequential sequential;
    int base, challengers[CHALLENGERS_MOST], count;
    double base_us[PAIRS_ROOM], other_us[PAIRS_ROOM];
    struct fp8r_pair pairs[PAIRS_ROOM];
};

static int choose_challengers(struct work *work, const struct sample_case *it, struct confirmation *confirmation,
                              struct fp8r_tool_error *error)
{
    confirmation->base = it->fallback;
    confirmation->count = 0;
    if (it->is_noisy)
        return FP8R_EXIT_GOOD;
    double *medians_us = calloc((size_t)it->count + 1, sizeof *medians_us);
    if (!medians_us)
        return fp8r_tool_error_memory(error, "the challengers");
    for (int i = 0; i < it->count; i++) {
        const struct sample_candidate *candidate = &it->candidates[i];
        medians_us[i] = i != it->fallback && candidate->dropped[0] ? INFINITY : work_median(work, candidate);
    }
    confirmation->count =
        challengers_choose(medians_us, it->count, it->fallback, work->full->margin, confirmation->challengers);
    free(medians_us);
    return FP8R_EXIT_GOOD;
}

/* Enough pairs of the default and a challenger for a verdict? */
static bool is_decided(struct confirmation *confirmation, const struct sample_case *it, int challenger)
{
    struct fp8r_paired_result result;
    struct fp8r_tool_error ignored;
    size_t count = sample_pairs(&it->candidates[confirmation->base], &it->candidates[challenger], SAMPLE_CONFIRM,
                                confirmation->base_us, confirmation->other_us, PAIRS_ROOM);
    for (size_t i = 0; i < count; i++)
        confirmation->pairs[i] = (struct fp8r_pair){confirmation->base_us[i], confirmation->other_us[i]};
    return fp8r_sequential_decide(&confirmation->sequential, confirmation->pairs, count, &result, &ignored) ==
               FP8R_EXIT_GOOD &&
           result.verdict != FP8R_PAIRED_GO_ON;
}

/* Who turns out wrong meanwhile is, too; where the default does, nothing is left to ask. */
static bool is_settled(void *arg, const struct sample_case *it)
{
    struct confirmation *confirmation = arg;
    if (fp8r_candidate_is_wrong(&it->candidates[confirmation->base]))
        return true;
    for (int i = 0; i < confirmation->count; i++)
        if (!fp8r_candidate_is_wrong(&it->candidates[confirmation->challengers[i]]) &&
            !is_decided(confirmation, it, confirmation->challengers[i]))
            return false;
    return true;
}

/* The challengers against the default, until all verdicts are known. They share the error. */
static int race(struct work *work, const struct sample_case *it, struct confirmation *confirmation, struct fp8r_tool_error *error)
{
    const char *only[CHALLENGERS_MOST + 2] = {it->candidates[confirmation->base].name};
    for (int i = 0; i < confirmation->count; i++)
        only[i + 1] = it->candidates[confirmation->challengers[i]].name;
    fp8r_matmul member;
    char problem[FP8R_TEXT_BYTES];
    size_t index;
    struct race_rules rules = {.phase = SAMPLE_CONFIRM,
                               .seed = work->full->seed + (uint64_t)it->m + 7919u,
                               .only = only,
                               .rounds_least = CONFIRM_STEP,
                               .rounds_most = CONFIRM_PAIRS_MOST,
                               .budget_us = INFINITY,
                               .is_enough = is_settled,
                               .arg = confirmation};
    int code = work_member(work, it->m, &member, problem, error);
    return code == FP8R_EXIT_GOOD ? work_race(work, &rules, problem, &member, &index, error) : code;
}

static int confirm(struct work *work, const struct sample_case *it, struct fp8r_tool_error *error)
{
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_TUNE);
    struct confirmation confirmation;
    int code = choose_challengers(work, it, &confirmation, error);
    if (code != FP8R_EXIT_GOOD || confirmation.count == 0)
        return code;
    options.margin = work->full->margin;
    options.candidates = confirmation.count;
    code = fp8r_sequential_init(&confirmation.sequential, &options, error);
    return code != FP8R_EXIT_GOOD || is_settled(&confirmation, it) ? code : race(work, it, &confirmation, error);
}

int work_confirmations(struct work *work, struct fp8r_tool_error *error)
{
    size_t count = 0;
    int code = FP8R_EXIT_GOOD;
    size_t *cases = work_finished(work, &count);
    if (!cases)
        return fp8r_tool_error_memory(error, "the confirmations");
    for (size_t i = 0; i < count && code == FP8R_EXIT_GOOD && !work_is_over(work->full); i++) {
        int64_t m = work->full->record->samples.cases[cases[i]].m;
        if (!work_is_own_border(work, m))
            continue;
        work_show(work, "confirmation", m);
        code = confirm(work, &work->full->record->samples.cases[cases[i]], error);
    }
    free(cases);
    return code;
}
