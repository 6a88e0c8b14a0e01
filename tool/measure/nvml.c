/* The few functions of the management library that are needed, found at run time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* Numbers of the library's interface: success, the multiprocessors' clock, the GPU's own sensor. */
enum { SUCCESS = 0, CLOCK_SM = 1, SENSOR_GPU = 0 };

/* ISO C has no cast from object to function pointer; POSIX has this. */
static bool find(void *library, const char *name, void **function)
{
    *function = dlsym(library, name);
    return *function != NULL;
}

/* Starting the library takes as long as some hundred products, and tools open a device for every configuration that they
 * look at: it is started once and stays. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fp8r_nvml started; /* without a device; library NULL where it could not be */
static int (*device_by_bus)(const char *, void **);

static void start(void)
{
    int (*init)(void);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    bool found = find(library, "nvmlInit_v2", (void **)&init) &&
                 find(library, "nvmlDeviceGetHandleByPciBusId_v2", (void **)&device_by_bus) &&
                 find(library, "nvmlDeviceGetClockInfo", (void **)&started.clock) &&
                 find(library, "nvmlDeviceGetPowerUsage", (void **)&started.power) &&
                 find(library, "nvmlDeviceGetTemperature", (void **)&started.temperature);
    if (found && init() == SUCCESS)
        started.library = library;
    else
        dlclose(library);
}

bool fp8r_nvml_open(const char *bus_id, struct fp8r_nvml *nvml)
{
    pthread_once(&once, start);
    *nvml = started;
    if (!nvml->library || device_by_bus(bus_id, &nvml->device) != SUCCESS) nvml->device = NULL;
    return nvml->device != NULL;
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
