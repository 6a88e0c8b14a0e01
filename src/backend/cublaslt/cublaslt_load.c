/* Opening one cuBLASLt: its functions, its version, its path. Which files to try is not known here.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "backend/cublaslt/cublaslt_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/shared_object.h"
#include "base/status.h"

/* POSIX promises that a void pointer holds a function's address; C has no cast for it without a warning. */
static bool find(void *handle, const char *symbol, void *function)
{
    void *address = dlsym(handle, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* Returns the symbol that is missing, NULL where none is. */
static const char *find_all(void *handle, struct fp8r_cublaslt *library)
{
#define FIND(member, symbol)                                                                                 \
    if (!find(handle, #symbol, &library->member)) return #symbol;
    FP8R_CUBLASLT_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

static void find_path(const char *file, struct fp8r_cublaslt *library)
{
    Dl_info info;
    void *address;
    memcpy(&address, &library->multiply, sizeof address);
    bool is_known = dladdr(address, &info) != 0 && info.dli_fname;
    snprintf(library->path, sizeof library->path, "%s", is_known ? info.dli_fname : file);
}

enum fp8r_cublaslt_verdict fp8r_cublaslt_open(const char *file, bool resident_only,
                                              struct fp8r_cublaslt *library)
{
    memset(library, 0, sizeof *library);
    void *handle = fp8r_shared_object_open(file, RTLD_NOW | RTLD_LOCAL | (resident_only ? RTLD_NOLOAD : 0));
    if (!handle) return FP8R_CUBLASLT_ABSENT;
    const char *missing = find_all(handle, library);
    if (missing) {
        snprintf(library->name, sizeof library->name, "%s", missing);
        dlclose(handle);
        return FP8R_CUBLASLT_INCOMPLETE;
    }
    library->version = (int64_t)library->get_version();
    if (library->version < FP8R_CUBLASLT_VERSION_MIN) {
        dlclose(handle);
        return FP8R_CUBLASLT_OLD;
    }
    snprintf(library->name, sizeof library->name, "cublaslt %d.%d.%d", (int)(library->version / 10000),
             (int)(library->version / 100 % 100), (int)(library->version % 100));
    find_path(file, library);
    return FP8R_CUBLASLT_GOOD;
}

fp8r_status fp8r_cublaslt_fail(const char *call, cublasStatus_t status)
{
    fp8r_status code = status == CUBLAS_STATUS_NOT_SUPPORTED  ? FP8R_ERROR_UNSUPPORTED
                       : status == CUBLAS_STATUS_ALLOC_FAILED ? FP8R_ERROR_OUT_OF_MEMORY
                                                              : FP8R_ERROR_DEVICE;
    return fp8r_fail(code, "%s answered %d, %s", call, (int)status,
                     status == CUBLAS_STATUS_NOT_SUPPORTED      ? "not supported"
                     : status == CUBLAS_STATUS_INVALID_VALUE    ? "invalid value"
                     : status == CUBLAS_STATUS_NOT_INITIALIZED  ? "not initialised"
                     : status == CUBLAS_STATUS_ALLOC_FAILED     ? "out of memory"
                     : status == CUBLAS_STATUS_EXECUTION_FAILED ? "the kernel could not be launched"
                                                                : "see cublasStatus_t");
}
