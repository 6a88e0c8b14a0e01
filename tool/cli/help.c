/* fp8route help: pages about the verbs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/manual.h"

struct help_arguments {
    struct fp8r_common common;
    bool man;
    const char *pages;
};

/* One page into the folder: of a verb, or of the program for NULL. */
static int write_page(const char *folder, const struct fp8r_verb *verb, struct fp8r_tool_error *error)
{
    char path[4096];
    int length =
        snprintf(path, sizeof path, "%s/fp8route%s%s.1", folder, verb ? "-" : "", verb ? verb->name : "");
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "we") : NULL;
    if (!file)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "--pages: no file can be made in %.200s", folder);
    fp8r_manual_print_page(verb, file);
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s could not be written", path);
    return FP8R_EXIT_GOOD;
}

static int write_pages(const char *folder, struct fp8r_tool_error *error)
{
    int code = write_page(folder, NULL, error);
    for (size_t i = 0; fp8r_verb_at(i) && code == FP8R_EXIT_GOOD; i++)
        code = write_page(folder, fp8r_verb_at(i), error);
    return code;
}

static int run(const void *arguments, struct fp8r_tool_error *error)
{
    const struct help_arguments *help = arguments;
    bool has_name = help->common.words.count > 0 && strcmp(help->common.words.items[0], "fp8route") != 0;
    const struct fp8r_verb *verb = has_name ? fp8r_verb_find(help->common.words.items[0], error) : NULL;
    if (has_name && !verb) return FP8R_EXIT_USAGE;
    if (help->common.json && (help->man || help->pages))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--json: man pages have a form of their own");
    if (help->common.json) return fp8r_manual_print_json(verb, error);
    if (help->pages) return write_pages(help->pages, error);
    if (help->man)
        fp8r_manual_print_page(verb, stdout);
    else if (verb)
        fp8r_manual_print_help(verb, stdout);
    else
        fp8r_manual_print_program_help(stdout);
    return FP8R_EXIT_GOOD;
}

static const struct fp8r_option options[] = {
    {"man", NULL, "print the man page's source instead", FP8R_OPTION_FLAG,
     offsetof(struct help_arguments, man), 0},
    {"pages", "DIR", "write the man pages of the program and all its verbs into a folder", FP8R_OPTION_TEXT,
     offsetof(struct help_arguments, pages), 0}};

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
