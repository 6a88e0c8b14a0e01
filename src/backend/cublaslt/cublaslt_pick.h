/* Which configuration the row would take itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CUBLASLT_PICK_H
#define FP8R_BACKEND_CUBLASLT_PICK_H

#include "backend/cublaslt/cublaslt_configs.h"

/* Row-wise scales with fast accumulation have a model; for all else the library's heuristic is the answer. */
bool fp8r_cublaslt_is_modelled(const fp8r_problem *problem);

/* The last m that the model answers for as it does for this one. */
int64_t fp8r_cublaslt_bracket_end(int64_t m);

/* Microseconds that the model expects of a configuration, the same up to the end of the bracket; 0 = it is not ranked.
 * Calls nothing. */
double fp8r_cublaslt_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config);

/* The configuration that the model ranks first; calls nothing. */
int fp8r_cublaslt_best(const fp8r_device_facts *device, const fp8r_problem *problem);

#endif
