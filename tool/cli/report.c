/* fp8route report: a page of one machine's samples.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/output.h"
#include "cli/verb.h"
#include "report/page.h"
#include "tool_file.h"
#include "tool_input.h"
#include "tune/analysis.h"
#include "tune/record.h"

struct report_arguments {
    struct fp8r_common common;
    const char *out, *regret;
    int64_t machine;
};

/* What `fp8route gate --unseen N --json` printed. */
static int read_regret(const char *path, struct page_regret *regret, struct fp8r_tool_error *error)
{
    json_error_t where;
    const char *text;
    if (!path)
        return FP8R_EXIT_GOOD;
    FILE *file = NULL;
    int code = fp8r_tool_input_stream(path, &file, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    json_t *object = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (!object)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s, line %d: %s", path, where.line, where.text);
    if (json_unpack(object, "{s:{s:i, s:F, s:F, s:s}}", "unseen", "counted", &regret->counted, "mean_regret", &regret->mean,
                    "worst_regret", &regret->worst, "text", &text) != 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: the output of `fp8route gate --unseen N --json` is wanted",
                                   path);
    else
        snprintf(regret->text, sizeof regret->text, "%s", text);
    json_decref(object);
    return code;
}

static int choose_machine(const struct samples *samples, int64_t wanted, int *machine, struct fp8r_tool_error *error)
{
    if (samples->machine_count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                   "these files hold no samples (folders inside of a folder are not read)");
    if (wanted == 0 && samples->machine_count > 1)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "these samples are of %d machines or protocols: --machine 1 to %d says which",
                                   samples->machine_count, samples->machine_count);
    if (wanted > samples->machine_count)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--machine %lld: there are %d", (long long)wanted,
                                   samples->machine_count);
    *machine = wanted > 0 ? (int)wanted - 1 : 0;
    return FP8R_EXIT_GOOD;
}

static int make_page(const struct report_arguments *arguments, const struct samples *samples,
                     const struct page_regret *regret, struct fp8r_tool_error *error)
{
    struct analysis analysis;
    struct markup markup = {0};
    int machine, code = choose_machine(samples, arguments->machine, &machine, error);
    if (code == FP8R_EXIT_GOOD)
        code = analysis_init(samples, machine, &analysis, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = page_add(samples, machine, &analysis, regret, &markup, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_file_write(arguments->out, markup.text, error);
    markup_fini(&markup);
    analysis_fini(&analysis);
    return code;
}

static int print(const struct report_arguments *arguments, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    if (!arguments->common.json) {
        printf("%s\n", arguments->out);
        return FP8R_EXIT_GOOD;
    }
    fp8r_output_init(&output, "report");
    fp8r_output_set_text(&output, output.root, "page", arguments->out);
    return fp8r_output_print(&output, error);
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    const struct report_arguments *arguments = words;
    struct samples samples = {0};
    struct page_regret regret = {0};
    int code = arguments->out ? FP8R_EXIT_GOOD
                              : fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--out FILE is missing: where the page goes");
    if (code == FP8R_EXIT_GOOD)
        code = read_regret(arguments->regret, &regret, error);
    for (size_t i = 0; i < arguments->common.words.count && code == FP8R_EXIT_GOOD; i++)
        code = samples_read_path(&samples, arguments->common.words.items[i], error);
    if (code == FP8R_EXIT_GOOD)
        code = make_page(arguments, &samples, &regret, error);
    samples_fini(&samples);
    return code == FP8R_EXIT_GOOD ? print(arguments, error) : code;
}

static const struct fp8r_option options[] = {
    {"out", "FILE", "where the page is written", FP8R_OPTION_TEXT, offsetof(struct report_arguments, out), 0},
    {"machine", "K", "which of several machines or protocols in the samples, counted from 1", FP8R_OPTION_COUNT,
     offsetof(struct report_arguments, machine), 1},
    {"regret", "FILE", "the JSON of `fp8route gate --unseen N`, to be shown", FP8R_OPTION_TEXT,
     offsetof(struct report_arguments, regret), 0}};

const struct fp8r_verb fp8r_verb_report = {
    .name = "report",
    .summary = "draw what was measured, on one HTML page",
    .words = "SAMPLES...",
    .description =
        "Reads sample files, or folders of them (not the folders below, as callables/ of Python tunes), and writes one page that needs neither network nor script: the machine and "
        "the protocol, a heat map of the gain over the default by family and M with the borders of the routes, a curve a "
        "family of time against M for every backend with intervals and the machine's limits, the routes, and what stayed "
        "open. All numbers are made from the samples when the page is.",
    .examples = "fp8route report samples --out report.html",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct report_arguments),
    .run = run,
};
