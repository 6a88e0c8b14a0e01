/* Joins the two ways to a model's layers and repeats them for each tensor-parallel degree.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model_shapes.h"

#include <stdint.h>

#include "model/layer_shapes.h"

int fp8r_model_open(const char *hf_config, const char *const *safetensors, size_t count,
                    struct fp8r_model *model, struct fp8r_tool_error *error)
{
    if ((hf_config != NULL) == (count > 0)) {
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "give %s --hf-config config.json or --safetensors FILE...",
                                   hf_config == NULL ? "either" : "only one of");
    }
    model->is_config = hf_config != NULL;
    if (model->is_config) return fp8r_hf_config_read(hf_config, &model->config, error);
    return fp8r_checkpoint_open(safetensors, count, &model->checkpoint, error);
}

/* The number at *text, which then stands behind it and its comma. */
static int degree_read(const char **text, int64_t *degree, struct fp8r_tool_error *error)
{
    const char *at = *text;
    int64_t value = 0;
    while (*at >= '0' && *at <= '9' && value <= INT32_MAX) {
        value = value * 10 + (*at++ - '0');
    }
    bool is_last = *at == '\0';
    if (value < 1 || value > INT32_MAX || (!is_last && (*at != ',' || at[1] == '\0'))) {
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "tensor-parallel degrees \"%.60s\": they are whole numbers from 1, such as 1,2,8", *text);
    }
    *degree = value;
    *text = is_last ? at : at + 1;
    return FP8R_EXIT_GOOD;
}

int fp8r_model_shapes(const struct fp8r_model *model, const char *tp, bool fused,
                      struct fp8r_projection_list *list, struct fp8r_tool_error *error)
{
    size_t before = list->count;
    int rc = FP8R_EXIT_GOOD;
    const char *at = tp == NULL ? "1" : tp;
    do {
        int64_t degree = 0;
        rc = degree_read(&at, &degree, error);
        if (rc != FP8R_EXIT_GOOD) break;
        rc = model->is_config ? fp8r_hf_config_projections(&model->config, degree, fused, list, error)
                              : fp8r_layer_shapes_list(&model->checkpoint, degree, list, error);
    } while (rc == FP8R_EXIT_GOOD && *at != '\0');
    if (rc != FP8R_EXIT_GOOD) fp8r_projection_list_truncate(list, before);
    return rc;
}

void fp8r_model_fini(struct fp8r_model *model)
{
    fp8r_checkpoint_fini(&model->checkpoint);
}
