/* Planning and running between guards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/trial.h"

#include "base/status.h"

enum { WORKSPACE_ALIGN = 256 };

fp8r_status fp8r_trial_create(fp8r_context *context, const fp8r_matmul *matmul, const char *backend,
                              enum fp8r_guard guard, struct fp8r_trial *trial)
{
    *trial = (struct fp8r_trial){0};
    fp8r_status status = fp8r_plan_create(context, matmul, backend, &trial->plan);
    if (status != FP8R_OK) return status;
    if (fp8r_area_create(&trial->workspace, fp8r_plan_workspace(trial->plan), WORKSPACE_ALIGN, guard))
        return FP8R_OK;
    fp8r_trial_destroy(trial);
    return fp8r_fail_memory("the workspace");
}

void fp8r_trial_destroy(struct fp8r_trial *trial)
{
    fp8r_plan_destroy(trial->plan);
    fp8r_area_destroy(&trial->workspace);
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

fp8r_status fp8r_trial_run(const struct fp8r_trial *trial, const fp8r_matmul *matmul)
{
    fp8r_pointers pointers;
    fp8r_matmul_pointers(matmul, &pointers);
    return fp8r_plan_run(trial->plan, &pointers, trial->workspace.data, trial->workspace.data_bytes, NULL);
}
