/* Building route files from samples.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/route_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plural.h"
#include "tune/analysis.h"

__attribute__((format(printf, 3, 4))) static void put(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void fp8r_header_describe(const struct fp8r_route_file *header, char text[FP8R_HEADER_BYTES])
{
    const struct fp8r_identity *identity = &header->identity;
    char facts[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(identity, facts);
    *text = '\0';
    put(text, FP8R_HEADER_BYTES, "%s %s", identity->kind == FP8R_DEVICE_CUDA ? "cuda" : "cpu", facts);
    for (int i = 0; i < identity->library_count; i++)
        put(text, FP8R_HEADER_BYTES, ", %s %s", identity->libraries[i].backend, identity->libraries[i].version);
    put(text, FP8R_HEADER_BYTES, ", %s %s %s%s", header->is_quick ? "quick" : "full",
        header->mode == FP8R_MODE_GRAPH ? "graph" : "eager", header->is_cold ? "cold" : "warm",
        header->is_behind_both ? " behind=both" : "");
}

/* A machine with a finished case. */
struct listed {
    char line[FP8R_HEADER_BYTES];
    int machine;
};

static int compare_listed(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->line, ((const struct listed *)b)->line);
}

static int list_machines(const struct samples *samples, struct listed *list)
{
    int count = 0;
    for (int i = 0; i < samples->machine_count; i++) {
        bool is_used = false;
        for (size_t j = 0; j < samples->case_count && !is_used; j++)
            is_used = samples->cases[j].machine == i && samples->cases[j].is_done;
        if (!is_used)
            continue;
        fp8r_header_describe(&samples->machines[i], list[count].line);
        list[count++].machine = i;
    }
    qsort(list, (size_t)count, sizeof *list, compare_listed);
    return count;
}

/* As many of them as a line holds. */
static int refuse_several(const struct listed *list, int count, struct fp8r_tool_error *error)
{
    char names[400] = "";
    for (int i = 0; i < count; i++)
        put(names, sizeof names, "%s%d: %.*s", i > 0 ? "; " : "", i + 1, count == 2 ? 190 : 120, list[i].line);
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                               "these samples are of %d machines, which are never pooled (--machine K takes one): %s",
                               count, names);
}

static int choose(const struct listed *list, int count, int64_t wanted, int *machine, struct fp8r_tool_error *error)
{
    if (count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                   "no case of these samples is finished, or there are none (folders inside of a folder "
                                   "are not read): nothing to build");
    if (wanted > count)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--machine is %lld: these samples are of %d machine%s",
                                   (long long)wanted, count, fp8r_s((size_t)count));
    if (wanted == 0 && count > 1)
        return refuse_several(list, count, error);
    *machine = list[wanted > 0 ? wanted - 1 : 0].machine;
    return FP8R_EXIT_GOOD;
}

int fp8r_build_choose(const struct samples *samples, int64_t wanted, int *machine, struct fp8r_tool_error *error)
{
    struct listed *list = calloc((size_t)samples->machine_count + 1, sizeof *list);
    if (!list)
        return fp8r_tool_error_memory(error, "the machines of samples");
    int code = choose(list, list_machines(samples, list), wanted, machine, error);
    free(list);
    return code;
}

/* All of a gate's or an audit's: never to be finished. */
static bool is_of_another(const struct sample_case *it)
{
    bool has_any = false;
    for (int i = 0; i < it->count; i++)
        for (size_t j = 0; j < it->candidates[i].count; j++) {
            if (sample_is_tuned(&it->candidates[i].samples[j]))
                return false;
            has_any = true;
        }
    return has_any;
}

static size_t count_samples(const struct sample_case *it)
{
    size_t count = 0;
    for (int i = 0; i < it->count; i++)
        count += it->candidates[i].count;
    return count;
}

static void sum_up(const struct samples *samples, int machine, const struct analysis *analysis,
                   const struct fp8r_route_file *file, struct fp8r_build_summary *summary)
{
    *summary = (struct fp8r_build_summary){.families = file->table.count};
    for (int i = 0; i < samples->run_count; i++)
        summary->runs += samples->runs[i].machine == machine;
    for (size_t i = 0; i < samples->case_count; i++) {
        if (samples->cases[i].machine != machine || samples->cases[i].is_done)
            continue;
        *(is_of_another(&samples->cases[i]) ? &summary->outside : &summary->unfinished) += 1;
    }
    for (size_t i = 0; i < file->table.count; i++)
        summary->segments += (size_t)file->table.entries[i].segment_count;
    for (size_t i = 0; i < analysis->count; i++) {
        const struct analysis_family *family = &analysis->families[i];
        summary->cases += family->count;
        summary->noisy += analysis_noisy(family);
        for (size_t j = 0; j < family->count; j++)
            summary->samples += count_samples(family->points[j].it);
    }
}

int fp8r_build_routes(const struct samples *samples, int machine, struct fp8r_route_file *file,
                      struct fp8r_build_summary *summary, struct fp8r_tool_error *error)
{
    struct analysis analysis;
    int code = analysis_init(samples, machine, &analysis, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    if (analysis.count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "no case of a tune is finished in these samples: nothing "
                                                                "to build");
    if (code == FP8R_EXIT_GOOD)
        code = analysis_routes(samples, machine, &analysis, file, error);
    if (code == FP8R_EXIT_GOOD)
        sum_up(samples, machine, &analysis, file, summary);
    analysis_fini(&analysis);
    return code;
}
