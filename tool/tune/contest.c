/* Planning, verifying and entering racers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/contest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "measure/judge.h"
#include "tool_status.h"

enum { SURE_ROUNDS = 3 };

static fp8r_status call_plan(void *arg, const fp8r_pointers *pointers, void *stream)
{
    const struct fp8r_racer *racer = arg;
    return fp8r_plan_run(racer->plan, pointers, racer->workspace, fp8r_plan_workspace(racer->plan), stream);
}

/* A refusal is an answer; running out of memory or a failing device is not. */
static int plan_racer(struct fp8r_contest *contest, fp8r_context *context, const struct fp8r_entrant *entrant,
                      const fp8r_matmul *member, int index, bool is_wanted, struct fp8r_tool_error *error)
{
    struct fp8r_racer *racer = &contest->racers[index];
    fp8r_sampler_add(&contest->sampler, call_plan, racer);
    contest->sampler.contestants[index].is_out = true;
    if (!is_wanted) return FP8R_EXIT_GOOD;
    fp8r_status status = fp8r_plan_create(context, member, entrant->label, &racer->plan);
    if (status == FP8R_ERROR_UNSUPPORTED) {
        snprintf(racer->why, sizeof racer->why, "%s", fp8r_last_error());
        return FP8R_EXIT_GOOD;
    }
    if (status != FP8R_OK) return fp8r_tool_status(error, status);
    size_t bytes = fp8r_plan_workspace(racer->plan);
    if (bytes > 0) racer->workspace = contest->device->allocate(contest->device->user, bytes);
    if (bytes > 0 && !racer->workspace) return fp8r_tool_error_memory(error, "a workspace on the device");
    racer->standing = FP8R_STANDING_READY;
    return FP8R_EXIT_GOOD;
}

/* The member's strides over the operands of the largest one. */
static void set_data(struct fp8r_contest *contest, const fp8r_matmul *member)
{
    contest->member = *member;
    contest->member.a.data = contest->inputs->matmul.a.data;
    contest->member.b.data = contest->inputs->matmul.b.data;
    contest->member.out.data = contest->inputs->matmul.out.data;
    contest->member.scale_a.data = contest->inputs->matmul.scale_a.data;
    contest->member.scale_b.data = contest->inputs->matmul.scale_b.data;
    contest->member.bias.data = contest->inputs->matmul.bias.data;
}

static bool is_asked(const char *const *only, const char *label)
{
    while (only && *only && strcmp(label, *only) != 0)
        only++;
    return !only || *only;
}

int fp8r_contest_open(struct fp8r_contest *contest, fp8r_context *context, const struct fp8r_points *entrants,
                      const char *const *only, const fp8r_matmul *member, const struct fp8r_measure_device *device,
                      struct fp8r_rotation *rotation, struct fp8r_inputs *inputs, uint64_t seed,
                      struct fp8r_tool_error *error)
{
    *contest = (struct fp8r_contest){
        .context = context, .device = device, .rotation = rotation, .inputs = inputs, .count = entrants->entrant_count};
    set_data(contest, member);
    if (device->records) fp8r_rotation_narrow(rotation, member);
    contest->racers = calloc((size_t)contest->count, sizeof *contest->racers);
    int code = contest->racers ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the racers");
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_sampler_init(&contest->sampler, device, rotation, member->a.rows, contest->count, seed,
                                 error);
    for (int i = 0; code == FP8R_EXIT_GOOD && i < contest->count; i++)
        code = plan_racer(contest, context, &entrants->entrants[i], member, i, is_asked(only, entrants->entrants[i].label),
                          error);
    if (code != FP8R_EXIT_GOOD) fp8r_contest_close(contest);
    return code;
}

void fp8r_contest_close(struct fp8r_contest *contest)
{
    fp8r_sampler_fini(&contest->sampler);
    for (int i = 0; contest->racers && i < contest->count; i++) {
        fp8r_plan_destroy(contest->racers[i].plan);
        contest->device->release(contest->device->user, contest->racers[i].workspace);
    }
    fp8r_verifier_destroy(contest->verifier);
    fp8r_yardstick_destroy(contest->yardstick);
    free(contest->racers);
    *contest = (struct fp8r_contest){0};
}

void fp8r_contest_drop(struct fp8r_contest *contest, int racer, enum fp8r_standing standing,
                       const char *format, ...)
{
    va_list arguments;
    contest->racers[racer].standing = standing;
    contest->sampler.contestants[racer].is_out = true;
    va_start(arguments, format);
    vsnprintf(contest->racers[racer].why, sizeof contest->racers[racer].why, format, arguments);
    va_end(arguments);
}

double fp8r_contest_least_us(const struct fp8r_contest *contest, int racer)
{
    const struct fp8r_sampler *sampler = &contest->sampler;
    const double first_us = contest->racers[racer].first_us, warm_us = sampler->contestants[racer].warm_us;
    double least = fmin(first_us > 0 ? first_us : INFINITY, warm_us > 0 ? warm_us : INFINITY);
    for (size_t i = 0; i < sampler->sample_count; i++)
        if (sampler->samples[i].contestant == racer) least = fmin(least, sampler->samples[i].us);
    return least;
}

double fp8r_contest_best_us(const struct fp8r_contest *contest)
{
    double best_us = INFINITY;
    for (int i = 0; i < contest->count; i++)
        if (contest->racers[i].standing == FP8R_STANDING_RACING) best_us = fmin(best_us, fp8r_contest_least_us(contest, i));
    return best_us;
}

double fp8r_contest_behind(const struct fp8r_contest *contest, int racer, double best_us, double factor)
{
    double own_us = fp8r_contest_least_us(contest, racer);
    double distance = (factor - 1) * (contest->sampler.rounds < SURE_ROUNDS ? 2 : 1);
    return own_us > (1 + distance) * best_us ? own_us / best_us : 0;
}

/* One call on given operands, for the device's own way of timing. */
struct single {
    const struct fp8r_racer *racer;
    fp8r_pointers pointers;
};

static fp8r_status call_single(void *arg, void *stream)
{
    struct single *single = arg;
    return fp8r_plan_run(single->racer->plan, &single->pointers, single->racer->workspace,
                         fp8r_plan_workspace(single->racer->plan), stream);
}

static fp8r_status time_single(struct fp8r_contest *contest, struct fp8r_racer *racer, const fp8r_pointers *pointers)
{
    const struct fp8r_measure_device *device = contest->device;
    struct single single = {.racer = racer, .pointers = *pointers};
    struct fp8r_recording *recording = NULL;
    int64_t elapsed_ns = 0;
    fp8r_status status = device->record(device->user, 1, call_single, &single, &recording);
    if (status == FP8R_OK) status = device->time(device->user, recording, &elapsed_ns);
    if (recording) device->forget(device->user, recording);
    racer->first_us = (double)elapsed_ns / 1e3;
    contest->sampler.timed_ns += elapsed_ns;
    return status;
}

/* Poison goes in, the call is timed, the result comes out into the host's operand. */
static fp8r_status call_once(struct fp8r_contest *contest, struct fp8r_racer *racer, size_t out_bytes)
{
    const struct fp8r_measure_device *device = contest->device;
    fp8r_pointers pointers;
    fp8r_rotation_next(contest->rotation, contest->member.a.rows, &pointers);
    memset(contest->member.out.data, FP8R_POISON, out_bytes);
    FP8R_TRY(device->copy_in(device->user, pointers.out, contest->member.out.data, out_bytes));
    FP8R_TRY(time_single(contest, racer, &pointers));
    return device->copy_out(device->user, contest->member.out.data, pointers.out, out_bytes);
}

/* Bytes that the member's result spans. */
static int span_out(const struct fp8r_contest *contest, size_t *bytes, struct fp8r_tool_error *error)
{
    int64_t span = 0;
    if (!fp8r_matrix_span_bytes(&contest->member.out, &span))
        return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "out spans more bytes than 63 bits count");
    *bytes = (size_t)span;
    return FP8R_EXIT_GOOD;
}

int fp8r_contest_run(struct fp8r_contest *contest, int index, struct fp8r_tool_error *error)
{
    size_t bytes = 0;
    int code = span_out(contest, &bytes, error);
    return code == FP8R_EXIT_GOOD ? fp8r_tool_status(error, call_once(contest, &contest->racers[index], bytes)) : code;
}

static bool is_hopeless(const struct fp8r_contest *contest, const struct fp8r_racer *racer)
{
    return contest->hopeless_us > 0 && racer->first_us > contest->hopeless_us;
}

/* Poison, the timed call and the comparison, all on the device. */
static int judge_there(struct fp8r_contest *contest, int index, struct fp8r_verdict *verdict,
                       struct fp8r_tool_error *error)
{
    const struct fp8r_measure_device *device = contest->device;
    struct fp8r_racer *racer = &contest->racers[index];
    fp8r_pointers pointers;
    size_t bytes = 0;
    int code = span_out(contest, &bytes, error);
    if (code != FP8R_EXIT_GOOD) return code;
    fp8r_rotation_next(contest->rotation, contest->member.a.rows, &pointers);
    fp8r_status status = device->judge->fill(device->user, pointers.out, FP8R_POISON, bytes);
    if (status == FP8R_OK) status = time_single(contest, racer, &pointers);
    /* The first call may have loaded its kernel: who is slow once has another go. */
    const double once_us = racer->first_us;
    if (status == FP8R_OK && is_hopeless(contest, racer)) {
        status = time_single(contest, racer, &pointers);
        racer->first_us = fmin(racer->first_us, once_us);
    }
    code = fp8r_tool_status(error, status);
    if (code != FP8R_EXIT_GOOD) return code;
    if (is_hopeless(contest, racer)) {
        racer->standing = FP8R_STANDING_BEHIND;
        verdict->is_good = true; /* as far as anybody will care */
        return FP8R_EXIT_GOOD;
    }
    return fp8r_yardstick_judge(contest->yardstick, pointers.out, verdict, error);
}

static int judge_here(struct fp8r_contest *contest, int index, const struct fp8r_verify_options *options,
                      struct fp8r_verdict *verdict, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (!contest->verifier) code = fp8r_verifier_create(&contest->member, options, &contest->verifier, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_contest_run(contest, index, error);
    if (code == FP8R_EXIT_GOOD) fp8r_verify(contest->verifier, contest->member.out.data, verdict);
    return code;
}

static int find_yardstick(struct fp8r_contest *contest, const struct fp8r_verify_options *options,
                          struct fp8r_tool_error *error)
{
    fp8r_pointers pointers;
    if (contest->has_looked || !contest->device->judge) return FP8R_EXIT_GOOD;
    contest->has_looked = true;
    fp8r_rotation_next(contest->rotation, contest->member.a.rows, &pointers);
    return fp8r_yardstick_create(contest->context, contest->device, &contest->member, &pointers, options,
                                 &contest->yardstick, error);
}

int fp8r_contest_verify(struct fp8r_contest *contest, int index, const struct fp8r_verify_options *options,
                        struct fp8r_tool_error *error)
{
    struct fp8r_verdict verdict = {0};
    int code = find_yardstick(contest, options, error);
    if (code == FP8R_EXIT_GOOD)
        code = contest->yardstick ? judge_there(contest, index, &verdict, error)
                                  : judge_here(contest, index, options, &verdict, error);
    if (code == FP8R_EXIT_GOOD && !verdict.is_good)
        fp8r_contest_drop(contest, index, FP8R_STANDING_WRONG, "%s", verdict.text);
    return code;
}

int fp8r_contest_enter(struct fp8r_contest *contest, int racer, double enough_us,
                       struct fp8r_tool_error *error)
{
    int code = fp8r_sampler_warm(&contest->sampler, racer, enough_us, error);
    if (code != FP8R_EXIT_GOOD) return code;
    contest->racers[racer].standing = FP8R_STANDING_RACING;
    contest->sampler.contestants[racer].is_out = false;
    return FP8R_EXIT_GOOD;
}
