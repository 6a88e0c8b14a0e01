/* Asking one row of the registry: with the answers that stand for functions a contract may leave out, and with what a row
 * of ours on a GPU is given in place of a bf16 or fp16 `a`: its rows, quantised in front of the product, in workspace,
 * unless the product quantises them itself (problem/quantising.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_ROW_H
#define FP8R_BACKEND_ROW_H

#include "backend/registry.h"

/* As in the contract. A refusal fills the reason. */
bool fp8r_row_supports(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config, fp8r_reason *reason);
int fp8r_row_pick(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem);
const char *fp8r_row_numerics(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                              int config);
double fp8r_row_expect(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config);
int64_t fp8r_row_horizon(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem);
size_t fp8r_row_workspace(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                          int config);

/* May it be planned and run while a stream is capturing? Asked of a configuration that supports the problem. */
bool fp8r_row_captures(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config, fp8r_reason *reason);

/* The row's pick; where that does not capture, what is expected to be the fastest of those that do. False with the reason:
 * none does. */
bool fp8r_row_pick_captured(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int *config, fp8r_reason *reason);

/* *state stays as it is where the row prepares nothing. Destroying is for what was prepared. */
fp8r_status fp8r_row_prepare(const struct fp8r_row *row, const fp8r_services *services, const fp8r_device_facts *device,
                             const fp8r_problem *problem, int config, void **state);
void fp8r_row_destroy(const struct fp8r_row *row, void *state);
fp8r_status fp8r_row_run(const struct fp8r_row *row, const fp8r_services *services, const fp8r_device_facts *device,
                         const void *state, const fp8r_problem *problem, int config, const fp8r_pointers *pointers,
                         void *workspace, size_t workspace_bytes, void *stream);

#endif
