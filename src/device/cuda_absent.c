/* A build without CUDA: no device is ever opened, so nothing behind that is reached.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "device/cuda.h"

static fp8r_status absent(void)
{
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "device.kind is CUDA, but this build of fp8route holds no CUDA code");
}

fp8r_status fp8r_cuda_facts_read(int32_t index, fp8r_device_facts *facts)
{
    (void)index, (void)facts;
    return absent();
}

fp8r_status fp8r_cuda_count(int *count)
{
    (void)count;
    return absent();
}

fp8r_status fp8r_cuda_fail(const char *call, int error)
{
    (void)call, (void)error;
    return absent();
}

fp8r_status fp8r_cuda_pending(void)
{
    return FP8R_OK;
}

fp8r_status fp8r_cuda_open(int32_t index, struct fp8r_cuda **cuda)
{
    (void)index, (void)cuda;
    return absent();
}

void fp8r_cuda_close(struct fp8r_cuda *cuda)
{
    (void)cuda;
}

fp8r_status fp8r_cuda_enter(const struct fp8r_cuda *cuda, struct fp8r_cuda_guard *guard)
{
    (void)cuda, (void)guard;
    return absent();
}

void fp8r_cuda_leave(const struct fp8r_cuda_guard *guard)
{
    (void)guard;
}

fp8r_status fp8r_cuda_stream_read(void *stream, struct fp8r_stream_facts *facts)
{
    (void)stream, (void)facts;
    return absent();
}

fp8r_status fp8r_cuda_allocate(size_t bytes, void **memory)
{
    (void)bytes, (void)memory;
    return absent();
}

void fp8r_cuda_release(void *memory)
{
    (void)memory;
}

void fp8r_cuda_capture_relax(int *mode)
{
    (void)mode;
}

fp8r_status fp8r_cuda_pointer_check(int32_t index, const char *what, const void *pointer)
{
    (void)index, (void)what, (void)pointer;
    return absent();
}

int fp8r_cuda_runtime_version(void)
{
    return 0;
}
