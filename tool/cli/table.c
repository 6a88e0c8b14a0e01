/* fp8route table: route files, made from samples, shown, checked, compared, merged and exported.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <string.h>
#include <unistd.h>

#include "cli/session.h"
#include "tool_status.h"
#include "tune/machine.h"

/* The user's own file for the device. */
static int user_path(const struct fp8r_common *common, char path[FP8R_MACHINE_PATH_BYTES],
                     struct fp8r_tool_error *error)
{
    struct fp8r_session session;
    int code = fp8r_session_open(common, FP8R_NO_ROUTE_FILES, &session, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    fp8r_machine_user_path(session.context, path);
    fp8r_session_close(&session);
    if (!*path)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "no FILE is given and %s: name the route file",
                                   fp8r_machine_why_no_path());
    return code;
}

/* Actions on one file, which is the user's own where none is named. */
typedef int (*file_action)(const struct fp8r_route_file *file, const struct fp8r_common *common,
                           struct fp8r_tool_error *error);

static int run_on_file(const struct fp8r_common *common, const char *named, file_action run,
                       struct fp8r_tool_error *error)
{
    struct fp8r_route_file file;
    char path[FP8R_MACHINE_PATH_BYTES];
    int code = named ? FP8R_EXIT_GOOD : user_path(common, path, error);
    if (code == FP8R_EXIT_GOOD && !named && access(path, F_OK) != 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s is not there: fp8route tune writes it", path);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_route_file_read(named ? named : path, &file));
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = run(&file, common, error);
    fp8r_route_file_fini(&file);
    return code;
}

static int run_show(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                    struct fp8r_tool_error *error)
{
    return run_on_file(&arguments->common, count > 0 ? files[0] : NULL, fp8r_table_show, error);
}

static int run_check(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                     struct fp8r_tool_error *error)
{
    return run_on_file(&arguments->common, count > 0 ? files[0] : NULL, fp8r_table_print_check, error);
}

/* ---- The actions ---- */

enum { TAKES_OUT = 1, TAKES_MACHINE = 2, TAKES_LANGUAGE = 4, TAKES_INTO = 8 };

struct action {
    const char *name, *words;
    size_t least, most; /* files */
    unsigned takes;
    fp8r_table_action run;
};

static const struct action actions[] = {
    {"build", "SAMPLES...", 1, SIZE_MAX, TAKES_OUT | TAKES_INTO | TAKES_MACHINE, fp8r_table_run_build},
    {"show", "[FILE]", 0, 1, 0, run_show},
    {"check", "[FILE]", 0, 1, 0, run_check},
    {"diff", "OLD NEW", 2, 2, 0, fp8r_table_run_diff},
    {"merge", "FILE...", 1, SIZE_MAX, TAKES_OUT, fp8r_table_run_merge},
    {"export", "FILE --language c|python", 1, 1, TAKES_OUT | TAKES_LANGUAGE, fp8r_table_run_export}};

static const struct action *find_action(const char *name)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

/* An option that would be passed over is a mistake. */
static int check_options(const struct fp8r_table_arguments *arguments, const struct action *action,
                         struct fp8r_tool_error *error)
{
    const struct {
        const char *name;
        bool is_given;
        unsigned takes;
    } options[] = {{"out", arguments->out != NULL, TAKES_OUT},
                   {"into", arguments->into != NULL, TAKES_INTO},
                   {"machine", arguments->machine != 0, TAKES_MACHINE},
                   {"language", arguments->language != NULL, TAKES_LANGUAGE},
                   {"function", arguments->function != NULL, TAKES_LANGUAGE}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].is_given && !(action->takes & options[i].takes))
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--%s says nothing to table %s: fp8route table %s %s",
                                       options[i].name, action->name, action->name, action->words);
    return FP8R_EXIT_GOOD;
}

static int run(const void *verb_arguments, struct fp8r_tool_error *error)
{
    const struct fp8r_table_arguments *arguments = verb_arguments;
    const struct fp8r_words *words = &arguments->common.words;
    const struct action *action = find_action(words->items[0]);
    size_t count = words->count - 1;
    if (!action)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "unknown action \"%.40s\": fp8route table build|show|check|diff|merge|export",
                                   words->items[0]);
    if (count < action->least)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "something is missing: fp8route table %s %s", action->name,
                                   action->words);
    if (count > action->most)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "unexpected \"%.60s\": fp8route table %s %s",
                                   words->items[1 + action->most], action->name, action->words);
    int code = check_options(arguments, action, error);
    return code == FP8R_EXIT_GOOD ? action->run(arguments, words->items + 1, count, error) : code;
}

#define FIELD(name) offsetof(struct fp8r_table_arguments, name)

static const struct fp8r_option table_options[] = {
    {"out", "FILE", "where build, merge and export write; standard output unless given", FP8R_OPTION_TEXT, FIELD(out), 0},
    {"into", "FILE", "build: the route file to add to; its entries of other families stay", FP8R_OPTION_TEXT, FIELD(into), 0},
    {"machine", "K", "build: which machine's samples to take where there are several", FP8R_OPTION_COUNT, FIELD(machine), 1},
    {"language", "c|python", "export: the language", FP8R_OPTION_TEXT, FIELD(language), 0},
    {"function", "NAME", "export: the function's name; fp8_route unless given", FP8R_OPTION_TEXT, FIELD(function), 0}};

const struct fp8r_verb fp8r_verb_table = {
    .name = "table",
    .summary = "make, show, check, compare, merge or export route files",
    .words = "build|show|check|diff|merge|export FILE...",
    .description =
        "build makes a route file from the samples that tuners kept: files, or folders of *.jsonl (not the folders "
        "below them: name callables/ for what Python tunes measured). The same samples give "
        "the same bytes, in whatever order the files come. Samples of different machines are never pooled: --machine K "
        "takes one of those that are named then. Cases that no tuner finished are left out. With --into the routes are added to a file, as a tune does: its entries of "
        "other families stay, and a full measurement is not replaced by a quick one; whether the file can be added to is "
        "looked at first.\n\n"
        "show prints what a route file holds: the machine and the libraries it was measured with, and for each family of "
        "products and range of M the backend, its configuration, its time and that of the runner-up.\n\n"
        "check says whether a route file is well formed, and which of its routes would miss: a backend or configuration "
        "that is not known here. A route whose backend has another revision now is reported as stale; it is used all the "
        "same. With --device the file must also be of this machine, and its backends must run on it. Exit code 5: the "
        "file is not well formed; 1: a route would miss, or the file belongs to another machine.\n\n"
        "diff says where OLD and NEW choose differently and what both knew: another backend or configuration, a border "
        "that moved, families and rows that only one of them has. Exit code 1: somewhere one file is clear for one choice "
        "and the other file for another (a border that moved by less than a factor of 2 aside).\n\n"
        "merge joins route files of one machine, in whatever order they are named. Full measurements win over quick ones. "
        "Where two files have one family with different content, one of them is taken by fixed rules; to use the times of "
        "both, build from their samples.\n\n"
        "export writes a function in C or Python that takes the file's decisions without the library.\n\n"
        "Without FILE show and check take the user's own route file for this machine.",
    .examples = "fp8route table build samples/ --out cpu.routes\nfp8route table build samples/ --into cpu.routes\n"
                "fp8route table show\n"
                "fp8route table check --device cpu cpu.routes\nfp8route table diff old.routes new.routes\n"
                "fp8route table merge a.routes b.routes --out both.routes\n"
                "fp8route table export cpu.routes --language c --out route.c",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .has_context = true,
    .options = table_options,
    .option_count = sizeof table_options / sizeof *table_options,
    .arguments_bytes = sizeof(struct fp8r_table_arguments),
    .run = run,
};
