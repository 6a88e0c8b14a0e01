/* The few functions of the management library that are needed, found at run time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/nvml.h"

#include <dlfcn.h>
#include <stddef.h>

/* Numbers of the library's interface: success, the multiprocessors' clock, the GPU's own sensor. */
enum { SUCCESS = 0, CLOCK_SM = 1, SENSOR_GPU = 0 };

/* ISO C has no cast from object to function pointer; POSIX has this. */
static bool find(void *library, const char *name, void **function)
{
    *function = dlsym(library, name);
    return *function != NULL;
}

bool fp8r_nvml_open(const char *bus_id, struct fp8r_nvml *nvml)
{
    int (*start)(void);
    int (*by_bus)(const char *, void **);
    *nvml = (struct fp8r_nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->library) return false;
    bool found = find(nvml->library, "nvmlInit_v2", (void **)&start) &&
                 find(nvml->library, "nvmlDeviceGetHandleByPciBusId_v2", (void **)&by_bus) &&
                 find(nvml->library, "nvmlDeviceGetClockInfo", (void **)&nvml->clock) &&
                 find(nvml->library, "nvmlDeviceGetPowerUsage", (void **)&nvml->power) &&
                 find(nvml->library, "nvmlDeviceGetTemperature", (void **)&nvml->temperature);
    if (found && start() == SUCCESS && by_bus(bus_id, &nvml->device) == SUCCESS) return true;
    nvml->device = NULL;
    fp8r_nvml_close(nvml);
    return false;
}

void fp8r_nvml_close(struct fp8r_nvml *nvml)
{
    int (*stop)(void);
    if (nvml->library && find(nvml->library, "nvmlShutdown", (void **)&stop)) (void)stop();
    if (nvml->library) dlclose(nvml->library);
    *nvml = (struct fp8r_nvml){0};
}

int fp8r_nvml_clock_mhz(const struct fp8r_nvml *nvml)
{
    unsigned mhz;
    return nvml->device && nvml->clock(nvml->device, CLOCK_SM, &mhz) == SUCCESS ? (int)mhz : 0;
}

int fp8r_nvml_power_watts(const struct fp8r_nvml *nvml)
{
    unsigned milliwatts;
    return nvml->device && nvml->power(nvml->device, &milliwatts) == SUCCESS ? (int)(milliwatts / 1000) : 0;
}

int fp8r_nvml_temperature_celsius(const struct fp8r_nvml *nvml)
{
    unsigned celsius;
    return nvml->device && nvml->temperature(nvml->device, SENSOR_GPU, &celsius) == SUCCESS ? (int)celsius : 0;
}
