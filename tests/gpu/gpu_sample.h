/* A sample's memory on a GPU, and one row of the registry run on it without any context: operands go over
 * with their offsets, so that alignment and guards are the same, out comes back to be judged.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_SAMPLE_H
#define FP8R_TESTS_GPU_SAMPLE_H

#include <fp8route/backend.h>

#include "problem/problem.h"
#include "support/sample.h"

struct gpu_sample {
    struct sample *sample;
    fp8r_problem problem;
    void *memory[SAMPLE_OPERANDS]; /* as large as the sample's blocks, to the byte */
};

/* Facts of the current device; ends the program as skipped where there is none. */
fp8r_device_facts gpu_facts(void);

/* A context on GPU 0 that reads the route files of the source tree, if one is this GPU's, and no environment; ends the
 * program where it cannot be made. */
fp8r_context *gpu_routed_context(void);

/* Fails the running test where a call failed. */
void gpu_check(const char *call, int error);

/* Fails the running test where memory is short. The sample must outlive it. */
void gpu_sample_init(struct gpu_sample *gpu, struct sample *sample);
void gpu_sample_fini(struct gpu_sample *gpu);

/* Runs a configuration for the first m rows of each batch item on an out full of poison, and fetches out back
 * into the sample's block. */
void gpu_sample_run(struct gpu_sample *gpu, const fp8r_backend *backend, const fp8r_device_facts *facts,
                    int config, int64_t m);

#endif
