/* fp8route tune: measures families of products and writes their routes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/segment_row.h"
#include "cli/session.h"
#include "cli/tune_full.h"
#include "cli/wanted_families.h"
#include "tool_status.h"
#include "tune/entrants.h"
#include "tune/interrupt.h"
#include "tune/quick.h"
#include "tune/quick_routes.h"

/* Everything of one tune. */
struct tune {
    const struct tune_arguments *arguments;
    struct fp8r_session session;
    struct fp8r_measure_device device;
    struct fp8r_tune_families families;
    struct fp8r_points *results; /* one a family */
    struct fp8r_quick_routes routes;
    struct fp8r_progress_line line;
    bool is_wrong, is_cold;
};

static const double margin = 0.02, cold_factor = 4;

static void show_progress(void *user, const struct fp8r_progress *progress)
{
    struct tune *tune = user;
    char what[FP8R_TEXT_BYTES + 32];
    snprintf(what, sizeof what, "%s M=%" PRId64, progress->family, progress->m);
    fp8r_progress_show(&tune->line, what, progress->share, progress->left_seconds);
}

static int collect_families(struct tune *tune, struct fp8r_tool_error *error)
{
    const struct tune_arguments *arguments = tune->arguments;
    const struct fp8r_wanted_families wanted = {.families = arguments->families,
                                                .safetensors = arguments->safetensors,
                                                .traces = arguments->traces,
                                                .cases = arguments->cases,
                                                .m = arguments->m,
                                                .hf_config = arguments->hf_config,
                                                .tp = arguments->tp};
    tune->families.mode = fp8r_common_mode(&arguments->common);
    return fp8r_wanted_families_collect(&wanted, "tune", &tune->families, error);
}

static int open_all(struct tune *tune, struct fp8r_tool_error *error)
{
    char cleared[64], line[128];
    fp8r_entrants_clear_environment(cleared, sizeof cleared);
    if (*cleared) {
        snprintf(line, sizeof line, "%s: not looked at while tuning, where every backend races", cleared);
        fp8r_progress_note(line);
    }
    struct fp8r_common common = tune->arguments->common;
    common.routes = NULL; /* what was measured before must not decide who the default is */
    int code = fp8r_session_open(&common, FP8R_NO_ROUTE_FILES, &tune->session, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_session_measure(&tune->session, &tune->device, error);
    if (code != FP8R_EXIT_GOOD) return code;
    tune->results = calloc(tune->families.count, sizeof *tune->results);
    if (!tune->results) return fp8r_tool_error_memory(error, "the results");
    return tune->arguments->quick
               ? fp8r_quick_routes_open(&tune->routes, tune->session.context, &tune->families, tune->arguments->out,
                                        error)
               : FP8R_EXIT_GOOD;
}

static double planned_seconds(const struct tune *tune)
{
    double entrants = 0, points = 0;
    for (size_t i = 0; i < fp8r_context_backend_count(tune->session.context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        if (fp8r_context_backend(tune->session.context, i, &info) != FP8R_OK) continue;
        for (size_t j = 0; info.fits && info.configs[j]; j++)
            entrants++;
    }
    for (size_t i = 0; i < tune->families.count; i++)
        points += (double)tune->families.items[i].m_count;
    return entrants * points * FP8R_QUICK_CANDIDATE_MS / 1e3;
}

static int measure_all(struct tune *tune, struct fp8r_tool_error *error)
{
    struct fp8r_quick quick = {.context = tune->session.context,
                               .device = &tune->device,
                               .seed = (uint64_t)tune->arguments->seed,
                               .margin = margin,
                               .ms_are_given = tune->arguments->m != NULL || tune->arguments->cases != NULL,
                               .progress = show_progress,
                               .note = fp8r_progress_take_note,
                               .user = tune,
                               .all_seconds = planned_seconds(tune)};
    int code = FP8R_EXIT_GOOD;
    tune->is_cold = true;
    for (size_t i = 0; i < tune->families.count && code == FP8R_EXIT_GOOD; i++) {
        code = fp8r_quick_measure(&quick, &tune->families.items[i], &tune->results[i], error);
        tune->is_wrong |= code == FP8R_EXIT_FAILED;
        code = code == FP8R_EXIT_FAILED ? FP8R_EXIT_GOOD : code;
        tune->is_cold =
            tune->is_cold && quick.rotation.device && fp8r_rotation_is_cold(&quick.rotation, cold_factor);
        if (code == FP8R_EXIT_GOOD)
            code = fp8r_quick_routes_add(&tune->routes, &tune->families.items[i], &tune->results[i], error);
    }
    fp8r_rotation_fini(&quick.rotation);
    fp8r_progress_end();
    return code == FP8R_EXIT_INTERRUPTED
               ? fp8r_tool_error_set(error, code,
                                     "interrupted: nothing was written, and the same command starts again")
               : code;
}

/* Segments of a family, new (free them); NULL when out of memory. */
static struct fp8r_segment *segments_of(const struct fp8r_points *points, int *count)
{
    struct fp8r_segment *segments = calloc(points->count > 0 ? points->count : 1, sizeof *segments);
    *count = segments ? fp8r_points_segments(points, segments) : 0;
    return segments;
}

static int print_text(const struct tune *tune, struct fp8r_tool_error *error)
{
    struct fp8r_text_table table;
    fp8r_segment_table_init(&table);
    for (size_t i = 0; i < tune->families.count; i++) {
        int count = 0;
        struct fp8r_segment *segments = segments_of(&tune->results[i], &count);
        table.is_short |= !segments;
        for (int j = 0; j < count; j++)
            fp8r_segment_row(&table, tune->families.items[i].text, &segments[j]);
        free(segments);
    }
    int code = fp8r_segment_table_print(&table, margin, error);
    if (code == FP8R_EXIT_GOOD) printf("\nroutes: %s\n", tune->routes.update.path);
    return code;
}

static int print_json(const struct tune *tune, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "tune");
    fp8r_output_set_text(&output, output.root, "protocol", "quick");
    fp8r_output_set_text(&output, output.root, "out", tune->routes.update.path);
    json_t *families = fp8r_output_add_array(&output, output.root, "families");
    for (size_t i = 0; i < tune->families.count; i++) {
        json_t *family = fp8r_output_append_object(&output, families);
        fp8r_output_set_text(&output, family, "family", tune->families.items[i].text);
        json_t *list = fp8r_output_add_array(&output, family, "segments");
        int count = 0;
        struct fp8r_segment *segments = segments_of(&tune->results[i], &count);
        output.is_short |= !segments;
        for (int j = 0; j < count; j++)
            fp8r_segment_object(&output, fp8r_output_append_object(&output, list), &segments[j]);
        free(segments);
    }
    return fp8r_output_print(&output, error);
}

/* What only the full protocol does is refused, not passed over. */
static int check_quick(const struct tune_arguments *arguments, struct fp8r_tool_error *error)
{
    const struct fp8r_idle_option full[] = {
        {"shard", "--family and --cases say which problems one process measures", arguments->shard != NULL},
        {"budget", "--m says how much is measured", arguments->budget != NULL},
        {"samples", "it keeps no samples", arguments->samples != NULL},
        {"warm", "it always rotates operands out of the caches", arguments->warm}};
    return arguments->quick ? fp8r_options_refuse_idle("tune --quick", full, sizeof full / sizeof *full, error)
                            : FP8R_EXIT_GOOD;
}

/* What is measured without some backends would misroute processes that have them: it is kept apart, routes and samples. */
static int check_denied(const struct tune_arguments *arguments, struct fp8r_tool_error *error)
{
    const char *denied = getenv("FP8ROUTE_DENY");
    bool is_apart = arguments->out && (arguments->quick || arguments->samples);
    if (!denied || !*denied || is_apart)
        return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                               "FP8ROUTE_DENY is set, and routes measured without those backends are not for the user's own "
                               "file, which decides for processes that have them: unset it, or name %s",
                               arguments->quick ? "--out FILE" : "--out FILE and --samples DIR");
}

static int tune_all(struct tune *tune, struct fp8r_tool_error *error)
{
    size_t measured = 0;
    int code = check_quick(tune->arguments, error);
    if (code == FP8R_EXIT_GOOD) code = check_denied(tune->arguments, error);
    if (code == FP8R_EXIT_GOOD) code = collect_families(tune, error);
    if (code == FP8R_EXIT_GOOD) code = open_all(tune, error);
    if (code == FP8R_EXIT_GOOD && !tune->arguments->quick)
        return fp8r_tune_full(tune->arguments, tune->session.context, &tune->device, &tune->families, error);
    if (code == FP8R_EXIT_GOOD) code = measure_all(tune, error);
    if (code != FP8R_EXIT_GOOD) return code;
    for (size_t i = 0; i < tune->families.count; i++)
        measured += tune->results[i].count;
    if (measured == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                   "nothing was measured: no backend can run these products");
    code = fp8r_quick_routes_write(&tune->routes, tune->is_cold, fp8r_progress_take_note, NULL, error);
    if (code == FP8R_EXIT_GOOD)
        code = tune->arguments->common.json ? print_json(tune, error) : print_text(tune, error);
    return tune->is_wrong ? fp8r_exit_worse(code, FP8R_EXIT_FAILED) : code;
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    struct tune tune = {.arguments = words};
    fp8r_interrupt_watch();
    int code = tune_all(&tune, error);
    for (size_t i = 0; tune.results && i < tune.families.count; i++)
        fp8r_points_fini(&tune.results[i]);
    free(tune.results);
    fp8r_quick_routes_close(&tune.routes);
    fp8r_families_fini(&tune.families);
    fp8r_session_close(&tune.session);
    return code;
}

static const struct fp8r_option options[] = {
    {"quick", NULL, "measure on a grid over M only, some seconds a family", FP8R_OPTION_FLAG,
     offsetof(struct tune_arguments, quick), 0},
    {"family", "NxK[:OPTION]", "families to measure; with a batch B*MxNxK, where M stays a letter",
     FP8R_OPTION_LIST, offsetof(struct tune_arguments, families), 0},
    {"cases", "FILE", "measure the problems of a case list, one a line, each at its own M", FP8R_OPTION_TEXT,
     offsetof(struct tune_arguments, cases), 0},
    {"m", "LIST",
     "the values of M, with commas; powers of two from 1 to 2048 unless given, as far as time allows",
     FP8R_OPTION_TEXT, offsetof(struct tune_arguments, m), 0},
    {"hf-config", "FILE", "measure the layers of a model's config.json", FP8R_OPTION_TEXT,
     offsetof(struct tune_arguments, hf_config), 0},
    {"safetensors", "FILE", "measure the layers of a checkpoint", FP8R_OPTION_LIST,
     offsetof(struct tune_arguments, safetensors), 0},
    {"trace", "FILE",
     "measure what a program asked for, from what FP8ROUTE_TRACE=FILE wrote; of a family with many M the smallest, the "
     "largest and those that weigh most",
     FP8R_OPTION_LIST, offsetof(struct tune_arguments, traces), 0},
    {"tp", "LIST", "tensor-parallel degrees of the model, e.g. 1,2,8", FP8R_OPTION_TEXT,
     offsetof(struct tune_arguments, tp), 0},
    {"samples", "DIR",
     "the folder of raw samples, which the same command goes on with; beside the user's route file unless "
     "given (full protocol)",
     FP8R_OPTION_TEXT, offsetof(struct tune_arguments, samples), 0},
    {"budget", "TIME", "begin no problem after so long: 90s, 10m, 2h, or so many seconds (full protocol)", FP8R_OPTION_TEXT,
     offsetof(struct tune_arguments, budget), 0},
    {"shard", "I/N|auto", "measure this share of the problems, 1/N to N/N; auto: as the scheduler says (full protocol)",
     FP8R_OPTION_TEXT, offsetof(struct tune_arguments, shard), 0},
    {"warm", NULL, "leave operands in the caches: for machines with little memory, and tests (full protocol)",
     FP8R_OPTION_FLAG, offsetof(struct tune_arguments, warm), 0},
    {"out", "FILE", "the route file to add to, made where missing; the user's own for this machine unless given", FP8R_OPTION_TEXT,
     offsetof(struct tune_arguments, out), 0},
    {"seed", "N", "of the random operands and orders; 0 unless given", FP8R_OPTION_COUNT,
     offsetof(struct tune_arguments, seed), 0}};

const struct fp8r_verb fp8r_verb_tune = {
    .name = "tune",
    .summary = "measure families of products and write their routes",
    .words = "",
    .description =
        "Races every configuration of every backend that can run a family, at each M of a grid: verified "
        "first, then timed in rounds of random order on operands that rotate out of the caches.\n\n"
        "The full protocol then halves the borders between different winners and confirms each winner "
        "against the default with 30 to 120 pairs of samples; it replaces the default only where the whole "
        "interval of the median ratio lies beyond 2 %, otherwise it is a tie, and the default stays. Every "
        "sample is kept in a folder of files that are only appended to. Ctrl-C, a kill or a used-up budget "
        "lose nothing: the same command continues.\n\n"
        "--quick measures the grid alone and keeps no samples; Ctrl-C then ends without writing.\n\n"
        "Either way the routes are added to the file, the user's own or --out's: its entries of other families stay. A "
        "new entry replaces the old one of its family, but a quick one never a full one, and where a full tune measured nothing of a "
        "family, since its samples are finished, the file's entry stays. A file that cannot be added to (bad, "
        "of another machine or mode) is refused before anything is measured, and is left as it is.",
    .examples = "fp8route tune --family 4096x14336 6144x4096:bias --budget 10m\n"
                "fp8route tune --hf-config config.json --tp 1,8 --samples samples --shard 1/4\n"
                "fp8route tune --quick --family 4096x14336 6144x4096:bias\n"
                "fp8route tune --quick --family '16*Mx512x128' --m 1,8,64 --out routes.txt",
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct tune_arguments),
    .run = run,
};
