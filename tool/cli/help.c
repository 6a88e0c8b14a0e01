/* fp8route help: pages about the verbs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/manual.h"

struct help_arguments {
    struct fp8r_common common;
    bool man;
};

static int run(const void *arguments, struct fp8r_tool_error *error)
{
    const struct help_arguments *help = arguments;
    bool has_name = help->common.words.count > 0 && strcmp(help->common.words.items[0], "fp8route") != 0;
    const struct fp8r_verb *verb = has_name ? fp8r_verb_find(help->common.words.items[0], error) : NULL;
    if (has_name && !verb) return FP8R_EXIT_USAGE;
    if (help->common.json) return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--json: help is text only");
    if (help->man)
        fp8r_manual_print_page(verb, stdout);
    else if (verb)
        fp8r_manual_print_help(verb, stdout);
    else
        fp8r_manual_print_program_help(stdout);
    return FP8R_EXIT_GOOD;
}

static const struct fp8r_option options[] = {{"man", NULL, "print the man page's source instead",
                                              FP8R_OPTION_FLAG, offsetof(struct help_arguments, man), 0}};

const struct fp8r_verb fp8r_verb_help = {
    .name = "help",
    .summary = "print the page of a verb, or the list of verbs",
    .words = "[VERB]",
    .description = "Prints the same page as fp8route VERB --help; without a verb, the program's own.",
    .examples = "fp8route help run\nfp8route help --man run | man -l -",
    .words_max = 1,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct help_arguments),
    .run = run,
};
