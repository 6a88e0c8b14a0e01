/* fp8route table: route files, shown and checked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <string.h>

#include "cli/session.h"
#include "tool_status.h"
#include "tune/machine.h"

struct action {
    const char *name;
    int (*run)(const struct fp8r_route_file *file, const struct fp8r_common *common, struct fp8r_tool_error *error);
};

static const struct action actions[] = {{"show", fp8r_table_show}, {"check", fp8r_table_print_check}};

static const struct action *find_action(const char *name)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

/* The user's own file for the device. */
static int user_path(const struct fp8r_common *common, char path[FP8R_MACHINE_PATH_BYTES],
                     struct fp8r_tool_error *error)
{
    struct fp8r_session session;
    int code = fp8r_session_open(common, FP8R_NO_ROUTE_FILES, &session, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = fp8r_machine_user_path(session.context, path, error);
    fp8r_session_close(&session);
    if (code == FP8R_EXIT_GOOD && !*path)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "no FILE is given and HOME is not set: name the route file");
    return code;
}

static int run(const void *arguments, struct fp8r_tool_error *error)
{
    const struct fp8r_common *common = arguments;
    struct fp8r_route_file file;
    char path[FP8R_MACHINE_PATH_BYTES];
    const struct action *action = find_action(common->words.items[0]);
    if (!action)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "unknown action \"%.40s\": fp8route table show|check [FILE]",
                                   common->words.items[0]);
    bool is_named = common->words.count > 1;
    int code = is_named ? FP8R_EXIT_GOOD : user_path(common, path, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_route_file_read(is_named ? common->words.items[1] : path, &file));
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = action->run(&file, common, error);
    fp8r_route_file_fini(&file);
    return code;
}

const struct fp8r_verb fp8r_verb_table = {
    .name = "table",
    .summary = "show or check a route file",
    .words = "show|check [FILE]",
    .description =
        "show prints what a route file holds: the machine and the libraries it was measured with, and for each family of "
        "products and range of M the backend, its configuration, its time and that of the runner-up.\n\n"
        "check says whether a route file is well formed, and which of its routes would miss: a backend or configuration "
        "that is not known here. A route whose backend has another revision now is reported as stale; it is used all the "
        "same. With --device the file must also be of this machine, and its backends must run on it. Exit code 5: the "
        "file is not well formed; 1: a route would miss, or the file belongs to another machine.\n\n"
        "Without FILE the user's own route file for this machine is taken.",
    .examples = "fp8route table show\nfp8route table check --device cpu routes/cpu.routes",
    .words_min = 1,
    .words_max = 2,
    .has_context = true,
    .arguments_bytes = sizeof(struct fp8r_common),
    .run = run,
};
