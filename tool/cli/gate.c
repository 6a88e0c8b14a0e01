/* fp8route gate: does a route file still hold here?
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/gate_print.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/share.h"
#include "cli/time_limit.h"
#include "plural.h"
#include "tool_input.h"
#include "tool_status.h"
#include "tune/entrants.h"
#include "tune/gate.h"
#include "tune/interrupt.h"
#include "tune/machine.h"
#include "tune/shard.h"
#include "tune/unseen.h"

/* What a loss must exceed to count: routes may lose what a tune does not ask for, and a little more (docs/gate.md). */
static const double routes_margin = 0.03, unseen_margin = 0.02;

struct gate_arguments {
    struct fp8r_common common;
    struct fp8r_words families;
    const char *budget, *samples, *markdown, *share, *shard, *margin;
    int64_t unseen, seed;
};

/* A gate under way. */
struct work {
    const struct gate_arguments *arguments;
    struct fp8r_session session;
    struct fp8r_measure_device device;
    struct fp8r_route_file file;
    struct record record;
    struct fp8r_progress_line line;
    struct fp8r_gate_setting setting;
    char machine[FP8R_MACHINE_TEXT_BYTES];
    double budget_seconds;
    struct fp8r_tune_families families;
    struct gate_wanted wanted;
    FILE *markdown; /* NULL: none */
};

static void show_progress(void *user, const struct fp8r_progress *progress)
{
    struct work *work = user;
    char what[FP8R_TEXT_BYTES + 32];
    snprintf(what, sizeof what, "%s M=%" PRId64, progress->family, progress->m);
    fp8r_progress_show(&work->line, what, progress->share, progress->left_seconds);
}

/* ---- Opening ---- */

/* What says which routes are measured is refused where none are, not passed over. */
static int check_unseen(const struct gate_arguments *arguments, struct fp8r_tool_error *error)
{
    const struct fp8r_idle_option of_routes[] = {
        {"shard", "give each process a --seed of its own", arguments->shard != NULL},
        {"share", "N says how much is measured", arguments->share != NULL},
        {"family", "it draws families of its own", arguments->families.count > 0}};
    return arguments->unseen > 0
               ? fp8r_options_refuse_idle("gate --unseen", of_routes, sizeof of_routes / sizeof *of_routes, error)
               : FP8R_EXIT_GOOD;
}

static int read_shard(struct work *work, struct fp8r_tool_error *error)
{
    const struct gate_arguments *arguments = work->arguments;
    struct fp8r_shard shard = {.index = 1, .count = 1};
    int code = arguments->shard ? fp8r_shard_here(arguments->shard, &shard, error) : FP8R_EXIT_GOOD;
    work->wanted.shard = shard.index;
    work->wanted.shards = shard.count;
    return code;
}

static int read_arguments(struct work *work, struct fp8r_tool_error *error)
{
    const struct gate_arguments *arguments = work->arguments;
    int code = check_unseen(arguments, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_share_parse("share", arguments->share, 0, &work->wanted.share, error);
    if (code == FP8R_EXIT_GOOD) code = read_shard(work, error);
    work->setting.margin = arguments->unseen > 0 ? unseen_margin : routes_margin;
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_share_parse("margin", arguments->margin, 1e-6, &work->setting.margin, error);
    if (code == FP8R_EXIT_GOOD && arguments->unseen > UNSEEN_MOST)
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--unseen is %" PRId64 ": it must be at most %d",
                                   arguments->unseen, UNSEEN_MOST);
    if (code != FP8R_EXIT_GOOD) return code;
    work->setting.path = arguments->common.words.items[0];
    work->setting.machine = work->machine;
    work->setting.seed = (uint64_t)arguments->seed;
    if (arguments->common.routes)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--routes is not taken here: the routes to hold against are the "
                                   "first word");
    return fp8r_time_limit_parse("budget", arguments->budget, &work->budget_seconds, error);
}

/* What would hide an untuned machine's own choice. */
static void clear_environment(void)
{
    char cleared[64], line[128];
    fp8r_entrants_clear_environment(cleared, sizeof cleared);
    if (*cleared) {
        snprintf(line, sizeof line, "%s: not looked at by the gate, where the routes decide", cleared);
        fp8r_progress_note(line);
    }
}

static int open_record(struct work *work, struct fp8r_tool_error *error)
{
    const struct gate_arguments *arguments = work->arguments;
    struct fp8r_route_file header = {.mode = work->file.mode, .is_cold = work->file.is_cold,
                                     .is_behind_both = fp8r_machine_is_behind_both(work->file.mode)};
    char name[48] = "gate";
    if (work->wanted.shards > 1)
        snprintf(name, sizeof name, "gate-%d-of-%d", work->wanted.shard, work->wanted.shards);
    int code = arguments->samples ? fp8r_machine_header(work->session.context, header.mode, header.is_cold, &header, error)
                                  : fp8r_machine_identity(work->session.context, &header.identity, error);
    if (code == FP8R_EXIT_GOOD)
        code = record_open(&work->record, arguments->samples, name, &header, work->setting.seed,
                           work->setting.margin, error);
    if (code == FP8R_EXIT_GOOD) record_forget(&work->record); /* of interest is how it is now */
    return code;
}

/* Keys hold the way of timing, which the file says. */
static int read_families(struct work *work, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    work->families.mode = work->file.mode;
    work->wanted.families = &work->families;
    for (size_t i = 0; i < work->arguments->families.count && code == FP8R_EXIT_GOOD; i++)
        code = fp8r_families_add(&work->families, work->arguments->families.items[i], error);
    return code;
}

static int open_all(struct work *work, struct fp8r_tool_error *error)
{
    char misfit[256];
    struct fp8r_identity here;
    int code = read_arguments(work, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_route_file_read(work->setting.path, &work->file));
    if (code == FP8R_EXIT_GOOD) code = fp8r_tool_input_digest(work->setting.path, work->setting.digest, error);
    if (code == FP8R_EXIT_GOOD) code = read_families(work, error);
    if (code != FP8R_EXIT_GOOD) return code;
    clear_environment();
    code = fp8r_session_open(&work->arguments->common, FP8R_NO_ROUTE_FILES, &work->session, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_machine_identity(work->session.context, &here, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (!fp8r_identity_fits(&work->file.identity, &here, misfit, sizeof misfit))
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s is not of this machine: %s",
                                   work->setting.path, misfit);
    fp8r_identity_format(&here, work->machine);
    work->session.mode = work->file.mode; /* measured as the routes were */
    return fp8r_session_measure(&work->session, &work->device, error);
}

/* ---- Markdown ---- */

static int fail_markdown(const struct work *work, struct fp8r_tool_error *error)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "--markdown: %.200s cannot be written: %s",
                               work->arguments->markdown, strerror(errno));
}

/* What it holds stays until there is something to write. */
static int open_markdown(struct work *work, struct fp8r_tool_error *error)
{
    struct stat summary, routes;
    if (!work->arguments->markdown) return FP8R_EXIT_GOOD;
    if (stat(work->arguments->markdown, &summary) == 0 && stat(work->setting.path, &routes) == 0 &&
        summary.st_dev == routes.st_dev && summary.st_ino == routes.st_ino)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--markdown names the route file itself: it must name another one");
    work->markdown = fopen(work->arguments->markdown, "ae");
    return work->markdown ? FP8R_EXIT_GOOD : fail_markdown(work, error);
}

/* Appending begins at the end, which is moved to the beginning: of a device or a pipe that says nothing. */
static void empty_markdown(struct work *work)
{
    if (work->markdown) (void)!ftruncate(fileno(work->markdown), 0);
}

static int close_markdown(struct work *work, struct fp8r_tool_error *error)
{
    if (!work->markdown) return FP8R_EXIT_GOOD;
    bool failed = ferror(work->markdown) != 0;
    return fclose(work->markdown) != 0 || failed ? fail_markdown(work, error) : FP8R_EXIT_GOOD;
}

/* Behind all arguments that can be refused, so that a refusal leaves no file; in front of all that is measured, so that minutes of
 * work do not end at a folder that is not there. */
static int open_outputs(struct work *work, struct fp8r_tool_error *error)
{
    const bool is_new = work->arguments->markdown && access(work->arguments->markdown, F_OK) != 0;
    int code = open_markdown(work, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = open_record(work, error);
    if (code == FP8R_EXIT_GOOD)
        empty_markdown(work);
    else if (is_new)
        (void)unlink(work->arguments->markdown);
    return code;
}

/* ---- The routes ---- */

/* More shards than families leave some without. Nobody may take that for routes that hold. */
static int say_nothing(const struct work *work, struct fp8r_tool_error *error)
{
    const struct gate_wanted *wanted = &work->wanted;
    size_t families = work->families.count > 0 ? work->families.count : work->file.table.count;
    if (families == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "nothing was measured: %.200s has no routes",
                                   work->setting.path);
    return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                               "nothing was measured: shard %d of %d has no family, %zu %s dealt out; the others "
                               "decide", wanted->shard, wanted->shards, families, fp8r_plural(families, "is", "are"));
}

static int say_routes(const struct work *work, const struct gate_routes *routes, bool is_wrong,
                      struct fp8r_tool_error *error)
{
    size_t counts[GATE_VERDICTS];
    int code = gate_routes_exit(routes);
    fp8r_gate_count(routes, counts);
    if (routes->count == 0) return say_nothing(work, error);
    if (is_wrong) code = fp8r_exit_worse(code, FP8R_EXIT_FAILED);
    if (code == FP8R_EXIT_INCONCLUSIVE)
        return fp8r_tool_error_set(
            error, code,
            "inconclusive: the noise leaves %zu route%s open; a quieter machine or a wider "
            "--margin decides %s",
            counts[GATE_INCONCLUSIVE], fp8r_s(counts[GATE_INCONCLUSIVE]),
            fp8r_plural(counts[GATE_INCONCLUSIVE], "it", "them"));
    if (code == FP8R_EXIT_UNMEASURED)
        return fp8r_tool_error_set(
            error, code, "%zu route%s of %.200s could not be measured here, %zu %s left by the budget",
            counts[GATE_UNMEASURED], fp8r_s(counts[GATE_UNMEASURED]), work->setting.path, counts[GATE_LEFT],
            fp8r_plural(counts[GATE_LEFT], "was", "were"));
    return code;
}

static int print_routes(const struct work *work, struct gate_routes *routes, struct fp8r_tool_error *error)
{
    if (routes->count > 0) qsort(routes->items, routes->count, sizeof *routes->items, gate_route_compare);
    if (work->markdown) fp8r_gate_print_markdown(&work->setting, routes, work->markdown);
    return work->arguments->common.json ? fp8r_gate_print_json(&work->setting, routes, error)
                                        : fp8r_gate_print_text(&work->setting, routes, error);
}

static int gate_routes(struct work *work, struct fp8r_tool_error *error)
{
    struct fp8r_table_report report;
    struct gate_routes routes;
    struct gate gate = {.context = work->session.context,
                        .device = &work->device,
                        .record = &work->record,
                        .seed = work->setting.seed,
                        .margin = work->setting.margin,
                        .is_warm = !work->file.is_cold,
                        .budget_seconds = work->budget_seconds,
                        .progress = show_progress,
                        .note = fp8r_progress_take_note,
                        .user = work};
    int code = fp8r_table_check(&work->file, gate.context, true, &report, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = gate_routes_init(&work->file, &report, &work->wanted, gate.seed, &routes, error);
    if (code == FP8R_EXIT_GOOD) {
        code = open_outputs(work, error);
        if (code == FP8R_EXIT_GOOD) code = gate_measure(&gate, &routes, error);
        fp8r_progress_end();
        if (code == FP8R_EXIT_INTERRUPTED)
            code = fp8r_tool_error_set(error, code, "interrupted: no verdict; the same command starts again");
        if (code == FP8R_EXIT_GOOD) code = print_routes(work, &routes, error);
        if (code == FP8R_EXIT_GOOD) code = say_routes(work, &routes, gate.is_wrong, error);
        gate_routes_fini(&routes);
    }
    fp8r_table_report_fini(&report);
    return code;
}

/* ---- Unseen problems ---- */

static int say_unseen(const struct unseen *unseen, struct fp8r_tool_error *error)
{
    int code = unseen_exit(unseen);
    if (unseen->is_wrong) code = fp8r_exit_worse(code, FP8R_EXIT_FAILED);
    return code == FP8R_EXIT_UNMEASURED
               ? fp8r_tool_error_set(error, code, "no unseen problem was measured within the budget")
               : code;
}

static int print_unseen(const struct work *work, struct unseen *unseen, struct fp8r_tool_error *error)
{
    if (work->markdown) fp8r_unseen_print_markdown(&work->setting, unseen, work->markdown);
    return work->arguments->common.json ? fp8r_unseen_print_json(&work->setting, unseen, error)
                                        : fp8r_unseen_print_text(&work->setting, unseen, error);
}

static int gate_unseen(struct work *work, struct fp8r_tool_error *error)
{
    struct fp8r_session routed;
    struct fp8r_common common = work->arguments->common;
    struct unseen unseen = {.context = work->session.context,
                            .device = &work->device,
                            .record = &work->record,
                            .seed = work->setting.seed,
                            .margin = work->setting.margin,
                            .is_warm = !work->file.is_cold,
                            .wanted = work->arguments->unseen,
                            .budget_seconds = work->budget_seconds,
                            .progress = show_progress,
                            .note = fp8r_progress_take_note,
                            .user = work};
    common.routes = work->setting.path;
    int code = fp8r_session_open(&common, FP8R_NO_ROUTE_FILES, &routed, error);
    if (code != FP8R_EXIT_GOOD) return code;
    unseen.routed = routed.context;
    code = open_outputs(work, error);
    if (code == FP8R_EXIT_GOOD) code = unseen_measure(&unseen, error);
    fp8r_progress_end();
    if (code == FP8R_EXIT_INTERRUPTED)
        code = fp8r_tool_error_set(error, code, "interrupted: no verdict; the same command starts again");
    if (code == FP8R_EXIT_GOOD) code = print_unseen(work, &unseen, error);
    if (code == FP8R_EXIT_GOOD) code = say_unseen(&unseen, error);
    unseen_fini(&unseen);
    fp8r_session_close(&routed);
    return code;
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    struct work work = {.arguments = words, .wanted = {.share = 1}};
    struct fp8r_tool_error closing = {0};
    fp8r_interrupt_watch();
    int code = open_all(&work, error);
    if (code == FP8R_EXIT_GOOD) code = work.arguments->unseen > 0 ? gate_unseen(&work, error) : gate_routes(&work, error);
    code = fp8r_tool_error_join(error, code, &closing, close_markdown(&work, &closing));
    code = fp8r_tool_error_join(error, code, &closing, record_close(&work.record, &closing));
    fp8r_session_close(&work.session);
    fp8r_route_file_fini(&work.file);
    fp8r_families_fini(&work.families);
    return code;
}

static const struct fp8r_option options[] = {
    {"budget", "TIME", "begin no measurement that would end behind it: 90s, 5m, 2h, or so many seconds", FP8R_OPTION_TEXT,
     offsetof(struct gate_arguments, budget), 0},
    {"share", "SHARE", "measure only this share of the routes: stale ones first, then at random",
     FP8R_OPTION_TEXT, offsetof(struct gate_arguments, share), 0},
    {"family", "NxK[:OPTION]", "measure the routes of these families only", FP8R_OPTION_LIST,
     offsetof(struct gate_arguments, families), 0},
    {"shard", "I/N|auto", "measure the routes of this share of the families, 1/N to N/N; auto: as the scheduler says",
     FP8R_OPTION_TEXT, offsetof(struct gate_arguments, shard), 0},
    {"unseen", "N", "measure N random problems, at most 10000, instead of the routes, and what the routes lose on them",
     FP8R_OPTION_COUNT, offsetof(struct gate_arguments, unseen), 1},
    {"margin", "SHARE", "a loss of less does not count; unless given 3%, with --unseen 2%", FP8R_OPTION_TEXT,
     offsetof(struct gate_arguments, margin), 0},
    {"samples", "DIR", "append every sample to files in this folder", FP8R_OPTION_TEXT,
     offsetof(struct gate_arguments, samples), 0},
    {"markdown", "FILE", "also write a summary for a pull request", FP8R_OPTION_TEXT,
     offsetof(struct gate_arguments, markdown), 0},
    {"seed", "N", "of the random operands, orders and problems; 0 unless given", FP8R_OPTION_COUNT,
     offsetof(struct gate_arguments, seed), 0}};

const struct fp8r_verb fp8r_verb_gate = {
    .name = "gate",
    .summary = "measure a route file anew: does it still hold?",
    .words = "ROUTES",
    .description = "Races the chosen backend of each route against the route's runner-up and against the "
                   "default, at the first, the middle and the last M where the file has it measured (where it does not say, at the "
                   "route's borders and in its middle), in 30 to 120 pairs each. A route is a regression where a "
                   "rival is surely faster by more "
                   "than the margin, or the result is wrong; fine where that is surely not so; inconclusive "
                   "where the noise is wider than "
                   "the question. Routes whose backend has changed since they were measured (stale) come "
                   "first. The file must be of this "
                   "machine.\n\n"
                   "--unseen N draws random problems instead: N and K from 512 to 32768, M up to 512 on a "
                   "CPU and 16384 on a GPU, within "
                   "what memory and the budget allow (6 s a problem unless given). Everything that can run a "
                   "problem races; the best is "
                   "picked on one half of the rounds and charged on the other. The gate then fails where the "
                   "mean regret is above the "
                   "margin, or one problem surely loses more than 10 %.\n\n"
                   "Exit code 0: the routes hold; 1: a regression; 3: inconclusive; 4: something could not "
                   "be measured; 5: the file is "
                   "bad or of another machine; 75: interrupted.",
    .examples = "fp8route gate cpu.routes --budget 5m --markdown summary.md\n"
                "fp8route gate cpu.routes --share 0.2 --seed 7\n"
                "fp8route gate gpu.routes --family 4096x14336 --shard 1/2\n"
                "fp8route gate cpu.routes --unseen 50 --json",
    .words_min = 1,
    .words_max = 1,
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct gate_arguments),
    .run = run,
};
