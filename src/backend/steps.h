/* What a GPU does beside products. Everything is queued on the stream; the device must be current. In a build without
 * CUDA nothing comes here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_STEPS_H
#define FP8R_BACKEND_STEPS_H

#include <fp8route/backend.h>

/* Makes them ready: a kernel cannot be loaded while a stream captures. Errors: DEVICE. */
fp8r_status fp8r_step_load(const fp8r_device_facts *device);

/* As fp8r_quantize and fp8r_dequantize, of arguments that were checked and are not empty; flags: FP8R_LAUNCH_*.
 * Errors: DEVICE. */
fp8r_status fp8r_step_quantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                               const fp8r_matrix *out, const fp8r_matrix *scale, int32_t scaling, void *stream);
fp8r_status fp8r_step_dequantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                 const fp8r_matrix *scale, const fp8r_matrix *out, void *stream);

/* Rows of `a` in front of the product of them that is queued next, which may start before what is in front of both is
 * complete: its kernels wait for this one before they read or write anything but static weights. Errors: DEVICE. */
fp8r_status fp8r_step_quantize_ahead(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                     const fp8r_matrix *out, const fp8r_matrix *scale, void *stream);

/* The product over nothing: out becomes the bias, or zeros. Errors: DEVICE. */
fp8r_status fp8r_step_fill(const fp8r_device_facts *device, const fp8r_problem *problem, const fp8r_pointers *pointers,
                           void *stream);

#endif
