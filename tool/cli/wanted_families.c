/* Collecting families. SPDX-License-Identifier: Apache-2.0 */
#include "cli/wanted_families.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/m_list.h"
#include "model/model_shapes.h"
#include "tune/trace_read.h"

/* The layers of a model, whichever way it is named. */
static int add_model(const struct fp8r_wanted_families *wanted, struct fp8r_tune_families *to,
                     struct fp8r_tool_error *error)
{
    struct fp8r_model model = {0};
    struct fp8r_projection_list all = {0}, families = {0};
    char text[64];
    int code = fp8r_model_open(wanted->hf_config, wanted->safetensors.items, wanted->safetensors.count,
                               &model, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_model_shapes(&model, wanted->tp, true, &all, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_projection_list_families(&all, &families, error);
    for (size_t i = 0; i < families.count && code == FP8R_EXIT_GOOD; i++) {
        snprintf(text, sizeof text, "%" PRId64 "x%" PRId64, families.items[i].n, families.items[i].k);
        code = fp8r_families_add(to, text, error);
    }
    fp8r_projection_list_fini(&families);
    fp8r_projection_list_fini(&all);
    fp8r_model_fini(&model);
    return code;
}

bool fp8r_wanted_families_any(const struct fp8r_wanted_families *wanted)
{
    return wanted->families.count > 0 || wanted->safetensors.count > 0 || wanted->traces.count > 0 ||
           wanted->cases || wanted->hf_config;
}

/* Everything but what a trace adds behind it: weights. */
static int collect(const struct fp8r_wanted_families *wanted, const struct fp8r_traced *traced,
                   struct fp8r_tune_families *families, struct fp8r_tool_error *error)
{
    int64_t *ms = NULL;
    size_t m_count = 0;
    int code = FP8R_EXIT_GOOD;
    if (wanted->hf_config || wanted->safetensors.count > 0) code = add_model(wanted, families, error);
    for (size_t i = 0; i < wanted->families.count && code == FP8R_EXIT_GOOD; i++)
        code = fp8r_families_add(families, wanted->families.items[i], error);
    if (code == FP8R_EXIT_GOOD && wanted->cases) code = fp8r_families_read(families, wanted->cases, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_families_add_traced(families, traced, FP8R_FAMILIES_POINTS, error);
    if (code == FP8R_EXIT_GOOD && wanted->m) code = fp8r_m_list_parse(wanted->m, &ms, &m_count, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_families_set_ms(families, ms, m_count, error);
    free(ms);
    return code;
}

int fp8r_wanted_families_collect(const struct fp8r_wanted_families *wanted, const char *verb,
                                 struct fp8r_tune_families *families, struct fp8r_tool_error *error)
{
    struct fp8r_traced traced = {0};
    if (!fp8r_wanted_families_any(wanted))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "nothing to %s: --family NxK, --cases FILE, --hf-config FILE, --safetensors FILE or "
                                   "--trace FILE says what",
                                   verb);
    int code = fp8r_trace_read(&traced, wanted->traces.items, wanted->traces.count, error);
    if (code == FP8R_EXIT_GOOD) code = collect(wanted, &traced, families, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_families_weigh_traced(families, &traced, error);
    if (code == FP8R_EXIT_GOOD && families->count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "the trace holds no product: nothing to %s", verb);
    fp8r_traced_fini(&traced);
    return code;
}
