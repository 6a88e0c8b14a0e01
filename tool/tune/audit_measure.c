/* A grid's few rounds with everybody, then pairs of the pick and its strongest rival.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/audit_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/clock.h"
#include "tool_status.h"
#include "tune/entrants.h"
#include "tune/recorded_race.h"

enum {
    FIRST_ROUNDS = 9, /* with everybody: enough to see a pick that is surely ahead */
    PAIR_ROUNDS = 21, /* then the first look is reached */
    PAIR_ROUNDS_MOST = 120,
    STRONGER_RIVALS = 4 /* so often another one may turn out to be the strongest */
};

static const double behind_factor = 3, cache_factor = 4;

/* As in a tune of a device that replays recordings. */
static const double recorded_behind_factor = 2, sibling_factor = 1.1;

/* ---- Labels ---- */

static int resolve_label(fp8r_context *context, const fp8r_matmul *matmul, int64_t m,
                         char label[FP8R_LABEL_BYTES], char *refusal, size_t size,
                         struct fp8r_tool_error *error)
{
    fp8r_plan *plan = NULL;
    fp8r_status status = fp8r_plan_create(context, matmul, label, &plan);
    if (status == FP8R_ERROR_UNSUPPORTED) {
        snprintf(refusal, size, "%s", fp8r_last_error());
        return FP8R_EXIT_GOOD;
    }
    if (status != FP8R_OK) return fp8r_tool_status(error, status);
    const char *whole = fp8r_plan_backend(plan, m);
    if (whole) snprintf(label, FP8R_LABEL_BYTES, "%s", whole);
    fp8r_plan_destroy(plan);
    return FP8R_EXIT_GOOD;
}

int fp8r_audit_resolve(fp8r_context *context, struct fp8r_audit_question *question,
                       struct fp8r_tool_error *error)
{
    fp8r_matmul member;
    char ignored[sizeof question->refusal];
    int code = fp8r_tool_status(error, fp8r_family_member(question->family, question->m, &member));
    if (code == FP8R_EXIT_GOOD)
        code = resolve_label(context, &member, question->m, question->pick, question->refusal,
                             sizeof question->refusal, error);
    if (code == FP8R_EXIT_GOOD && question->rival[0])
        code = resolve_label(context, &member, question->m, question->rival, ignored, sizeof ignored, error);
    return code;
}

/* ---- One problem ---- */

/* A family under way. */
struct work {
    struct fp8r_audit_live *live;
    struct fp8r_points entrants;
    struct fp8r_inputs inputs;
    struct fp8r_rotation rotation;
    struct race_track track;
};

/* What a race asks after each round. */
struct settling {
    const struct fp8r_audit_rules *rules;
    const struct fp8r_audit_question *question;
    const char *other;
};

/* Settled, or another rival has become the strongest. */
static bool is_enough(void *arg, const struct sample_case *it)
{
    const struct settling *settling = arg;
    struct fp8r_audit_result result;
    struct fp8r_tool_error ignored;
    return fp8r_audit_judge(settling->rules, settling->question, it, &result, &ignored) == FP8R_EXIT_GOOD &&
           (result.is_settled || strcmp(result.other, settling->other) != 0);
}

static int judge(const struct work *work, const struct fp8r_audit_question *question,
                 struct fp8r_audit_result *result, struct fp8r_tool_error *error)
{
    const struct record *record = work->live->record;
    return fp8r_audit_judge(&work->live->rules, question,
                            samples_find(&record->samples, record->machine, question->problem), result,
                            error);
}

static int race(struct work *work, const struct fp8r_audit_question *question, const char *other,
                struct fp8r_tool_error *error)
{
    struct fp8r_audit_live *live = work->live;
    struct settling settling = {&live->rules, question, other};
    const char *const pair[] = {question->pick, other ? other : question->rival, NULL};
    fp8r_matmul member;
    size_t index;
    struct race_rules rules = {.phase = SAMPLE_AUDIT,
                               .seed = live->seed + (uint64_t)question->m + (other ? 7919u : 0u),
                               .only = other || question->rival[0] ? pair : NULL,
                               .keep = question->pick,
                               .rounds_least = other ? PAIR_ROUNDS : FIRST_ROUNDS,
                               .rounds_most = other ? PAIR_ROUNDS_MOST : FIRST_ROUNDS,
                               .budget_us = INFINITY,
                               .behind_factor = other ? 0 : live->device->records ? recorded_behind_factor : behind_factor,
                               .sibling_factor = live->device->records ? sibling_factor : 0,
                               .is_enough = other ? is_enough : NULL,
                               .arg = &settling};
    int code = fp8r_tool_status(error, fp8r_family_member(question->family, question->m, &member));
    if (code == FP8R_EXIT_GOOD)
        code = race_run(&work->track, &rules, question->problem, &member, &index, error);
    return code == FP8R_EXIT_FAILED ? FP8R_EXIT_GOOD : code; /* who is wrong is in the record */
}

static bool is_known(const struct fp8r_audit_result *result)
{
    return result->is_settled && !result->is_partial;
}

static int measure_problem(struct work *work, const struct fp8r_audit_question *question,
                           struct fp8r_tool_error *error)
{
    struct fp8r_audit_result result;
    int code = judge(work, question, &result, error);
    for (int i = 0; i <= STRONGER_RIVALS && code == FP8R_EXIT_GOOD && !is_known(&result); i++) {
        bool is_first = result.verdict == FP8R_AUDIT_UNMEASURED || result.is_partial;
        code = race(work, question, is_first ? NULL : result.other, error);
        if (code == FP8R_EXIT_GOOD) code = judge(work, question, &result, error);
    }
    if (code == FP8R_EXIT_UNMEASURED) return FP8R_EXIT_GOOD; /* nobody can run it: the results say so */
    work->live->measured += code == FP8R_EXIT_GOOD;
    return code;
}

/* ---- Families ---- */

static bool is_over(const struct fp8r_audit_live *live, int64_t start_ns)
{
    return live->budget_seconds > 0 && (double)(fp8r_clock_ns() - start_ns) / 1e9 > live->budget_seconds;
}

static int open_family(struct work *work, const struct fp8r_audit_question *largest,
                       struct fp8r_tool_error *error)
{
    struct fp8r_audit_live *live = work->live;
    fp8r_matmul member;
    int code = fp8r_tool_status(error, fp8r_family_member(largest->family, largest->m, &member));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_inputs_create(&member, live->seed, fp8r_inputs_guard(live->device->is_remote), &work->inputs, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_rotation_load(&work->rotation, live->device, &work->inputs,
                                  live->is_warm ? 0 : cache_factor, error);
    if (code == FP8R_EXIT_GOOD && !live->is_warm && !fp8r_rotation_is_cold(&work->rotation, cache_factor))
        live->note(live->user,
                   "memory is too short to rotate the operands out of the caches: times are of operands "
                   "that are partly warm");
    return code;
}

static void show(const struct fp8r_audit_live *live, const struct fp8r_audit_question *question, double share,
                 int64_t start_ns)
{
    double spent = (double)(fp8r_clock_ns() - start_ns) / 1e9;
    struct fp8r_progress progress = {question->family, question->m, share,
                                     share > 0.02 ? spent / share - spent : 0};
    live->progress(live->user, &progress);
}

/* Questions first..end of one family: those that are not settled, on operands of the largest of them. */
static int measure_family(struct work *work, const struct fp8r_audit_questions *questions, size_t first,
                          size_t end, int64_t start_ns, struct fp8r_tool_error *error)
{
    const struct fp8r_audit_question *largest = NULL;
    struct fp8r_audit_result result;
    int code = FP8R_EXIT_GOOD;
    for (size_t i = first; i < end && code == FP8R_EXIT_GOOD; i++) {
        code = judge(work, &questions->items[i], &result, error);
        if (code == FP8R_EXIT_GOOD && !is_known(&result) && (!largest || questions->items[i].m > largest->m))
            largest = &questions->items[i];
    }
    if (code == FP8R_EXIT_GOOD && largest && !is_over(work->live, start_ns))
        code = open_family(work, largest, error);
    for (size_t i = first; i < end && code == FP8R_EXIT_GOOD && largest; i++) {
        code = judge(work, &questions->items[i], &result, error);
        if (code != FP8R_EXIT_GOOD || is_known(&result)) continue;
        if (!work->inputs.matmul.a.rows || is_over(work->live, start_ns)) {
            work->live->left++;
            continue;
        }
        show(work->live, &questions->items[i], (double)i / (double)questions->count, start_ns);
        code = measure_problem(work, &questions->items[i], error);
    }
    fp8r_inputs_destroy(&work->inputs);
    return code;
}

int fp8r_audit_measure(struct fp8r_audit_live *live, const struct fp8r_audit_questions *questions,
                       struct fp8r_tool_error *error)
{
    struct work work = {.live = live};
    int64_t start_ns = fp8r_clock_ns();
    int code =
        fp8r_entrants_list(live->context, &work.entrants.entrants, &work.entrants.entrant_count, error);
    work.track = (struct race_track){.context = live->context,
                                     .device = live->device,
                                     .rotation = &work.rotation,
                                     .inputs = &work.inputs,
                                     .entrants = &work.entrants,
                                     .record = live->record,
                                     .note = live->note,
                                     .user = live->user};
    for (size_t first = 0, end; first < questions->count && code == FP8R_EXIT_GOOD; first = end) {
        for (end = first + 1; end < questions->count &&
                              strcmp(questions->items[first].family, questions->items[end].family) == 0;)
            end++;
        code = measure_family(&work, questions, first, end, start_ns, error);
    }
    fp8r_rotation_fini(&work.rotation);
    fp8r_points_fini(&work.entrants);
    return code;
}
