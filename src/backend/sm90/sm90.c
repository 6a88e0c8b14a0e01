/* The Hopper kernels as a row of the list. Answers are the same for all M of a bracket (see bracket_end), so
 * that a plan has few segments and the model is asked a few dozen times a plan. SPDX-License-Identifier:
 * Apache-2.0 */
#include "backend/sm90/sm90.h"

#include <stdlib.h>

#include "backend/sm90/load.h"
#include "backend/sm90/shapes.h"
#include "base/status.h"
#include "problem/quantising.h"

static const char *const config_names[] = {
#define SKINNY(segments, blocks, cut, room)                         "skinny_k" #segments "_b" #blocks "_c" #cut #room
#define WIDE(name, groups, tiles, columns, split, share_m, share_n) "wide_" name
#define ALTERNATING(name, tiles, columns, share_m, share_n)         "wide_" name
#define SWAPPED(groups, tokens, columns)                            "wide_t" #tokens "x" #columns
#define PACKED(name, groups, columns, split)                        "wide_" name
#define SHIFTED(name, groups, tokens, split)                        "wide_" name
#include "backend/sm90/configs.inc"
#undef SKINNY
#undef WIDE
#undef ALTERNATING
#undef SWAPPED
#undef PACKED
#undef SHIFTED
    NULL};

/* The last M that is asked about together with m: steps of 8 and 16 inside a skinny kernel's width, then of
 * 64, the lowest tiles' height, that double with M from 8192 on. The first eight rows beyond a multiple of 64
 * are a step of their own: there are kernels so much wider. The model's own error is larger than what is lost
 * inside a step. */
static int64_t bracket_end(int64_t m)
{
    if (m > INT32_MAX) return m; /* which nothing takes */
    const int64_t first = (m - 1) / 64 * 64 + 8;
    if (m <= 1024 && m <= first) return first;
    int64_t step = m <= 32 ? 8 : m <= 256 ? 16 : 64;
    while (step < (m + 127) / 128 && m > 1024)
        step *= 2;
    return (m + step - 1) / step * step;
}

static bool probe(void *user, const fp8r_device_facts *device, fp8r_reason *reason)
{
    (void)user, (void)device;
    return fp8r_sm90_load(reason);
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    (void)user;
    return fp8r_sm90_supports(device, problem, config, reason);
}

static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int config)
{
    (void)user;
    return fp8r_sm90_class(device, problem, config);
}

/* The problem with the most rows of its bracket; as it is where that is too many for any configuration. */
static int pick_at(const fp8r_device_facts *device, const fp8r_problem *problem, int64_t *end)
{
    fp8r_problem widest = *problem;
    widest.m = *end = bracket_end(problem->m);
    int config = fp8r_sm90_pick(device, &widest);
    if (config >= 0) return config;
    *end = problem->m;
    return fp8r_sm90_pick(device, problem);
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    int64_t end;
    (void)user;
    return pick_at(device, problem, &end);
}

/* At the end of the bracket, like the pick. */
static double expect(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    fp8r_problem widest = *problem;
    fp8r_reason ignored;
    (void)user;
    widest.m = bracket_end(problem->m);
    if (!fp8r_sm90_supports(device, &widest, config, &ignored)) widest.m = problem->m;
    return fp8r_sm90_expected_us(device, &widest, config);
}

/* Grids end somewhere, for large batches inside a bracket. */
static bool same_support(const fp8r_device_facts *device, const fp8r_problem *problem, int64_t end)
{
    fp8r_problem widest = *problem;
    fp8r_reason ignored;
    widest.m = end;
    for (int i = 0; i < fp8r_sm90_config_count; ++i)
        if (fp8r_sm90_supports(device, problem, i, &ignored) !=
            fp8r_sm90_supports(device, &widest, i, &ignored))
            return false;
    return true;
}

/* What nothing takes at the end of a bracket is not taken further on either. */
static int64_t horizon(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    int64_t end;
    (void)user;
    if (pick_at(device, problem, &end) < 0) return INT64_MAX;
    return problem->batch == 1 || same_support(device, problem, end) ? end : problem->m;
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user, (void)device;
    return fp8r_sm90_workspace(problem, config);
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **state)
{
    (void)user;
    struct fp8r_sm90_plan *plan = fp8r_sm90_plan_new(FP8R_SM90_SHAPES_MAX);
    if (!plan) return fp8r_fail_memory("a prepared sm90 kernel");
    fp8r_status status = fp8r_sm90_prepare(device, problem, config, plan);
    if (status != FP8R_OK) {
        free(plan);
        return status;
    }
    if (services && services->flags & FP8R_LAUNCH_PLAIN) plan->dependent_launch = false;
    *state = fp8r_sm90_plan_shorten(plan);
    return FP8R_OK;
}

static void destroy(void *user, void *state)
{
    (void)user;
    free(state);
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state,
                       const fp8r_problem *problem, int config, const fp8r_pointers *pointers,
                       void *memory, size_t workspace_bytes, void *stream)
{
    const size_t needed = fp8r_sm90_workspace(problem, config);
    (void)user, (void)services;
    if (workspace_bytes < needed)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace has %zu bytes: a copy of a needs %zu", workspace_bytes,
                         needed);
    return fp8r_sm90_launch(state, problem, pointers, memory, stream);
}

static void prepare_halves(void *state, const fp8r_device_facts *device, const fp8r_operand *a)
{
    fp8r_sm90_prepare_halves(device, a, state);
}

static bool takes_halves(const void *state, const fp8r_problem *problem, const fp8r_operand *a, const void *data)
{
    return fp8r_sm90_takes_halves(state, problem, a, data);
}

static fp8r_status run_halves(const void *state, const fp8r_problem *problem, const fp8r_operand *a,
                              const fp8r_pointers *pointers, void *stream)
{
    return fp8r_sm90_launch_halves(state, problem, a, pointers, stream);
}

static struct fp8r_quantising quantising = {prepare_halves, takes_halves, run_halves};

const fp8r_backend fp8r_backend_sm90 = {
    .user = &quantising,
    .configs = config_names,
    .probe = probe,
    .supports = supports,
    .numerics = numerics,
    .pick = pick,
    .horizon = horizon,
    .workspace = workspace,
    .prepare = prepare,
    .run = run,
    .destroy = destroy,
    .expect = expect,
};
