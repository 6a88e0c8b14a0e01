/* One look at each segment of a route file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/route_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_status.h"
#include "tune/machine.h"

const char *fp8r_finding_name(enum fp8r_finding_kind kind)
{
    static const char *const names[] = {"unknown_backend", "unknown_config", "refused", "stale"};
    return names[kind];
}

static struct fp8r_finding *add_finding(struct fp8r_table_report *report, enum fp8r_finding_kind kind)
{
    if (report->count == report->capacity) {
        size_t capacity = report->capacity ? 2 * report->capacity : 16;
        struct fp8r_finding *findings = realloc(report->findings, capacity * sizeof *findings);
        if (!findings)
            return NULL;
        report->findings = findings;
        report->capacity = capacity;
    }
    struct fp8r_finding *finding = &report->findings[report->count++];
    *finding = (struct fp8r_finding){.kind = kind};
    report->miss_count += kind != FP8R_FINDING_STALE;
    return finding;
}

static bool has_config(const fp8r_backend_info *info, const char *config)
{
    for (size_t i = 0; info->configs[i]; i++)
        if (strcmp(info->configs[i], config) == 0)
            return true;
    return false;
}

/* Is there something to say about the segment? A backend that this build holds no code for is known by name only: of its
 * configurations and revision nothing can be said. info is NULL where there is no such backend. */
static bool judge(const struct fp8r_segment *segment, const fp8r_backend_info *info, bool is_here,
                  enum fp8r_finding_kind *kind, char *sentence, size_t size)
{
    if (!info) {
        *kind = FP8R_FINDING_BACKEND;
        snprintf(sentence, size, "there is no backend %s here: fp8route info lists them; one that Python or another program registers is there only "
                 "in that program", segment->backend);
    } else if (info->is_built && !has_config(info, segment->config)) {
        *kind = FP8R_FINDING_CONFIG;
        snprintf(sentence, size, "backend %s has no configuration %s: fp8route info lists them", segment->backend,
                 segment->config);
    } else if (is_here && !info->fits) {
        *kind = FP8R_FINDING_REFUSED;
        snprintf(sentence, size, "backend %s cannot run here: %s", segment->backend, info->sentence);
    } else if (info->is_built && strcmp(info->rev, segment->rev) != 0) {
        *kind = FP8R_FINDING_STALE;
        snprintf(sentence, size, "measured with revision \"%s\" of %s, which is \"%s\" now: measure it anew", segment->rev,
                 segment->backend, info->rev);
    } else {
        return false;
    }
    return true;
}

/* *found: the backend of that name is in *info. */
static int find_backend(const fp8r_context *context, const char *name, fp8r_backend_info *info, bool *found,
                        struct fp8r_tool_error *error)
{
    *found = false;
    for (size_t i = 0; i < fp8r_context_backend_count(context) && !*found; i++) {
        *info = (fp8r_backend_info){.struct_size = sizeof *info};
        int code = fp8r_tool_status(error, fp8r_context_backend(context, i, info));
        if (code != FP8R_EXIT_GOOD)
            return code;
        *found = strcmp(info->name, name) == 0;
    }
    return FP8R_EXIT_GOOD;
}

static int check_segment(const struct fp8r_entry *entry, const struct fp8r_segment *segment,
                         const fp8r_context *context, bool is_here, struct fp8r_table_report *report,
                         struct fp8r_tool_error *error)
{
    fp8r_backend_info info;
    enum fp8r_finding_kind kind;
    char sentence[sizeof report->findings->sentence];
    bool found;
    int code = find_backend(context, segment->backend, &info, &found, error);
    if (code != FP8R_EXIT_GOOD || !judge(segment, found ? &info : NULL, is_here, &kind, sentence, sizeof sentence))
        return code;
    struct fp8r_finding *finding = add_finding(report, kind);
    if (!finding)
        return fp8r_tool_error_memory(error, "the findings");
    finding->entry = entry;
    finding->segment = segment;
    memcpy(finding->sentence, sentence, sizeof sentence);
    return FP8R_EXIT_GOOD;
}

static int check_identity(const struct fp8r_route_file *file, const fp8r_context *context,
                          struct fp8r_table_report *report, struct fp8r_tool_error *error)
{
    struct fp8r_identity here;
    int code = fp8r_machine_identity(context, &here, error);
    if (code == FP8R_EXIT_GOOD)
        report->fits = fp8r_identity_fits(&file->identity, &here, report->misfit, sizeof report->misfit);
    return code;
}

int fp8r_table_check(const struct fp8r_route_file *file, const fp8r_context *context, bool is_here,
                     struct fp8r_table_report *report, struct fp8r_tool_error *error)
{
    *report = (struct fp8r_table_report){.fits = true};
    int code = is_here ? check_identity(file, context, report, error) : FP8R_EXIT_GOOD;
    for (size_t i = 0; i < file->table.count; i++) {
        const struct fp8r_entry *entry = &file->table.entries[i];
        for (int j = 0; j < entry->segment_count && code == FP8R_EXIT_GOOD; j++)
            code = check_segment(entry, &entry->segments[j], context, is_here && report->fits, report, error);
    }
    if (code != FP8R_EXIT_GOOD)
        fp8r_table_report_fini(report);
    return code;
}

void fp8r_table_report_fini(struct fp8r_table_report *report)
{
    free(report->findings);
    *report = (struct fp8r_table_report){0};
}
