/* The steps, by the kernels of the portable backend.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/steps.h"

#include "backend/cuda/fill.h"
#include "backend/cuda/quantize.h"
#include "base/compiler.h"

/* Older GPUs have no code to load; what needs it fails when it is called. */
fp8r_status fp8r_step_load(const fp8r_device_facts *device)
{
    if (device->arch < 80)
        return FP8R_OK;
    FP8R_TRY(fp8r_cuda_fill_load());
    return fp8r_cuda_quantize_load();
}

fp8r_status fp8r_step_quantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                               const fp8r_matrix *out, const fp8r_matrix *scale, int32_t scaling, void *stream)
{
    return fp8r_cuda_quantize(device, flags, in, out, scale, scaling, stream);
}

fp8r_status fp8r_step_quantize_ahead(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                     const fp8r_matrix *out, const fp8r_matrix *scale, void *stream)
{
    return fp8r_cuda_quantize_ahead(device, flags, in, out, scale, stream);
}

fp8r_status fp8r_step_dequantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                 const fp8r_matrix *scale, const fp8r_matrix *out, void *stream)
{
    return fp8r_cuda_dequantize(device, flags, in, scale, out, stream);
}

fp8r_status fp8r_step_fill(const fp8r_device_facts *device, const fp8r_problem *problem, const fp8r_pointers *pointers,
                           void *stream)
{
    (void)device;
    return fp8r_cuda_fill(problem, pointers, stream);
}
