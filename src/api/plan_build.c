/* Building plans. A plan walks M from 1 to the planned one, a decision at a time, and prepares each; what fails to prepare
 * is reported once, left out, and decided anew.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plan.h"
#include "backend/row.h"
#include "base/reason.h"
#include "base/sizes.h"
#include "base/status.h"
#include "device/cuda.h"
#include "problem/grammar.h"

/* What is being built, and by whose choice. */
struct building {
    struct fp8r_plan *plan;
    int row, config; /* row -1: routed */
    bool is_capturing;
    uint64_t excluded; /* rows that failed to prepare */
};

static fp8r_status grow(struct fp8r_plan *plan)
{
    if (plan->count < plan->capacity)
        return FP8R_OK;
    int capacity = plan->capacity ? 2 * plan->capacity : 8;
    struct fp8r_plan_segment *segments = realloc(plan->segments, (size_t)capacity * sizeof *segments);
    if (!segments)
        return fp8r_fail_memory("the plan's segments");
    plan->segments = segments;
    plan->capacity = capacity;
    return FP8R_OK;
}

/* The problem as a segment's backend is asked about it: with the most rows that it will run there. */
static fp8r_problem widest(const struct fp8r_plan *plan, const struct fp8r_plan_segment *segment)
{
    fp8r_problem problem = plan->problem;
    problem.m = segment->m_last;
    return problem;
}

static fp8r_status prepare(struct fp8r_plan *plan, struct fp8r_plan_segment *segment)
{
    struct fp8r_context *context = plan->context;
    const struct fp8r_row *row = &context->registry.rows[segment->row];
    fp8r_problem problem = widest(plan, segment);
    snprintf(segment->label, sizeof segment->label, "%.63s:%.63s", row->backend.name,
             row->backend.configs[segment->config]);
    if (segment->is_refused)
        return FP8R_OK;
    FP8R_TRY(fp8r_row_told(row, "prepare", fp8r_row_prepare(row, &context->services, &context->device, &problem,
                                                            segment->config, &segment->state)));
    segment->is_prepared = true;
    size_t bytes = fp8r_row_workspace(row, &context->device, &problem, segment->config);
    segment->uses_workspace = bytes > 0;
    plan->workspace_bytes = bytes > plan->workspace_bytes ? bytes : plan->workspace_bytes;
    return FP8R_OK;
}

static void report_failure(struct fp8r_context *context, int row, fp8r_status status)
{
    uint64_t bit = (uint64_t)1 << row;
    if (!(atomic_fetch_or(&context->reported, bit) & bit))
        fp8r_log_line(&context->log, FP8R_LOG_WARNING, "backend %s failed to prepare (%s), the next one is taken: %s",
                      context->registry.rows[row].backend.name, fp8r_status_name(status), fp8r_last_error());
}

static fp8r_status undecided(const struct building *it, const struct fp8r_candidates *candidates,
                             const struct fp8r_decision *decision)
{
    const struct fp8r_registry *registry = &it->plan->context->registry;
    char names[256] = "";
    size_t used = 0;
    if (decision->source != FP8R_SOURCE_AMBIGUOUS && it->is_capturing)
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED,
                         "stream is capturing, and no backend runs this product without workspace of its own: use a plan "
                         "and give fp8r_plan_run the workspace");
    if (decision->source != FP8R_SOURCE_AMBIGUOUS)
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED,
                         "no backend can run this product on this device: fp8r_explain gives each one's reason");
    for (int i = 0; i < registry->count && used < sizeof names; i++)
        if (candidates->rows[i].is_eligible && strcmp(registry->rows[i].backend.name, "reference") != 0)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     registry->rows[i].backend.name);
    return fp8r_fail(FP8R_ERROR_AMBIGUOUS, "only measured routes may decide, there is none for this product, and several "
                                           "backends can run it: %s", names);
}

static void warn_forced(struct fp8r_context *context, const struct fp8r_decision *decision)
{
    char sentence[192];
    if (!decision->forced_refused || atomic_exchange(&context->forced_reported, true))
        return;
    fp8r_reason_sentence(&decision->refusal, sentence, sizeof sentence);
    fp8r_log_line(&context->log, FP8R_LOG_WARNING, "FP8ROUTE_BACKEND=%s %s: such products are dispatched as usual",
                  context->environment.backend, sentence);
}

/* The decision for rows m and up. */
static fp8r_status decide(const struct building *it, int64_t m, struct fp8r_plan_segment *segment)
{
    struct fp8r_context *context = it->plan->context;
    struct fp8r_candidates candidates;
    struct fp8r_decision decision;
    fp8r_problem problem = it->plan->problem;
    problem.m = m;
    fp8r_decide(&context->router, &problem, it->excluded, it->is_capturing, &candidates, &decision);
    warn_forced(context, &decision);
    if (decision.row < 0)
        return undecided(it, &candidates, &decision);
    *segment = (struct fp8r_plan_segment){.m_first = m,
                                          .m_last = fp8r_size_min(decision.m_last, it->plan->problem.m),
                                          .row = decision.row,
                                          .config = decision.config,
                                          .source = decision.source};
    return FP8R_OK;
}

static bool obeys(const struct building *it, int64_t m, fp8r_reason *reason)
{
    const struct fp8r_context *context = it->plan->context;
    fp8r_problem problem = it->plan->problem;
    problem.m = m;
    return fp8r_row_eligible(&context->registry, &context->device, &problem, it->row, it->config, reason);
}

/* The same with the caller's own choice. Where that refuses fewer rows than the planned ones, so will a run with them. */
static fp8r_status obey(const struct building *it, int64_t m, struct fp8r_plan_segment *segment)
{
    const struct fp8r_context *context = it->plan->context;
    const struct fp8r_row *row = &context->registry.rows[it->row];
    fp8r_problem problem = it->plan->problem;
    problem.m = m;
    *segment = (struct fp8r_plan_segment){
        .m_first = m,
        .m_last = fp8r_size_min(fp8r_row_horizon(row, &context->device, &problem), it->plan->problem.m),
        .row = it->row,
        .config = it->config,
        .source = FP8R_SOURCE_FORCED};
    segment->is_refused = !obeys(it, m, &segment->refusal);
    if (segment->is_refused)
        segment->config = it->config == FP8R_CONFIG_ANY ? 0 : it->config;
    else if (it->config == FP8R_CONFIG_ANY)
        segment->config = fp8r_row_pick(row, &context->device, &problem);
    return FP8R_OK;
}

/* Adds the segment, or lets the last one reach further where it is the same backend and configuration. */
static fp8r_status append(struct fp8r_plan *plan, const struct fp8r_plan_segment *segment)
{
    struct fp8r_plan_segment *last = plan->count > 0 ? &plan->segments[plan->count - 1] : NULL;
    if (last && last->row == segment->row && last->config == segment->config &&
        last->is_refused == segment->is_refused) {
        last->m_last = segment->m_last;
        return FP8R_OK;
    }
    FP8R_TRY(grow(plan));
    plan->segments[plan->count++] = *segment;
    return FP8R_OK;
}

/* A named backend must take the planned rows themselves. */
static fp8r_status check_named(const struct building *it)
{
    fp8r_reason reason;
    if (it->row < 0 || obeys(it, it->plan->problem.m, &reason))
        return FP8R_OK;
    return fp8r_row_refused(&it->plan->context->registry.rows[it->row], it->config, &reason);
}

static fp8r_status lay_out(const struct building *it)
{
    struct fp8r_plan *plan = it->plan;
    plan->count = 0;
    FP8R_TRY(check_named(it));
    for (int64_t m = 1; m <= plan->problem.m;) {
        struct fp8r_plan_segment segment;
        FP8R_TRY(it->row < 0 ? decide(it, m, &segment) : obey(it, m, &segment));
        FP8R_TRY(append(plan, &segment));
        if (segment.m_last == INT64_MAX)
            break;
        m = fp8r_size_max(segment.m_last, m) + 1;
    }
    return FP8R_OK;
}

/* Prepares every segment; *failed is the row that did not. */
static fp8r_status prepare_all(struct fp8r_plan *plan, int *failed)
{
    plan->workspace_bytes = 0;
    for (int i = 0; i < plan->count; i++) {
        fp8r_status status = prepare(plan, &plan->segments[i]);
        if (status == FP8R_OK)
            continue;
        *failed = plan->segments[i].row;
        plan->count = i;
        fp8r_plan_unprepare(plan);
        return status;
    }
    return FP8R_OK;
}

static fp8r_status fill_in(struct building *it)
{
    for (;;) {
        int failed = -1;
        fp8r_status status = lay_out(it);
        if (status != FP8R_OK) {
            it->plan->count = 0;
            return status;
        }
        status = prepare_all(it->plan, &failed);
        if (status == FP8R_OK || it->row >= 0)
            return status;
        report_failure(it->plan->context, failed, status);
        it->excluded |= (uint64_t)1 << failed;
    }
}

static void announce(const struct fp8r_plan *plan)
{
    const struct fp8r_log *log = &plan->context->log;
    char text[FP8R_TEXT_BYTES];
    if ((log->verbose == 0 && !log->callback) || fp8r_problem_format(&plan->problem, text, sizeof text) != FP8R_OK)
        return;
    for (int i = 0; i < plan->count; i++)
        fp8r_log_line(log, FP8R_LOG_INFO, "%s: M=%lld..%lld -> %s (%s)", text, (long long)plan->segments[i].m_first,
                      (long long)plan->segments[i].m_last, plan->segments[i].label,
                      plan->segments[i].is_refused ? "refused" : fp8r_source_name(plan->segments[i].source));
}

fp8r_status fp8r_plan_build(struct fp8r_context *context, const fp8r_problem *problem, int row, int config,
                            bool is_capturing, struct fp8r_plan **result)
{
    struct fp8r_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return fp8r_fail_memory("a plan");
    plan->context = context;
    plan->problem = *problem;
    struct building building = {.plan = plan, .row = row, .config = config, .is_capturing = is_capturing};
    bool multiplies = !fp8r_problem_is_empty(problem) && problem->k > 0;
    int mode = 0; /* what preparing asks of a GPU touches no stream that may be capturing */
    if (context->cuda)
        fp8r_cuda_capture_relax(&mode);
    fp8r_status status = multiplies ? fill_in(&building) : FP8R_OK;
    if (context->cuda)
        fp8r_cuda_capture_relax(&mode);
    if (status != FP8R_OK) {
        fp8r_plan_destroy(plan);
        return status;
    }
    announce(plan);
    *result = plan;
    return FP8R_OK;
}
