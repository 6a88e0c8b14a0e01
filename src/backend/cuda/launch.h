/* Starting a kernel. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_LAUNCH_H
#define FP8R_CUDA_LAUNCH_H

#include <stdbool.h>

#include <fp8route/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernel on the current device, with room for so much shared memory a block: a first launch while a
 * stream captures could not. */
fp8r_status fp8r_cuda_load(const void *kernel, int32_t shared_bytes);

/* What a block is made of and how many there are; more than a grid can hold is cut: kernels loop. */
struct fp8r_cuda_launch {
    const void *kernel;
    int64_t blocks;
    int32_t threads, shared_bytes;
    bool dependent; /* may start while the kernel before runs out: it waits itself */
};

/* Queues it with its one argument, a struct. Errors: DEVICE. */
fp8r_status fp8r_cuda_start(const struct fp8r_cuda_launch *launch, const void *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
