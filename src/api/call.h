/* What every public call that may reach a GPU does first and last: it returns an error that is pending, makes the
 * context's device current, and restores what was. On a CPU nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_API_CALL_H
#define FP8R_API_CALL_H

#include "api/context.h"
#include "base/status.h"
#include "device/cuda.h"

struct fp8r_call {
    struct fp8r_cuda_guard guard;
};

/* Where it succeeds, end must follow on every path. */
static inline fp8r_status fp8r_call_begin(const struct fp8r_context *context, struct fp8r_call *call)
{
    call->guard.entered = NULL;
    if (!context->cuda)
        return FP8R_OK;
    FP8R_TRY(fp8r_cuda_pending());
    return fp8r_cuda_enter(context->cuda, &call->guard);
}

static inline void fp8r_call_end(const struct fp8r_call *call)
{
    if (call->guard.entered)
        fp8r_cuda_leave(&call->guard);
}

/* Asks the driver where each operand lies; those that only lend their alignment are left out. */
fp8r_status fp8r_call_check_pointers(const struct fp8r_context *context, const fp8r_problem *problem,
                                     const fp8r_pointers *pointers);

#endif
