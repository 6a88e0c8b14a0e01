/* Where a product's operands lie, asked of the driver: at plan time and under FP8ROUTE_CHECK=1, since it costs as much as a
 * small product.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"

/* A plan's pointers may be bare alignments: no memory lies in the first page. */
enum { PAGE_BYTES = 4096 };

fp8r_status fp8r_call_check_pointers(const struct fp8r_context *context, const fp8r_problem *problem,
                                     const fp8r_pointers *pointers)
{
    const struct {
        const char *name;
        const void *pointer;
    } operands[] = {{"a", pointers->a},       {"b", pointers->b},
                    {"out", pointers->out},   {"scale_a", pointers->scale_a},
                    {"scale_b", pointers->scale_b}, {"bias", pointers->bias}};
    if (!context->cuda || problem->batch == 0 || problem->m == 0 || problem->n == 0)
        return FP8R_OK;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if ((uintptr_t)operands[i].pointer >= PAGE_BYTES)
            FP8R_TRY(fp8r_cuda_pointer_check(context->device.index, operands[i].name, operands[i].pointer));
    return FP8R_OK;
}
