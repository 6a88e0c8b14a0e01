/* Reserving three times as much address space as is mapped, by the driver's virtual memory functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

static struct {
    CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*allow)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*unreserve)(CUdeviceptr, size_t);
} driver;

static bool find_all(void)
{
    const struct {
        const char *name;
        void **function;
    } functions[] = {{"cuMemGetAllocationGranularity", (void **)&driver.granularity},
                     {"cuMemAddressReserve", (void **)&driver.reserve},
                     {"cuMemCreate", (void **)&driver.create},
                     {"cuMemMap", (void **)&driver.map},
                     {"cuMemSetAccess", (void **)&driver.allow},
                     {"cuMemUnmap", (void **)&driver.unmap},
                     {"cuMemRelease", (void **)&driver.release},
                     {"cuMemAddressFree", (void **)&driver.unreserve}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        if (cudaGetDriverEntryPointByVersion(functions[i].name, functions[i].function, 12000, cudaEnableDefault, &found) !=
                cudaSuccess || found != cudaDriverEntryPointSuccess)
            return false;
    }
    return true;
}

bool gpu_pages_init(struct gpu_pages *pages, size_t bytes, bool at_end)
{
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle physical;
    CUdeviceptr base;
    size_t page;
    if (!driver.unreserve && !find_all()) return false;
    assert_int_equal(driver.granularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
    const size_t mapped = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0), reserved = mapped + 2 * page;
    assert_int_equal(driver.reserve(&base, reserved, page, 0, 0), CUDA_SUCCESS);
    assert_int_equal(driver.create(&physical, mapped, &properties, 0), CUDA_SUCCESS);
    assert_int_equal(driver.map(base + page, mapped, 0, physical, 0), CUDA_SUCCESS);
    assert_int_equal(driver.allow(base + page, mapped, &access, 1), CUDA_SUCCESS);
    *pages = (struct gpu_pages){.data = (void *)(uintptr_t)(base + page + (at_end ? mapped - bytes : 0)),
                                .base = base,
                                .physical = physical,
                                .reserved_bytes = reserved,
                                .mapped_bytes = mapped};
    return true;
}

void gpu_pages_fini(struct gpu_pages *pages)
{
    if (!pages->reserved_bytes) return;
    const CUdeviceptr start = pages->base + (pages->reserved_bytes - pages->mapped_bytes) / 2;
    assert_int_equal(driver.unmap(start, pages->mapped_bytes), CUDA_SUCCESS);
    assert_int_equal(driver.release(pages->physical), CUDA_SUCCESS);
    assert_int_equal(driver.unreserve(pages->base, pages->reserved_bytes), CUDA_SUCCESS);
    *pages = (struct gpu_pages){0};
}
