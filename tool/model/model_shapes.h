/* The layers of a model, whichever way the user names it: a config.json or the checkpoint's files. What the
 * shapes verb prints and the tuner measures. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_MODEL_SHAPES_H
#define FP8R_MODEL_SHAPES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/checkpoint.h"
#include "model/hf_config.h"
#include "model/projection.h"
#include "tool_error.h"

/* Zero-initialise before open. */
struct fp8r_model {
    bool is_config;
    struct fp8r_hf_config config;      /* where is_config */
    struct fp8r_checkpoint checkpoint; /* where not */
};

/* Reads the config (a path), or where that is NULL the headers of count safetensors files or indexes. Neither
 * and both are USAGE errors. On failure the model is left empty. */
int fp8r_model_open(const char *hf_config, const char *const *safetensors, size_t count,
                    struct fp8r_model *model, struct fp8r_tool_error *error);

/* Appends one rank's layers for each tensor-parallel degree of tp ("1,2,8"; NULL is "1"). fused joins q, k, v
 * and gate, up of a config; a checkpoint's layers are listed as stored. On failure nothing is appended. */
int fp8r_model_shapes(const struct fp8r_model *model, const char *tp, bool fused,
                      struct fp8r_projection_list *list, struct fp8r_tool_error *error);

void fp8r_model_fini(struct fp8r_model *model);

#endif
