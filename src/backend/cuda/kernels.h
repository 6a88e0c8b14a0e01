/* Where the host finds the kernels. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_KERNELS_H
#define FP8R_CUDA_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of K a wide tile keeps in shared memory: what a multiprocessor waits for a block hides behind the
 * others, and two, or four, tiles fit on one with 164 KB or more. */
enum { FP8R_CUDA_STAGES_128 = 5, FP8R_CUDA_STAGES_64 = 6 };

/* 128 threads a block; tile: 128 x 128 or 64 x 64. */
const void *fp8r_cuda_wide(int tile);

/* 256 threads a block; 8 rows and 16 columns of out. */
const void *fp8r_cuda_skinny(void);

#ifdef __cplusplus
}
#endif
#endif
