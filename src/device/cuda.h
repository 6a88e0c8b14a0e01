/* CUDA devices: their facts, making one current for a call and undoing it, streams, pending errors, memory. In a build
 * without CUDA every function that asks for a device answers UNSUPPORTED. No CUDA header is needed to include this.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_DEVICE_CUDA_H
#define FP8R_DEVICE_CUDA_H

#include <stddef.h>

#include <fp8route/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills the facts of GPU `index`. Errors: UNSUPPORTED (no CUDA in this build, no driver, one too old, no device),
 * INVALID_ARGUMENT (no such index), DEVICE (also: an error was pending). */
fp8r_status fp8r_cuda_facts_read(int32_t index, fp8r_device_facts *facts);

/* How many GPUs there are. Errors: UNSUPPORTED, DEVICE. */
fp8r_status fp8r_cuda_count(int *count);

/* Turns a cudaError_t into a status (OUT_OF_MEMORY or DEVICE) whose line names the call. The failure is this library's
 * own, so it is taken off the runtime's record: what was pending before is returned by fp8r_cuda_pending first. */
fp8r_status fp8r_cuda_fail(const char *call, int error);

/* DEVICE where an earlier CUDA call or kernel of the process failed and nobody took notice; it is left as it is. */
fp8r_status fp8r_cuda_pending(void);

/* A GPU held open: its primary context, kept until it is closed. */
struct fp8r_cuda;
fp8r_status fp8r_cuda_open(int32_t index, struct fp8r_cuda **cuda);
void fp8r_cuda_close(struct fp8r_cuda *cuda); /* NULL is fine */

/* Makes the GPU current for this thread until leave, which restores exactly what was, also where nothing was. Costs two
 * looks where it is current already. Between them FP8R_TRY must not return. */
struct fp8r_cuda_guard {
    const struct fp8r_cuda *entered; /* NULL: it was current */
};
fp8r_status fp8r_cuda_enter(const struct fp8r_cuda *cuda, struct fp8r_cuda_guard *guard);
void fp8r_cuda_leave(const struct fp8r_cuda_guard *guard);

/* What a call needs to know about its stream, NULL being the legacy default stream. An id is never used twice; a stream
 * that is capturing does not tell its. */
struct fp8r_stream_facts {
    uint64_t id; /* 0 while capturing */
    bool is_capturing;
};
fp8r_status fp8r_cuda_stream_read(void *stream, struct fp8r_stream_facts *facts);

/* Device memory, 256-byte aligned. Not during a capture. The GPU must be current. */
fp8r_status fp8r_cuda_allocate(size_t bytes, void **memory);
void fp8r_cuda_release(void *memory);

/* Lets this thread make calls that a capture elsewhere forbids, until the same call takes it back: preparing a plan
 * touches no stream. *mode: 0 before the first call. */
void fp8r_cuda_capture_relax(int *mode);

/* Can the GPU of this index read the address? INVALID_ARGUMENT names the operand, and where the memory is instead. */
fp8r_status fp8r_cuda_pointer_check(int32_t index, const char *what, const void *pointer);

/* Version of the runtime that this library holds, e.g. 13000; 0 in a build without CUDA. */
int fp8r_cuda_runtime_version(void);

#ifdef __cplusplus
}
#endif
#endif
