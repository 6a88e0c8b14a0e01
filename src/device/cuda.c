/* The CUDA runtime and the few driver functions behind it. The runtime is linked statically and finds the driver when it
 * is first called, so that all of this loads where there is none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

struct fp8r_cuda {
    int32_t index;
    CUcontext context; /* the device's primary one, retained */
    CUresult (*get_current)(CUcontext *);
    CUresult (*push)(CUcontext);
    CUresult (*pop)(CUcontext *);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*release)(CUdevice);
};

fp8r_status fp8r_cuda_fail(const char *call, int error)
{
    (void)cudaGetLastError();
    return fp8r_fail(error == cudaErrorMemoryAllocation ? FP8R_ERROR_OUT_OF_MEMORY : FP8R_ERROR_DEVICE, "%s: %s (%s)",
                     call, cudaGetErrorString((cudaError_t)error), cudaGetErrorName((cudaError_t)error));
}

fp8r_status fp8r_cuda_pending(void)
{
    cudaError_t error = cudaPeekAtLastError();
    if (error == cudaSuccess) return FP8R_OK;
    return fp8r_fail(FP8R_ERROR_DEVICE, "a CUDA error was pending before this call and is left so: %s (%s)",
                     cudaGetErrorString(error), cudaGetErrorName(error));
}

int fp8r_cuda_runtime_version(void)
{
    return CUDART_VERSION;
}

/* Why there is no device, in one line. */
static fp8r_status no_device(cudaError_t error)
{
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaGetLastError();
    if (error == cudaErrorNoDevice)
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "device.kind is CUDA, but the CUDA driver (%d.%d) finds no GPU",
                         driver / 1000, driver / 10 % 100);
    if (error != cudaErrorInsufficientDriver && error != cudaErrorStubLibrary)
        return fp8r_cuda_fail("cudaGetDeviceCount", error);
    if (driver == 0)
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "device.kind is CUDA, but no CUDA driver could be loaded: this build "
                                                 "needs CUDA %d.%d or later", CUDART_VERSION / 1000,
                         CUDART_VERSION / 10 % 100);
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "device.kind is CUDA, but the driver offers CUDA %d.%d: this build needs "
                                             "CUDA %d.%d or later", driver / 1000, driver / 10 % 100,
                     CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
}

fp8r_status fp8r_cuda_count(int *count)
{
    int found;
    cudaError_t error = cudaPeekAtLastError(); /* without a driver, every call says so, this one too */
    if (error != cudaErrorInsufficientDriver && error != cudaErrorNoDevice && error != cudaErrorStubLibrary)
        FP8R_TRY(fp8r_cuda_pending());
    error = cudaGetDeviceCount(&found);
    if (error != cudaSuccess) return no_device(error);
    *count = found;
    return FP8R_OK;
}

fp8r_status fp8r_cuda_facts_read(int32_t index, fp8r_device_facts *facts)
{
    int count, driver, major, minor, sm_count, l2_bytes, memory_khz, bus_bits;
    struct cudaDeviceProp properties;
    FP8R_TRY(fp8r_cuda_count(&count));
    if (index < 0 || index >= count)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "device.index is %d: there are %d CUDA devices, counted from 0",
                         (int)index, count);
    const struct {
        enum cudaDeviceAttr name;
        int *value;
    } attributes[] = {{cudaDevAttrComputeCapabilityMajor, &major}, {cudaDevAttrComputeCapabilityMinor, &minor},
                      {cudaDevAttrMultiProcessorCount, &sm_count}, {cudaDevAttrL2CacheSize, &l2_bytes},
                      {cudaDevAttrMemoryClockRate, &memory_khz},   {cudaDevAttrGlobalMemoryBusWidth, &bus_bits}};
    cudaError_t error = cudaDriverGetVersion(&driver);
    for (size_t i = 0; error == cudaSuccess && i < sizeof attributes / sizeof *attributes; i++)
        error = cudaDeviceGetAttribute(attributes[i].value, attributes[i].name, index);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, index);
    if (error != cudaSuccess) return fp8r_cuda_fail("cudaDeviceGetAttribute", error);
    *facts = (fp8r_device_facts){.struct_size = sizeof *facts,
                                 .kind = FP8R_DEVICE_CUDA,
                                 .index = index,
                                 .arch = 10 * major + minor,
                                 .sm_count = sm_count,
                                 .driver = driver,
                                 .l2_bytes = l2_bytes,
                                 .last_level_bytes = l2_bytes,
                                 /* two transfers a clock */
                                 .bandwidth_gbs = (int64_t)memory_khz * 2 * (bus_bits / 8) / 1000000};
    memcpy(facts->name, properties.name, sizeof facts->name - 1);
    return FP8R_OK;
}

/* Driver functions as of CUDA 12, which every driver that fits this build has. */
static fp8r_status load_driver(struct fp8r_cuda *cuda)
{
    const struct {
        const char *name;
        void **function;
    } functions[] = {{"cuCtxGetCurrent", (void **)&cuda->get_current},
                     {"cuCtxPushCurrent", (void **)&cuda->push},
                     {"cuCtxPopCurrent", (void **)&cuda->pop},
                     {"cuDevicePrimaryCtxRetain", (void **)&cuda->retain},
                     {"cuDevicePrimaryCtxRelease", (void **)&cuda->release}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        cudaError_t error = cudaGetDriverEntryPointByVersion(functions[i].name, functions[i].function, 12000,
                                                             cudaEnableDefault, &found);
        if (error == cudaSuccess && found != cudaDriverEntryPointSuccess) error = cudaErrorSymbolNotFound;
        if (error != cudaSuccess) return fp8r_cuda_fail(functions[i].name, error);
    }
    return FP8R_OK;
}

fp8r_status fp8r_cuda_open(int32_t index, struct fp8r_cuda **result)
{
    struct fp8r_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda) return fp8r_fail_memory("a CUDA device");
    cuda->index = index;
    fp8r_status status = load_driver(cuda);
    if (status == FP8R_OK && cuda->retain(&cuda->context, index) != CUDA_SUCCESS)
        status = fp8r_fail(FP8R_ERROR_DEVICE, "cuDevicePrimaryCtxRetain refused CUDA device %d: it may be in another "
                                              "process's exclusive use, or out of memory", (int)index);
    if (status != FP8R_OK) {
        free(cuda);
        return status;
    }
    *result = cuda;
    return FP8R_OK;
}

void fp8r_cuda_close(struct fp8r_cuda *cuda)
{
    if (!cuda) return;
    (void)cuda->release(cuda->index); /* a process that is ending may have unloaded the driver: no matter */
    free(cuda);
}

fp8r_status fp8r_cuda_enter(const struct fp8r_cuda *cuda, struct fp8r_cuda_guard *guard)
{
    CUcontext current = NULL;
    guard->entered = NULL;
    if (cuda->get_current(&current) == CUDA_SUCCESS && current == cuda->context) return FP8R_OK;
    if (cuda->push(cuda->context) != CUDA_SUCCESS)
        return fp8r_fail(FP8R_ERROR_DEVICE, "cuCtxPushCurrent refused CUDA device %d", (int)cuda->index);
    guard->entered = cuda;
    return FP8R_OK;
}

void fp8r_cuda_leave(const struct fp8r_cuda_guard *guard)
{
    CUcontext ours;
    if (guard->entered) (void)guard->entered->pop(&ours);
}

fp8r_status fp8r_cuda_stream_read(void *stream, struct fp8r_stream_facts *facts)
{
    enum cudaStreamCaptureStatus capture;
    unsigned long long id = 0;
    cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    if (error != cudaSuccess) return fp8r_cuda_fail("cudaStreamIsCapturing", error);
    if (capture == cudaStreamCaptureStatusInvalidated)
        return fp8r_fail(FP8R_ERROR_DEVICE, "stream: its capture has been invalidated by an earlier call; end it first");
    if (capture == cudaStreamCaptureStatusNone) {
        int mode = 0; /* another stream may be capturing in the strictest mode */
        fp8r_cuda_capture_relax(&mode);
        error = cudaStreamGetId(stream, &id);
        fp8r_cuda_capture_relax(&mode);
        if (error != cudaSuccess) return fp8r_cuda_fail("cudaStreamGetId", error);
    }
    *facts = (struct fp8r_stream_facts){.id = id, .is_capturing = capture == cudaStreamCaptureStatusActive};
    return FP8R_OK;
}

fp8r_status fp8r_cuda_allocate(size_t bytes, void **memory)
{
    cudaError_t error = cudaMalloc(memory, bytes);
    return error == cudaSuccess ? FP8R_OK : fp8r_cuda_fail("cudaMalloc", error);
}

void fp8r_cuda_release(void *memory)
{
    if (cudaFree(memory) != cudaSuccess) (void)cudaGetLastError(); /* the process or the device is ending */
}

void fp8r_cuda_capture_relax(int *mode)
{
    enum cudaStreamCaptureMode exchanged = *mode == 0 ? cudaStreamCaptureModeRelaxed
                                                      : (enum cudaStreamCaptureMode)(*mode - 1);
    if (cudaThreadExchangeStreamCaptureMode(&exchanged) == cudaSuccess)
        *mode = (int)exchanged + 1;
    else
        (void)cudaGetLastError();
}

fp8r_status fp8r_cuda_pointer_check(int32_t index, const char *what, const void *pointer)
{
    static const char *const places[] = {"unregistered host memory", "pinned host memory", "device memory",
                                         "managed memory"};
    struct cudaPointerAttributes found;
    cudaError_t error = cudaPointerGetAttributes(&found, pointer);
    if (error != cudaSuccess) return fp8r_cuda_fail("cudaPointerGetAttributes", error);
    if (found.type == cudaMemoryTypeManaged || (found.type == cudaMemoryTypeHost && found.devicePointer == pointer) ||
        (found.type == cudaMemoryTypeDevice && found.device == index))
        return FP8R_OK;
    if (found.type == cudaMemoryTypeDevice)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "%s.data is on CUDA device %d: it must be on the context's, %d",
                         what, found.device, (int)index);
    return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "%s.data is %s: it must be memory of CUDA device %d", what,
                     places[found.type <= cudaMemoryTypeManaged ? found.type : 0], (int)index);
}
