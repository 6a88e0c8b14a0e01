/* Planning and running between guards. SPDX-License-Identifier: Apache-2.0 */
#include "measure/trial.h"

#include "base/status.h"
#include "measure/clock.h"
#include "measure/remote.h"

enum { WORKSPACE_ALIGN = 256 };

fp8r_status fp8r_trial_create(fp8r_context *context, const fp8r_matmul *matmul, const char *backend,
                              enum fp8r_guard guard, struct fp8r_trial *trial)
{
    *trial = (struct fp8r_trial){0};
    const bool is_remote = fp8r_context_device(context)->kind != FP8R_DEVICE_CPU;
    const fp8r_matmul elsewhere = fp8r_remote_matmul(matmul);
    fp8r_status status = fp8r_plan_create(context, is_remote ? &elsewhere : matmul, backend, &trial->plan);
    if (status != FP8R_OK) return status;
    status = fp8r_measure_device_init(fp8r_context_device(context), false, &trial->device);
    if (status == FP8R_OK &&
        !fp8r_area_create(&trial->workspace, fp8r_plan_workspace(trial->plan), WORKSPACE_ALIGN, guard))
        status = fp8r_fail_memory("the workspace");
    if (status != FP8R_OK) fp8r_trial_destroy(trial);
    return status;
}

void fp8r_trial_destroy(struct fp8r_trial *trial)
{
    fp8r_plan_destroy(trial->plan);
    fp8r_area_destroy(&trial->workspace);
    fp8r_measure_device_fini(&trial->device);
    *trial = (struct fp8r_trial){0};
}

void fp8r_matmul_pointers(const fp8r_matmul *matmul, fp8r_pointers *pointers)
{
    *pointers = (fp8r_pointers){.struct_size = sizeof *pointers,
                                .m = matmul->a.rows,
                                .a = matmul->a.data,
                                .b = matmul->b.data,
                                .out = matmul->out.data,
                                .scale_a = matmul->scale_a.data,
                                .scale_b = matmul->scale_b.data,
                                .bias = matmul->bias.data};
}

fp8r_status fp8r_trial_call(const struct fp8r_measure_device *device, const fp8r_plan *plan,
                            const fp8r_matmul *matmul, void *workspace, size_t workspace_bytes)
{
    fp8r_pointers pointers;
    if (device->is_remote) return fp8r_remote_run(device, plan, matmul, 1, NULL);
    fp8r_matmul_pointers(matmul, &pointers);
    return fp8r_plan_run(plan, &pointers, workspace, workspace_bytes, NULL);
}

fp8r_status fp8r_trial_run(const struct fp8r_trial *trial, const fp8r_matmul *matmul)
{
    return fp8r_trial_call(&trial->device, trial->plan, matmul, trial->workspace.data, trial->workspace.data_bytes);
}

fp8r_status fp8r_trial_time(const struct fp8r_trial *trial, const fp8r_matmul *matmul, int64_t *elapsed_ns)
{
    enum { REMOTE_CALLS = 20 };
    if (trial->device.is_remote) {
        FP8R_TRY(fp8r_remote_run(&trial->device, trial->plan, matmul, REMOTE_CALLS, elapsed_ns));
        *elapsed_ns /= REMOTE_CALLS;
        return FP8R_OK;
    }
    int64_t start = fp8r_clock_ns();
    fp8r_status status = fp8r_trial_run(trial, matmul);
    *elapsed_ns = fp8r_clock_ns() - start;
    return status;
}
