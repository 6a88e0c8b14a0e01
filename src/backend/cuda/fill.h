/* The product over nothing, K = 0, on a GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_FILL_H
#define FP8R_CUDA_FILL_H

#include <fp8route/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernel on the current device. Errors: DEVICE. */
fp8r_status fp8r_cuda_fill_load(void);

/* out becomes the bias, or zeros: any layout, nothing else is written. Queued on the stream. Errors: DEVICE. */
fp8r_status fp8r_cuda_fill(const fp8r_problem *problem, const fp8r_pointers *pointers, void *stream);

#ifdef __cplusplus
}
#endif
#endif
