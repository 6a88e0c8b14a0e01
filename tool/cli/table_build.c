/* fp8route table build: samples in, a route file out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/deliver.h"
#include "cli/output.h"
#include "cli/table.h"
#include "plural.h"
#include "tune/route_build.h"

/* Everything of one build. */
struct build {
    struct samples samples;
    int machine;
    struct fp8r_route_file routes;
    struct fp8r_build_summary summary;
};

static int print_json(const struct build *build, const char *out, struct fp8r_tool_error *error)
{
    const struct fp8r_build_summary *summary = &build->summary;
    const struct {
        const char *name;
        size_t count;
    } counts[] = {{"run_count", (size_t)summary->runs},
                  {"sample_count", summary->samples},   {"case_count", summary->cases},
                  {"noisy_count", summary->noisy},      {"unfinished_count", summary->unfinished},
                  {"family_count", summary->families},  {"segment_count", summary->segments}};
    char machine[FP8R_HEADER_BYTES], *text = NULL;
    int code = out ? FP8R_EXIT_GOOD : fp8r_deliver_format(&build->routes, &text, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    struct fp8r_output output;
    fp8r_header_describe(&build->routes, machine);
    fp8r_output_init(&output, "table_build");
    fp8r_output_set_text(&output, output.root, "path", out);
    fp8r_output_set_text(&output, output.root, "machine", machine);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        fp8r_output_set(&output, output.root, counts[i].name, json_integer((json_int_t)counts[i].count));
    fp8r_output_set_text(&output, output.root, "text", text);
    free(text);
    return fp8r_output_print(&output, error);
}

/* Beside the route file itself: on standard error where that goes to standard output. */
static void print_text(const struct build *build, const char *out)
{
    const struct fp8r_build_summary *it = &build->summary;
    FILE *stream = out ? stdout : stderr;
    fprintf(stream, "%s: %zu famil%s, %zu segment%s; from %zu sample%s of %zu case%s in %d run%s\n",
            out ? out : "fp8route table", it->families, fp8r_plural(it->families, "y", "ies"), it->segments,
            fp8r_s(it->segments), it->samples, fp8r_s(it->samples), it->cases, fp8r_s(it->cases), it->runs,
            fp8r_s((size_t)it->runs));
    if (it->noisy > 0)
        fprintf(stream, "%zu case%s too noisy to say: the default stays\n", it->noisy, fp8r_plural(it->noisy, " is", "s are"));
    if (it->unfinished > 0)
        fprintf(stream, "%zu case%s not finished and left out: run the same tune again\n", it->unfinished,
                fp8r_plural(it->unfinished, " is", "s are"));
}

int fp8r_table_run_build(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                     struct fp8r_tool_error *error)
{
    struct build build = {0};
    int code = samples_read_paths(&build.samples, files, count, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_build_choose(&build.samples, arguments->machine, &build.machine, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_build_routes(&build.samples, build.machine, &build.routes, &build.summary, error);
    if (code == FP8R_EXIT_GOOD && (arguments->out || !arguments->common.json))
        code = fp8r_deliver_routes(arguments->out, &build.routes, error);
    if (code == FP8R_EXIT_GOOD && arguments->common.json)
        code = print_json(&build, arguments->out, error);
    else if (code == FP8R_EXIT_GOOD)
        print_text(&build, arguments->out);
    fp8r_route_file_fini(&build.routes);
    samples_fini(&build.samples);
    return code;
}
