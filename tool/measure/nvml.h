/* Clock, power and temperature of a GPU, by NVIDIA's management library where the driver brought one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_NVML_H
#define FP8R_NVML_H

#include <stdbool.h>

struct fp8r_nvml {
    void *library, *device;
    int (*clock)(void *device, int domain, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
};

/* bus_id: "0000:17:00.0". False where the library or the device is not to be had; then all reads give 0. Nothing needs
 * closing: the library is started once a process and stays. */
bool fp8r_nvml_open(const char *bus_id, struct fp8r_nvml *nvml);

/* As they are now; 0 where it cannot be told. */
int fp8r_nvml_clock_mhz(const struct fp8r_nvml *nvml);
int fp8r_nvml_power_watts(const struct fp8r_nvml *nvml);
int fp8r_nvml_temperature_celsius(const struct fp8r_nvml *nvml);

#endif
