/* Quantising and dequantising on a GPU, the same bytes as on a CPU. Arguments were judged before
 * (problem/conversion.h). SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_QUANTIZE_H
#define FP8R_CUDA_QUANTIZE_H

#include <fp8route/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernels on the current device, once before any stream captures them. Errors: DEVICE. */
fp8r_status fp8r_cuda_quantize_load(void);

/* flags: FP8R_LAUNCH_*. Queues it on the stream of the current device; may be captured. Computed scales whose group is
 * larger than a row are kept in `scale` itself between the launches, so nothing is allocated. Errors: DEVICE. */
fp8r_status fp8r_cuda_quantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                               const fp8r_matrix *out, const fp8r_matrix *scale, int32_t scaling, void *stream);

/* Computes a scale for each row. What is queued behind it may start before the kernels in front of it are complete, so
 * it has to wait (griddepcontrol.wait) before it touches what any of them reads or writes. */
fp8r_status fp8r_cuda_quantize_ahead(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                     const fp8r_matrix *out, const fp8r_matrix *scale, void *stream);

/* scale NULL or of type NONE: 1. */
fp8r_status fp8r_cuda_dequantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                 const fp8r_matrix *scale, const fp8r_matrix *out, void *stream);

#ifdef __cplusplus
}
#endif
#endif
