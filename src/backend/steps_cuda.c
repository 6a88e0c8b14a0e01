/* The steps, by the kernels of the portable backend.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/steps.h"

#include "backend/cuda/fill.h"
#include "base/status.h"

fp8r_status fp8r_step_quantize(const fp8r_device_facts *device, const fp8r_matrix *in, const fp8r_matrix *out,
                               const fp8r_matrix *scale, int32_t scaling, void *stream)
{
    (void)device, (void)in, (void)out, (void)scale, (void)scaling, (void)stream;
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "this build quantises on CPUs only");
}

fp8r_status fp8r_step_dequantize(const fp8r_device_facts *device, const fp8r_matrix *in, const fp8r_matrix *scale,
                                 const fp8r_matrix *out, void *stream)
{
    (void)device, (void)in, (void)scale, (void)out, (void)stream;
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "this build dequantises on CPUs only");
}

fp8r_status fp8r_step_fill(const fp8r_device_facts *device, const fp8r_problem *problem, const fp8r_pointers *pointers,
                           void *stream)
{
    (void)device;
    return fp8r_cuda_fill(problem, pointers, stream);
}
