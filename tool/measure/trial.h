/* One plan over operands in host memory, run between guards: is it right, and does it keep to its memory? On a GPU the
 * operands go over for each run, and out comes back. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TRIAL_H
#define FP8R_TRIAL_H

#include <fp8route/fp8route.h>

#include "measure/inputs.h"
#include "measure/measure_device.h"

struct fp8r_trial {
    fp8r_plan *plan;
    struct fp8r_area workspace; /* exactly what the plan asks for; on a GPU it is there, and this stays as it is */
    struct fp8r_measure_device device;
};

/* backend: as in fp8r_plan_create, whose statuses it returns. */
fp8r_status fp8r_trial_create(fp8r_context *context, const fp8r_matmul *matmul, const char *backend,
                              enum fp8r_guard guard, struct fp8r_trial *trial);
void fp8r_trial_destroy(struct fp8r_trial *trial);

/* Runs it on the operands of a product. */
fp8r_status fp8r_trial_run(const struct fp8r_trial *trial, const fp8r_matmul *matmul);

/* The time of one call on them; out is as after a run. */
fp8r_status fp8r_trial_time(const struct fp8r_trial *trial, const fp8r_matmul *matmul, int64_t *elapsed_ns);

/* A run of any plan on a device of one's own, which several threads may do at once. DEVICE also where memory of a GPU
 * beside out was written; on a CPU that is for the guards of the operands to tell. */
fp8r_status fp8r_trial_call(const struct fp8r_measure_device *device, const fp8r_plan *plan,
                            const fp8r_matmul *matmul, void *workspace, size_t workspace_bytes);

/* What a plan is run with, from a product with data. */
void fp8r_matmul_pointers(const fp8r_matmul *matmul, fp8r_pointers *pointers);

#endif
