/* Families as the command line names them: themselves, a case list, a model's layers; and their M.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_WANTED_FAMILIES_H
#define FP8R_WANTED_FAMILIES_H

#include "cli/verb.h"
#include "tune/families.h"

/* The values of --family, --safetensors, --trace, --cases, --m, --hf-config and --tp; NULL and none where not given. */
struct fp8r_wanted_families {
    struct fp8r_words families, safetensors, traces;
    const char *cases, *m, *hf_config, *tp;
};

bool fp8r_wanted_families_any(const struct fp8r_wanted_families *wanted);

/* Exit codes: USAGE, also where nothing is named ("nothing to VERB: ..."); BAD_DATA, INTERNAL. */
int fp8r_wanted_families_collect(const struct fp8r_wanted_families *wanted, const char *verb,
                                 struct fp8r_tune_families *families, struct fp8r_tool_error *error);

#endif
