/* The kernels behind judging on a GPU. Each is queued on the stream (a cudaStream_t), allocates nothing, and returns a
 * cudaError_t. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_JUDGE_CUDA_H
#define FP8R_JUDGE_CUDA_H

#include "measure/judge.h"

#ifdef __cplusplus
extern "C" {
#endif

int fp8r_judge_cuda_spread(const fp8r_matrix *matrix, int64_t batch, int of_rows, float *to, void *stream);

/* All three arrays on the device. */
int fp8r_judge_cuda_gather(const float *from, const int64_t *places, size_t count, float *values, void *stream);

/* result: on the device, where `wrong` is 0 and `first` all ones before. */
int fp8r_judge_cuda_compare(const struct fp8r_comparison *comparison, struct fp8r_comparison_result *result,
                            void *stream);

#ifdef __cplusplus
}
#endif
#endif
