/* The product over nothing: K = 0. What scales would do to a sum of 0 is left out on purpose, a NaN scale too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/plan.h"
#include "backend/steps.h"
#include "base/convert.h"

static void fill_on_host(const fp8r_problem *p, const fp8r_pointers *pointers)
{
    for (int64_t batch = 0; batch < p->batch; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            for (int64_t col = 0; col < p->n; col++) {
                int64_t at = batch * p->out.batch_stride + row * p->out.row_stride + col * p->out.col_stride;
                int64_t bias_at = batch * p->bias.batch_stride + col * p->bias.col_stride;
                float value = pointers->bias ? fp8r_load(pointers->bias, bias_at, p->bias.dtype) : 0.0f;
                fp8r_store(pointers->out, at, p->out.dtype, value);
            }
        }
    }
}

fp8r_status fp8r_fill(const struct fp8r_context *context, const fp8r_problem *problem, const fp8r_pointers *pointers,
                      void *stream)
{
    if (context->cuda)
        return fp8r_step_fill(&context->device, problem, pointers, stream);
    fill_on_host(problem, pointers);
    return FP8R_OK;
}
