/* The full protocol of fp8route tune: records, routes and what is said about them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TUNE_FULL_H
#define FP8R_TUNE_FULL_H

#include "cli/verb.h"
#include "measure/measure_device.h"
#include "tune/families.h"

struct tune_arguments {
    struct fp8r_common common;
    bool quick, warm;
    struct fp8r_words families, safetensors, traces;
    const char *cases, *m, *out, *hf_config, *tp, *samples, *budget, *shard;
    int64_t seed;
};

int fp8r_tune_full(const struct tune_arguments *arguments, fp8r_context *context,
                   const struct fp8r_measure_device *device, const struct fp8r_tune_families *families,
                   struct fp8r_tool_error *error);

#endif
