/* The way of measuring that belongs to a kind of device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/measure_device.h"

fp8r_status fp8r_measure_device_init(const fp8r_device_facts *facts, bool is_graph,
                                     struct fp8r_measure_device *device)
{
    if (facts->kind == FP8R_DEVICE_CUDA) return fp8r_measure_cuda_init(facts, is_graph, device);
    fp8r_measure_cpu_init(facts, device);
    return FP8R_OK;
}

void fp8r_measure_device_fini(struct fp8r_measure_device *device)
{
    if (device->close) device->close(device->user);
    *device = (struct fp8r_measure_device){0};
}
