/* A build without CUDA measures no GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "measure/measure_device.h"

fp8r_status fp8r_measure_cuda_init(const fp8r_device_facts *facts, bool is_graph,
                                   struct fp8r_measure_device *device)
{
    (void)facts, (void)is_graph, (void)device;
    return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "this build of fp8route holds no CUDA code");
}
