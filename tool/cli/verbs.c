/* The list of verbs. To add one: a file with its table, and a line here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb.h"

#include <string.h>

#include "cli/options.h"

static const struct fp8r_verb *const verbs[] = {
    &fp8r_verb_info, &fp8r_verb_run,     &fp8r_verb_explain, &fp8r_verb_shapes, &fp8r_verb_bench,
    &fp8r_verb_tune, &fp8r_verb_conform, &fp8r_verb_table,   &fp8r_verb_report,
    &fp8r_verb_gate, &fp8r_verb_compare, &fp8r_verb_audit,   &fp8r_verb_fit,    &fp8r_verb_trace,
    &fp8r_verb_help,
};
enum { VERBS = sizeof verbs / sizeof *verbs };

const struct fp8r_verb *fp8r_verb_at(size_t index)
{
    return index < VERBS ? verbs[index] : NULL;
}

static const char *verb_name_at(const void *names, size_t index)
{
    (void)names;
    return verbs[index]->name;
}

const struct fp8r_verb *fp8r_verb_find(const char *name, struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
    const char *nearest = fp8r_nearest_name(name, verb_name_at, NULL, VERBS);
    fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "unknown verb \"%.60s\"%s%s: fp8route --help lists them",
                        name, nearest ? ", did you mean " : "", nearest ? nearest : "");
    return NULL;
}
