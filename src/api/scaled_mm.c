/* The routed call: validation, the cached plan, workspace. On a CPU that is borrowed, on a GPU it is the stream's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"
#include "api/plan.h"
#include "backend/row.h"
#include "problem/problem.h"

/* The segment of the call's rows, and what its run needs: nothing is asked where no run of it needs any. */
static const struct fp8r_plan_segment *segment_of(const struct fp8r_plan *plan, const fp8r_problem *problem, size_t *bytes)
{
    const struct fp8r_context *context = plan->context;
    const struct fp8r_plan_segment *segment = fp8r_plan_segment_at(plan, problem->m);
    *bytes = segment->uses_workspace ? fp8r_row_workspace(&context->registry.rows[segment->row], &context->device, problem,
                                                          segment->config)
                                     : 0;
    return segment;
}

static fp8r_status run_borrowing(struct fp8r_context *context, const struct fp8r_plan *plan,
                                 const struct fp8r_product *product)
{
    size_t bytes;
    const struct fp8r_plan_segment *segment = segment_of(plan, &product->problem, &bytes);
    struct fp8r_buffer *buffer = bytes > 0 ? fp8r_space_borrow(&context->space, bytes) : NULL;
    if (bytes > 0 && !buffer)
        return fp8r_fail(FP8R_ERROR_OUT_OF_MEMORY, "out of memory for %zu bytes of workspace", bytes);
    fp8r_status status = fp8r_plan_segment_run(plan, segment, &product->problem, &product->pointers,
                                               buffer ? buffer->data : NULL, bytes, NULL);
    if (buffer)
        fp8r_space_return(&context->space, buffer);
    return status;
}

static fp8r_status multiply(struct fp8r_context *context, const struct fp8r_product *product)
{
    struct fp8r_plan *plan;
    bool owned;
    FP8R_TRY(fp8r_cache_find(context, &product->problem, false, &plan, &owned));
    fp8r_status status = run_borrowing(context, plan, product);
    if (owned)
        fp8r_plan_free(plan);
    return status;
}

static fp8r_status run_queued(struct fp8r_context *context, const struct fp8r_plan *plan,
                              const struct fp8r_product *product, const struct fp8r_stream_facts *facts, void *stream)
{
    size_t bytes;
    void *memory = NULL;
    const struct fp8r_plan_segment *segment = segment_of(plan, &product->problem, &bytes);
    if (bytes > 0)
        FP8R_TRY(fp8r_stream_space_get(&context->stream_space, facts->id, bytes, &memory));
    return fp8r_plan_segment_run(plan, segment, &product->problem, &product->pointers, memory, bytes, stream);
}

/* Where there is no plan yet, or workspace is needed, it matters which stream it is, and whether it is capturing. */
static fp8r_status multiply_on(struct fp8r_context *context, const struct fp8r_product *product, void *stream)
{
    struct fp8r_stream_facts facts = {0};
    struct fp8r_plan *plan;
    bool owned;
    FP8R_TRY(fp8r_cuda_stream_read(stream, &facts));
    FP8R_TRY(fp8r_cache_find(context, &product->problem, facts.is_capturing, &plan, &owned));
    fp8r_status status = run_queued(context, plan, product, &facts, stream);
    if (owned)
        fp8r_plan_free(plan);
    return status;
}

/* The common case asks nothing of the stream: a plan is there, and it needs no workspace. */
static fp8r_status multiply_queued(struct fp8r_context *context, const struct fp8r_product *product, void *stream)
{
    const fp8r_problem *problem = &product->problem;
    const struct fp8r_plan *plan = fp8r_cache_look(context, problem, false);
    size_t bytes = 0;
    const struct fp8r_plan_segment *segment = plan ? segment_of(plan, problem, &bytes) : NULL;
    if (!segment || bytes > 0)
        return multiply_on(context, product, stream);
    return fp8r_plan_segment_run(plan, segment, problem, &product->pointers, NULL, 0, stream);
}

static fp8r_status call(struct fp8r_context *context, const struct fp8r_product *product, void *stream)
{
    if (context->environment.checks)
        FP8R_TRY(fp8r_call_check_pointers(context, &product->problem, &product->pointers));
    if (product->problem.k == 0)
        return fp8r_fill(context, &product->problem, &product->pointers, stream);
    return context->cuda ? multiply_queued(context, product, stream) : multiply(context, product);
}

fp8r_status fp8r_scaled_mm(fp8r_context *context, const fp8r_matmul *matmul, void *stream)
{
    struct fp8r_product product;
    struct fp8r_call guarded;
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    FP8R_TRY(fp8r_call_begin(context, &guarded));
    fp8r_status status = fp8r_product_init(matmul, FP8R_DATA_USED, &product);
    if (status == FP8R_OK && !fp8r_problem_is_empty(&product.problem))
        status = call(context, &product, stream);
    fp8r_call_end(&guarded);
    return status;
}
