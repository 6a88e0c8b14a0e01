/* Building and running plans. A plan walks M from 1 to the planned one, a decision at a time, and prepares each; what
 * fails to prepare is reported once, left out, and decided anew.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/grammar.h"

static void unprepare(struct fp8r_plan *plan, struct fp8r_plan_segment *segment)
{
    const fp8r_backend *backend = &plan->context->registry.rows[segment->row].backend;
    if (segment->is_prepared && backend->destroy)
        backend->destroy(backend->user, segment->state);
    segment->is_prepared = false;
}

void fp8r_plan_destroy(fp8r_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->count; i++)
        unprepare(plan, &plan->segments[i]);
    free(plan->segments);
    free(plan);
}

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

/* Our own rows say what failed; for an outside one, which only has a status, it is said here. */
static fp8r_status told(const struct fp8r_row *row, const char *what, fp8r_status status)
{
    if (status == FP8R_OK || !row->is_outside)
        return status;
    bool is_known = status > FP8R_OK && status <= FP8R_ERROR_FORMAT;
    return fp8r_fail(is_known ? status : FP8R_ERROR_DEVICE, "backend %s failed to %s and answered %s (%d)",
                     row->backend.name, what, fp8r_status_name(status), (int)status);
}

static fp8r_status prepare(struct fp8r_plan *plan, struct fp8r_plan_segment *segment)
{
    struct fp8r_context *context = plan->context;
    const struct fp8r_row *row = &context->registry.rows[segment->row];
    fp8r_problem problem = widest(plan, segment);
    if (row->backend.prepare)
        FP8R_TRY(told(row, "prepare",
                      row->backend.prepare(row->backend.user, &context->services, &context->device, &problem,
                                           segment->config, &segment->state)));
    segment->is_prepared = row->backend.prepare != NULL;
    size_t bytes = fp8r_row_workspace(row, &context->device, &problem, segment->config);
    plan->workspace_bytes = bytes > plan->workspace_bytes ? bytes : plan->workspace_bytes;
    snprintf(segment->label, sizeof segment->label, "%.63s:%.63s", row->backend.name,
             row->backend.configs[segment->config]);
    return FP8R_OK;
}

static void report_failure(struct fp8r_context *context, int row, fp8r_status status)
{
    uint64_t bit = (uint64_t)1 << row;
    if (!(atomic_fetch_or(&context->reported, bit) & bit))
        fp8r_log_line(&context->log, FP8R_LOG_WARNING, "backend %s failed to prepare (%s), the next one is taken: %s",
                      context->registry.rows[row].backend.name, fp8r_status_name(status), fp8r_last_error());
}

static fp8r_status undecided(const struct fp8r_plan *plan, const struct fp8r_candidates *candidates,
                             const struct fp8r_decision *decision)
{
    const struct fp8r_registry *registry = &plan->context->registry;
    char names[256] = "";
    size_t used = 0;
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

/* The decision for rows m and up. *excluded remembers what failed before. */
static fp8r_status decide(struct fp8r_plan *plan, int64_t m, uint64_t excluded, struct fp8r_plan_segment *segment)
{
    struct fp8r_candidates candidates;
    struct fp8r_decision decision;
    fp8r_problem problem = plan->problem;
    problem.m = m;
    fp8r_decide(&plan->context->router, &problem, excluded, &candidates, &decision);
    warn_forced(plan->context, &decision);
    if (decision.row < 0)
        return undecided(plan, &candidates, &decision);
    *segment = (struct fp8r_plan_segment){.m_first = m,
                                          .m_last = fp8r_size_min(decision.m_last, plan->problem.m),
                                          .row = decision.row,
                                          .config = decision.config,
                                          .source = decision.source};
    return FP8R_OK;
}

/* The same with the caller's own choice. */
static fp8r_status obey(const struct fp8r_plan *plan, int64_t m, int row, int config, struct fp8r_plan_segment *segment)
{
    struct fp8r_context *context = plan->context;
    const struct fp8r_row *it = &context->registry.rows[row];
    fp8r_problem problem = plan->problem;
    fp8r_reason reason;
    char sentence[192];
    problem.m = m;
    if (!fp8r_row_eligible(&context->registry, &context->device, &problem, row, config, &reason)) {
        fp8r_reason_sentence(&reason, sentence, sizeof sentence);
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "backend %s%s%s %s", it->backend.name,
                         config < 0 ? "" : ":", config < 0 ? "" : it->backend.configs[config], sentence);
    }
    if (config == FP8R_CONFIG_ANY)
        config = it->backend.pick(it->backend.user, &context->device, &problem);
    *segment = (struct fp8r_plan_segment){
        .m_first = m,
        .m_last = fp8r_size_min(fp8r_row_horizon(it, &context->device, &problem), plan->problem.m),
        .row = row,
        .config = config,
        .source = FP8R_SOURCE_FORCED};
    return FP8R_OK;
}

/* Adds the segment, or lets the last one reach further where it is the same backend and configuration. */
static fp8r_status append(struct fp8r_plan *plan, const struct fp8r_plan_segment *segment)
{
    struct fp8r_plan_segment *last = plan->count > 0 ? &plan->segments[plan->count - 1] : NULL;
    if (last && last->row == segment->row && last->config == segment->config) {
        last->m_last = segment->m_last;
        return FP8R_OK;
    }
    FP8R_TRY(grow(plan));
    plan->segments[plan->count++] = *segment;
    return FP8R_OK;
}

static fp8r_status lay_out(struct fp8r_plan *plan, uint64_t excluded, int row, int config)
{
    plan->count = 0;
    for (int64_t m = 1; m <= plan->problem.m;) {
        struct fp8r_plan_segment segment;
        FP8R_TRY(row < 0 ? decide(plan, m, excluded, &segment) : obey(plan, m, row, config, &segment));
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
        for (int j = 0; j < i; j++)
            unprepare(plan, &plan->segments[j]);
        plan->count = 0;
        return status;
    }
    return FP8R_OK;
}

static fp8r_status fill_in(struct fp8r_plan *plan, int row, int config)
{
    uint64_t excluded = 0;
    for (;;) {
        int failed = -1;
        fp8r_status status = lay_out(plan, excluded, row, config);
        if (status != FP8R_OK) {
            plan->count = 0;
            return status;
        }
        status = prepare_all(plan, &failed);
        if (status == FP8R_OK || row >= 0)
            return status;
        report_failure(plan->context, failed, status);
        excluded |= (uint64_t)1 << failed;
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
                      fp8r_source_name(plan->segments[i].source));
}

fp8r_status fp8r_plan_build(struct fp8r_context *context, const fp8r_problem *problem, int row, int config,
                            struct fp8r_plan **result)
{
    struct fp8r_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return fp8r_fail_memory("a plan");
    plan->context = context;
    plan->problem = *problem;
    bool multiplies = !fp8r_problem_is_empty(problem) && problem->k > 0;
    fp8r_status status = multiplies ? fill_in(plan, row, config) : FP8R_OK;
    if (status != FP8R_OK) {
        fp8r_plan_destroy(plan);
        return status;
    }
    announce(plan);
    *result = plan;
    return FP8R_OK;
}

fp8r_status fp8r_plan_create(fp8r_context *context, const fp8r_matmul *matmul, const char *backend, fp8r_plan **plan)
{
    struct fp8r_product product;
    int row = -1, config = FP8R_CONFIG_ANY;
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    if (!plan)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "plan is NULL");
    FP8R_TRY(fp8r_product_init(matmul, FP8R_DATA_IGNORED, &product));
    if (backend)
        FP8R_TRY(fp8r_registry_resolve(&context->registry, backend, &row, &config));
    return fp8r_plan_build(context, &product.problem, row, config, plan);
}

const struct fp8r_plan_segment *fp8r_plan_segment_at(const struct fp8r_plan *plan, int64_t m)
{
    int low = 0, high = plan->count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (plan->segments[middle].m_last < m)
            low = middle + 1;
        else
            high = middle;
    }
    return plan->count > 0 ? &plan->segments[low] : NULL;
}

fp8r_status fp8r_plan_segment_run(const struct fp8r_plan *plan, const struct fp8r_plan_segment *segment,
                                  const fp8r_problem *problem, const fp8r_pointers *pointers, void *workspace,
                                  size_t workspace_bytes, void *stream)
{
    const struct fp8r_context *context = plan->context;
    const struct fp8r_row *row = &context->registry.rows[segment->row];
    if (context->trace)
        fp8r_trace_count(context->trace, problem, false);
    if (context->log.verbose > 1)
        fp8r_log_line(&context->log, FP8R_LOG_DEBUG, "run M=%lld on %s", (long long)problem->m, segment->label);
    return told(row, "run",
                row->backend.run(row->backend.user, &context->services, segment->state, problem, segment->config,
                                 pointers, workspace, workspace_bytes, stream));
}

fp8r_status fp8r_plan_run(const fp8r_plan *plan, const fp8r_pointers *pointers, void *workspace, size_t workspace_bytes,
                          void *stream)
{
    if (!plan)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "plan is NULL");
    FP8R_TRY(fp8r_pointers_check(&plan->problem, plan->problem.m, pointers));
    fp8r_problem problem = plan->problem;
    problem.m = pointers->m;
    if (fp8r_problem_is_empty(&problem))
        return FP8R_OK;
    if (problem.k == 0) {
        fp8r_fill(&problem, pointers);
        return FP8R_OK;
    }
    const struct fp8r_plan_segment *segment = fp8r_plan_segment_at(plan, problem.m);
    size_t needed = plan->workspace_bytes;
    if (needed > 0 && (!workspace || workspace_bytes < needed))
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace has %zu bytes: this plan needs %zu",
                         workspace ? workspace_bytes : (size_t)0, needed);
    if (needed > 0 && fp8r_pointer_align(workspace) < 256)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace is aligned to %d bytes: it must be to 256",
                         (int)fp8r_pointer_align(workspace));
    return fp8r_plan_segment_run(plan, segment, &problem, pointers, workspace, workspace_bytes, stream);
}

size_t fp8r_plan_workspace(const fp8r_plan *plan)
{
    return plan ? plan->workspace_bytes : 0;
}

const char *fp8r_plan_backend(const fp8r_plan *plan, int64_t m)
{
    if (!plan || m < 1 || m > plan->problem.m)
        return NULL;
    const struct fp8r_plan_segment *segment = fp8r_plan_segment_at(plan, m);
    return segment ? segment->label : "none";
}
