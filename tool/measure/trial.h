/* One plan over operands in host memory, run between guards: is it right, and does it keep to its memory?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TRIAL_H
#define FP8R_TRIAL_H

#include <fp8route/fp8route.h>

#include "measure/inputs.h"

struct fp8r_trial {
    fp8r_plan *plan;
    struct fp8r_area workspace; /* exactly what the plan asks for */
};

/* backend: as in fp8r_plan_create, whose statuses it returns. */
fp8r_status fp8r_trial_create(fp8r_context *context, const fp8r_matmul *matmul, const char *backend,
                              enum fp8r_guard guard, struct fp8r_trial *trial);
void fp8r_trial_destroy(struct fp8r_trial *trial);

/* Runs it on the operands of a product. */
fp8r_status fp8r_trial_run(const struct fp8r_trial *trial, const fp8r_matmul *matmul);

/* What a plan is run with, from a product with data. */
void fp8r_matmul_pointers(const fp8r_matmul *matmul, fp8r_pointers *pointers);

#endif
