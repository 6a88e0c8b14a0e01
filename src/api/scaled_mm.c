/* The routed call: validation, the cached plan, borrowed workspace.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/plan.h"
#include "base/status.h"

static fp8r_status run(struct fp8r_context *context, const struct fp8r_plan *plan, const struct fp8r_product *product,
                       void *stream)
{
    const struct fp8r_plan_segment *segment = fp8r_plan_segment_at(plan, product->problem.m);
    const struct fp8r_row *row = &context->registry.rows[segment->row];
    size_t bytes = fp8r_row_workspace(row, &context->device, &product->problem, segment->config);
    struct fp8r_buffer *buffer = bytes > 0 ? fp8r_space_borrow(&context->space, bytes) : NULL;
    if (bytes > 0 && !buffer)
        return fp8r_fail(FP8R_ERROR_OUT_OF_MEMORY, "out of memory for %zu bytes of workspace", bytes);
    fp8r_status status = fp8r_plan_segment_run(plan, segment, &product->problem, &product->pointers,
                                               buffer ? buffer->data : NULL, bytes, stream);
    if (buffer)
        fp8r_space_return(&context->space, buffer);
    return status;
}

fp8r_status fp8r_scaled_mm(fp8r_context *context, const fp8r_matmul *matmul, void *stream)
{
    struct fp8r_product product;
    struct fp8r_plan *plan;
    bool owned;
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    FP8R_TRY(fp8r_product_init(matmul, FP8R_DATA_USED, &product));
    if (fp8r_problem_is_empty(&product.problem))
        return FP8R_OK;
    if (product.problem.k == 0) {
        fp8r_fill(&product.problem, &product.pointers);
        return FP8R_OK;
    }
    FP8R_TRY(fp8r_cache_find(context, &product.problem, &plan, &owned));
    fp8r_status status = run(context, plan, &product, stream);
    if (owned)
        fp8r_plan_destroy(plan);
    return status;
}
