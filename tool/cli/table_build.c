/* fp8route table build: samples in, a route file out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/deliver.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "plural.h"
#include "tune/route_build.h"
#include "tune/route_update.h"

/* Everything of one build. */
struct build {
    struct samples samples;
    int machine;
    struct fp8r_route_file routes;
    struct fp8r_build_summary summary;
    struct fp8r_route_update update; /* of --into */
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
                  {"outside_count", summary->outside},
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
static void print_text(const struct build *build, const char *out, bool is_added)
{
    const struct fp8r_build_summary *it = &build->summary;
    FILE *stream = out ? stdout : stderr;
    char now[64] = "";
    if (is_added) /* the routes are those of the whole file by now */
        snprintf(now, sizeof now, " added, %zu famil%s in the file now", build->routes.table.count,
                 fp8r_plural(build->routes.table.count, "y", "ies"));
    fprintf(stream, "%s: %zu famil%s, %zu segment%s%s; from %zu sample%s of %zu case%s in %d run%s\n",
            out ? out : "fp8route table", it->families, fp8r_plural(it->families, "y", "ies"), it->segments,
            fp8r_s(it->segments), now, it->samples, fp8r_s(it->samples), it->cases, fp8r_s(it->cases), it->runs,
            fp8r_s((size_t)it->runs));
    if (it->noisy > 0)
        fprintf(stream, "%zu case%s too noisy to say: the default stays\n", it->noisy, fp8r_plural(it->noisy, " is", "s are"));
    if (it->unfinished > 0)
        fprintf(stream, "%zu case%s not finished and left out: run the same tune again\n", it->unfinished,
                fp8r_plural(it->unfinished, " is", "s are"));
    if (it->outside > 0)
        fprintf(stream, "%zu problem%s of a gate or an audit %s not measured by a tune and %s not count: tune at that M\n",
                it->outside, fp8r_s(it->outside), fp8r_plural(it->outside, "was", "were"),
                fp8r_plural(it->outside, "does", "do"));
}

/* The file is looked at before the samples are judged: whoever is about to measure learns early whether it can be added to. */
static int choose(struct build *build, const struct fp8r_table_arguments *arguments, struct fp8r_tool_error *error)
{
    bool is_open = arguments->into && build->samples.machine_count == 1;
    int code = is_open ? fp8r_route_update_open(&build->update, arguments->into, &build->samples.machines[0], error)
                       : FP8R_EXIT_GOOD;
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_build_choose(&build->samples, arguments->machine, &build->machine, error);
    if (code == FP8R_EXIT_GOOD && arguments->into && !is_open)
        code = fp8r_route_update_open(&build->update, arguments->into, &build->samples.machines[build->machine], error);
    return code;
}

static int deliver(struct build *build, const struct fp8r_table_arguments *arguments, struct fp8r_tool_error *error)
{
    if (arguments->into)
        return fp8r_route_update_write(&build->update, &build->routes, NULL, fp8r_progress_take_note, NULL, error);
    return arguments->out || !arguments->common.json ? fp8r_deliver_routes(arguments->out, &build->routes, error)
                                                     : FP8R_EXIT_GOOD;
}

int fp8r_table_run_build(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                     struct fp8r_tool_error *error)
{
    struct build build = {0};
    const char *out = arguments->into ? arguments->into : arguments->out;
    if (arguments->into && arguments->out)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--out writes a file anew, --into adds to one: leave out one of the "
                                                           "two");
    int code = samples_read_paths(&build.samples, files, count, error);
    if (code == FP8R_EXIT_GOOD)
        code = choose(&build, arguments, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_build_routes(&build.samples, build.machine, &build.routes, &build.summary, error);
    if (code == FP8R_EXIT_GOOD)
        code = deliver(&build, arguments, error);
    if (code == FP8R_EXIT_GOOD && arguments->common.json)
        code = print_json(&build, out, error);
    else if (code == FP8R_EXIT_GOOD)
        print_text(&build, out, arguments->into != NULL);
    fp8r_route_update_close(&build.update);
    fp8r_route_file_fini(&build.routes);
    samples_fini(&build.samples);
    return code;
}
