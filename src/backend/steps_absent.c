/* A build without CUDA has no context on a GPU, so nothing comes here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/steps.h"
#include "base/status.h"

static fp8r_status absent(void)
{
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "this build of fp8route holds no CUDA code");
}

fp8r_status fp8r_step_load(const fp8r_device_facts *device)
{
    (void)device;
    return absent();
}

fp8r_status fp8r_step_quantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                               const fp8r_matrix *out, const fp8r_matrix *scale, int32_t scaling, void *stream)
{
    (void)device, (void)flags, (void)in, (void)out, (void)scale, (void)scaling, (void)stream;
    return absent();
}

fp8r_status fp8r_step_quantize_ahead(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                     const fp8r_matrix *out, const fp8r_matrix *scale, void *stream)
{
    (void)device, (void)flags, (void)in, (void)out, (void)scale, (void)stream;
    return absent();
}

fp8r_status fp8r_step_dequantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                 const fp8r_matrix *scale, const fp8r_matrix *out, void *stream)
{
    (void)device, (void)flags, (void)in, (void)scale, (void)out, (void)stream;
    return absent();
}

fp8r_status fp8r_step_fill(const fp8r_device_facts *device, const fp8r_problem *problem, const fp8r_pointers *pointers,
                           void *stream)
{
    (void)device, (void)problem, (void)pointers, (void)stream;
    return absent();
}
