/* One handle a device, this process's own: a handle belongs to the CUDA context that was current when it was
 * made, and one that a framework made is not ours to share. Handles stay until the process ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "backend/cublaslt/cublaslt_library.h"
#include "base/status.h"
#include "device/cuda.h"

enum { DEVICES_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    _Atomic(cublasLtHandle_t) handle; /* what stands below it is written before */
    int32_t arch;
    struct fp8r_cuda *cuda; /* keeps the context that the handle lives in */
} devices[DEVICES_MAX];

static fp8r_status make(const struct fp8r_cublaslt *library, const fp8r_device_facts *device)
{
    struct fp8r_cuda *cuda = NULL;
    struct fp8r_cuda_guard guard;
    cublasLtHandle_t handle = NULL;
    FP8R_TRY(fp8r_cuda_open(device->index, &cuda));
    fp8r_status status = fp8r_cuda_enter(cuda, &guard);
    if (status == FP8R_OK) {
        cublasStatus_t answer = library->create(&handle);
        fp8r_cuda_leave(&guard);
        if (answer != CUBLAS_STATUS_SUCCESS) status = fp8r_cublaslt_fail("cublasLtCreate", answer);
    }
    if (status != FP8R_OK) {
        fp8r_cuda_close(cuda);
        return status;
    }
    devices[device->index].cuda = cuda;
    devices[device->index].arch = device->arch;
    atomic_store_explicit(&devices[device->index].handle, handle, memory_order_release);
    return FP8R_OK;
}

bool fp8r_cublaslt_handle_make(const struct fp8r_cublaslt *library, const fp8r_device_facts *device,
                               fp8r_reason *reason)
{
    FP8R_REJECT_IF(device->index < 0 || device->index >= DEVICES_MAX, reason, SHAPE_MAX, "the device's index",
                   device->index, DEVICES_MAX - 1);
    pthread_mutex_lock(&lock);
    bool is_made = atomic_load_explicit(&devices[device->index].handle, memory_order_relaxed) ||
                   make(library, device) == FP8R_OK;
    pthread_mutex_unlock(&lock);
    if (!is_made) fp8r_error_clear(); /* the reason says it */
    FP8R_REJECT_IF(!is_made, reason, OTHER, "cublasLtCreate failed on this device", 0, 0);
    return true;
}

cublasLtHandle_t fp8r_cublaslt_handle(const fp8r_device_facts *device)
{
    if (device->index < 0 || device->index >= DEVICES_MAX) return NULL;
    cublasLtHandle_t handle = atomic_load_explicit(&devices[device->index].handle, memory_order_acquire);
    return handle && devices[device->index].arch == device->arch ? handle : NULL;
}
