/* Plans in use: creating by name, running, asking, ending.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/plan.h"

#include <stdlib.h>

#include "api/call.h"
#include "backend/row.h"
#include "base/reason.h"
#include "base/status.h"

void fp8r_plan_unprepare(struct fp8r_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        struct fp8r_plan_segment *segment = &plan->segments[i];
        if (segment->is_prepared)
            fp8r_row_destroy(&plan->context->registry.rows[segment->row], segment->state);
        segment->is_prepared = false;
    }
    plan->count = 0;
}

void fp8r_plan_free(struct fp8r_plan *plan)
{
    if (!plan)
        return;
    fp8r_plan_unprepare(plan);
    free(plan->segments);
    free(plan);
}

/* What a backend prepared on a GPU is released there, whatever may be pending. */
void fp8r_plan_destroy(fp8r_plan *plan)
{
    struct fp8r_cuda_guard guard = {0};
    if (plan && plan->context->cuda && fp8r_cuda_enter(plan->context->cuda, &guard) != FP8R_OK)
        fp8r_error_clear();
    fp8r_plan_free(plan);
    fp8r_cuda_leave(&guard);
}

fp8r_status fp8r_row_told(const struct fp8r_row *row, const char *what, fp8r_status status)
{
    if (status == FP8R_OK || !row->is_outside)
        return status;
    bool is_known = status > FP8R_OK && status <= FP8R_ERROR_FORMAT;
    return fp8r_fail(is_known ? status : FP8R_ERROR_DEVICE, "backend %s failed to %s and answered %s (%d)",
                     row->backend.name, what, fp8r_status_name(status), (int)status);
}

fp8r_status fp8r_row_refused(const struct fp8r_row *row, int config, const fp8r_reason *reason)
{
    char sentence[192];
    fp8r_reason_sentence(reason, sentence, sizeof sentence);
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "backend %s%s%s %s", row->backend.name, config < 0 ? "" : ":",
                     config < 0 ? "" : row->backend.configs[config], sentence);
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
    struct fp8r_call call;
    FP8R_TRY(fp8r_call_begin(context, &call));
    fp8r_status status = fp8r_call_check_pointers(context, &product.problem, &product.pointers);
    if (status == FP8R_OK)
        status = fp8r_plan_build(context, &product.problem, row, config, false, plan);
    fp8r_call_end(&call);
    return status;
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

static bool is_captured(const struct fp8r_context *context, void *stream)
{
    struct fp8r_stream_facts facts = {0};
    if (context->cuda && fp8r_cuda_stream_read(stream, &facts) != FP8R_OK)
        fp8r_error_clear(); /* the run itself will say it */
    return facts.is_capturing;
}

fp8r_status fp8r_plan_segment_run(const struct fp8r_plan *plan, const struct fp8r_plan_segment *segment,
                                  const fp8r_problem *problem, const fp8r_pointers *pointers, void *workspace,
                                  size_t workspace_bytes, void *stream)
{
    const struct fp8r_context *context = plan->context;
    const struct fp8r_row *row = &context->registry.rows[segment->row];
    if (segment->is_refused)
        return fp8r_row_refused(row, segment->config, &segment->refusal);
    if (context->trace)
        fp8r_trace_count(context->trace, problem, is_captured(context, stream));
    if (context->log.verbose > 1)
        fp8r_log_line(&context->log, FP8R_LOG_DEBUG, "run M=%lld on %s", (long long)problem->m, segment->label);
    return fp8r_row_told(row, "run",
                         fp8r_row_run(row, &context->services, &context->device, segment->state, problem,
                                      segment->config, pointers, workspace, workspace_bytes, stream));
}

/* A backend writes what it likes of the workspace: an operand's element in it would be gone. */
static fp8r_status check_workspace_apart(const fp8r_problem *problem, const fp8r_pointers *pointers, const void *workspace,
                                         size_t needed)
{
    const struct {
        const char *name;
        const void *pointer;
        const fp8r_operand *operand;
        int64_t extents[3];
    } operands[] = {
        {"out", pointers->out, &problem->out, {problem->batch, problem->m, problem->n}},
        {"a", pointers->a, &problem->a, {problem->batch, problem->m, problem->k}},
        {"b", pointers->b, &problem->b, {problem->batch, problem->k, problem->n}},
        {"scale_a", pointers->scale_a, &problem->scale_a, {problem->batch, problem->m, 1}},
        {"scale_b", pointers->scale_b, &problem->scale_b, {problem->batch, 1, problem->n}},
        {"bias", pointers->bias, &problem->bias, {problem->batch, 1, problem->n}},
    };
    const fp8r_operand bytes = {.batch_stride = 0, .row_stride = 0, .col_stride = 1, .dtype = FP8R_DTYPE_E4M3};
    const int64_t extents[3] = {1, 1, needed < INT64_MAX ? (int64_t)needed : INT64_MAX};
    for (int i = 0; i < 6; i++)
        if (operands[i].pointer && operands[i].operand->dtype != FP8R_DTYPE_NONE &&
            fp8r_overlap_certain(workspace, &bytes, operands[i].pointer, operands[i].operand, extents,
                                 operands[i].extents))
            return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace overlaps %s in memory: it must be memory of its own",
                             operands[i].name);
    return FP8R_OK;
}

static fp8r_status run_planned(const fp8r_plan *plan, const fp8r_pointers *pointers, void *workspace,
                               size_t workspace_bytes, void *stream)
{
    fp8r_problem problem = plan->problem;
    problem.m = pointers->m;
    if (fp8r_problem_is_empty(&problem))
        return FP8R_OK;
    if (plan->context->environment.checks)
        FP8R_TRY(fp8r_call_check_pointers(plan->context, &problem, pointers));
    if (problem.k == 0)
        return fp8r_fill(plan->context, &problem, pointers, stream);
    const struct fp8r_plan_segment *segment = fp8r_plan_segment_at(plan, problem.m);
    size_t needed = plan->workspace_bytes;
    if (needed > 0 && (!workspace || workspace_bytes < needed))
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace has %zu bytes: this plan needs %zu",
                         workspace ? workspace_bytes : (size_t)0, needed);
    if (needed > 0 && fp8r_pointer_align(workspace) < 256)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace is aligned to %d bytes: it must be to 256",
                         (int)fp8r_pointer_align(workspace));
    if (needed > 0)
        FP8R_TRY(check_workspace_apart(&problem, pointers, workspace, needed));
    return fp8r_plan_segment_run(plan, segment, &problem, pointers, workspace, workspace_bytes, stream);
}

fp8r_status fp8r_plan_run(const fp8r_plan *plan, const fp8r_pointers *pointers, void *workspace, size_t workspace_bytes,
                          void *stream)
{
    struct fp8r_call call;
    if (!plan)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "plan is NULL");
    FP8R_TRY(fp8r_pointers_check(&plan->problem, plan->problem.m, pointers));
    FP8R_TRY(fp8r_call_begin(plan->context, &call));
    fp8r_status status = run_planned(plan, pointers, workspace, workspace_bytes, stream);
    fp8r_call_end(&call);
    return status;
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
    return !segment ? "none" : segment->is_refused ? NULL : segment->label;
}
