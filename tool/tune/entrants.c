/* Listing entrants.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/entrants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "problem/grammar.h"
#include "tool_status.h"

static void set_entrant(struct fp8r_entrant *entrant, const fp8r_backend_info *info, const char *config)
{
    snprintf(entrant->backend, sizeof entrant->backend, "%s", info->name);
    snprintf(entrant->config, sizeof entrant->config, "%s", config);
    snprintf(entrant->rev, sizeof entrant->rev, "%s", info->rev);
    snprintf(entrant->label, sizeof entrant->label, "%.63s:%.63s", info->name, config);
}

/* Counts, and where entrants is not NULL writes them. */
static int walk(const fp8r_context *context, struct fp8r_entrant *entrants, int *count,
                struct fp8r_tool_error *error)
{
    *count = 0;
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        int code = fp8r_tool_status(error, fp8r_context_backend(context, i, &info));
        if (code != FP8R_EXIT_GOOD) return code;
        for (size_t j = 0; info.fits && info.configs[j]; j++, (*count)++)
            if (entrants) set_entrant(&entrants[*count], &info, info.configs[j]);
    }
    return FP8R_EXIT_GOOD;
}

int fp8r_entrants_list(const fp8r_context *context, struct fp8r_entrant **entrants, int *count,
                       struct fp8r_tool_error *error)
{
    int code = walk(context, NULL, count, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (*count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "no backend can run on this device");
    *entrants = calloc((size_t)*count, sizeof **entrants);
    if (!*entrants) return fp8r_tool_error_memory(error, "the list of backends");
    return walk(context, *entrants, count, error);
}

static int find(const struct fp8r_entrant *entrants, int count, const fp8r_candidate *candidate)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entrants[i].backend, candidate->backend) == 0 &&
            strcmp(entrants[i].config, candidate->config) == 0)
            return i;
    return -1;
}

int fp8r_entrants_fallback(fp8r_context *context, const fp8r_matmul *matmul,
                           const struct fp8r_entrant *entrants, int count, int *fallback,
                           struct fp8r_tool_error *error)
{
    fp8r_explanation *explanation = NULL;
    int code = fp8r_tool_status(error, fp8r_explain(context, matmul, &explanation));
    *fallback = -1;
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *candidate = fp8r_explanation_candidate(explanation, i);
        if (candidate->verdict == FP8R_VERDICT_CHOSEN) *fallback = find(entrants, count, candidate);
    }
    fp8r_explanation_destroy(explanation);
    return code;
}

/* Where a product is too large to be asked about, its default is nobody's. */
static int is_fallback_at(fp8r_context *context, const char *family, int64_t m, const struct fp8r_entrant *entrants,
                          int count, int fallback, bool *is_it, struct fp8r_tool_error *error)
{
    fp8r_matmul member;
    int found = -1;
    *is_it = false;
    if (fp8r_family_member(family, m, &member) != FP8R_OK) return FP8R_EXIT_GOOD;
    int code = fp8r_entrants_fallback(context, &member, entrants, count, &found, error);
    *is_it = found == fallback;
    return code;
}

int fp8r_entrants_fallback_last(fp8r_context *context, const char *family, int64_t m,
                                const struct fp8r_entrant *entrants, int count, int fallback, int64_t *last,
                                struct fp8r_tool_error *error)
{
    const int64_t finest = 512; /* a share of m */
    const int64_t most = 4 * fp8r_size_min(m, INT64_MAX / 8);
    bool is_it = true;
    int code = FP8R_EXIT_GOOD;
    *last = m;
    for (int64_t next = m + 1; code == FP8R_EXIT_GOOD && is_it && next <= most; next += 1 + next / finest) {
        code = is_fallback_at(context, family, next, entrants, count, fallback, &is_it, error);
        if (is_it) *last = next;
    }
    return code;
}

void fp8r_entrants_clear_environment(char *text, size_t size)
{
    static const char *const names[] = {"FP8ROUTE_BACKEND", "FP8ROUTE_UNROUTED"};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " and " : "", names[i]);
        unsetenv(names[i]);
    }
}
