/* What a test wants done on the device itself: filling operands that are too large to be sent, and comparing results whole.
 * Every function queues on the stream and returns a cudaError_t.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_BITS_H
#define FP8R_TESTS_GPU_BITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* On the device; comparisons add to it. */
struct gpu_difference {
    unsigned long long count;
    unsigned long long first; /* set it to UINT64_MAX */
};

/* Bytes that differ. */
int gpu_bits_compare(const void *x, const void *y, int64_t bytes, struct gpu_difference *difference, void *stream);

/* Elements of `got` (bf16 where is_bf16, else fp32) that are not `wanted` rounded once. */
int gpu_bits_compare_rounded(const float *wanted, const void *got, int is_bf16, int64_t count,
                             struct gpu_difference *difference, void *stream);

/* Codes of 0, +-1 and +-2, or of any finite value. */
int gpu_bits_fill_codes(void *codes, int64_t count, int any, uint64_t seed, void *stream);

/* Powers of two from 1/8 to 16, so that no product rounds. */
int gpu_bits_fill_scales(float *scales, int64_t count, uint64_t seed, void *stream);

#ifdef __cplusplus
}
#endif
#endif
