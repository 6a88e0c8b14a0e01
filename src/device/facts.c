/* Reading a device's facts by kind, and holding them against capability windows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "device/cuda.h"
#include "device/device.h"

fp8r_status fp8r_device_facts_read(fp8r_device device, int32_t threads, uint32_t cpu_mask, fp8r_device_facts *facts)
{
    if (device.kind == FP8R_DEVICE_CUDA)
        return fp8r_cuda_facts_read(device.index, facts);
    if (device.kind != FP8R_DEVICE_CPU)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "device.kind is %d: it must be FP8R_DEVICE_CPU or FP8R_DEVICE_CUDA",
                         (int)device.kind);
    if (device.index != 0)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "device.index is %d: the CPU has index 0 only", (int)device.index);
    fp8r_cpu_facts_read(threads, facts);
    facts->cpu_features &= ~cpu_mask;
    return FP8R_OK;
}

/* How far a window came: kind, architecture, processor features, driver, all. */
static int depth(const fp8r_capability *window, const fp8r_device_facts *device)
{
    if (window->kind != device->kind)
        return 0;
    if (device->arch < window->arch_min || device->arch > window->arch_max)
        return 1;
    if ((window->cpu_features & device->cpu_features) != window->cpu_features)
        return 2;
    return device->driver < window->driver_min ? 3 : 4;
}

static const char *window_arch(const fp8r_capability *window)
{
    static const struct {
        int32_t low, high;
        const char *text;
    } texts[] = {{90, 90, "exactly sm_90"}, {89, 0, "sm_89 or later"}, {80, 0, "sm_80 or later"}, {75, 0, "sm_75 or later"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (window->arch_min == texts[i].low && (texts[i].high == 0 || window->arch_max == texts[i].high))
            return texts[i].text;
    return "another architecture";
}

static const char *missing_feature(uint32_t missing)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } texts[] = {{FP8R_CPU_AVX2, "AVX2"},         {FP8R_CPU_FMA, "FMA"},
                 {FP8R_CPU_F16C, "F16C"},         {FP8R_CPU_AVX512, "AVX-512 F, BW, DQ and VL"},
                 {FP8R_CPU_AVX512_VBMI, "AVX-512 VBMI"}, {FP8R_CPU_AVX512_BF16, "AVX-512 BF16"},
                 {FP8R_CPU_AMX_BF16, "AMX BF16"}, {FP8R_CPU_NEON, "Neon"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (missing & texts[i].bit)
            return texts[i].text;
    return "an unknown feature";
}

bool fp8r_capability_fits(const fp8r_capability *window, const fp8r_device_facts *device, fp8r_reason *reason)
{
    int reached = depth(window, device);
    uint32_t missing = window->cpu_features & ~device->cpu_features;
    FP8R_REJECT_IF(reached == 0, reason, DEVICE_KIND, window->kind == FP8R_DEVICE_CUDA ? "CUDA" : "CPU", device->kind,
                   window->kind);
    FP8R_REJECT_IF(reached == 1, reason, ARCH, window_arch(window), device->arch, window->arch_min);
    FP8R_REJECT_IF(reached == 2, reason, CPU_FEATURE, missing_feature(missing), device->cpu_features,
                   window->cpu_features);
    FP8R_REJECT_IF(reached == 3, reason, DRIVER, "driver", device->driver, window->driver_min);
    return true;
}

bool fp8r_capabilities_fit(const fp8r_capability *windows, size_t count, const fp8r_device_facts *device,
                           fp8r_reason *reason)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (depth(&windows[i], device) > depth(&windows[best], device))
            best = i;
    return fp8r_capability_fits(&windows[best], device, reason);
}
