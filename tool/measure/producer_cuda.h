/* The small kernel that half of a sample's calls stand behind: it writes `a`, as a norm or a quantiser in front of a product
 * does. Queued on the stream (a cudaStream_t), allocates nothing, returns a cudaError_t.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PRODUCER_CUDA_H
#define FP8R_PRODUCER_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies bytes, which may be to where they are. is_dependent: it may begin before the kernel in front of it is complete, and
 * waits for that itself; needs sm_90. */
int fp8r_producer_cuda(void *to, const void *from, size_t bytes, bool is_dependent, void *stream);

#ifdef __cplusplus
}
#endif
#endif
