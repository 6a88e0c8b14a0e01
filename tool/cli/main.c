/* The program: finds the verb, parses its words, runs it, prints its error.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <fp8route/fp8route.h>

#include "cli/manual.h"
#include "cli/options.h"
#include "cli/terminal.h"

static int run_verb(const struct fp8r_verb *verb, int argc, char **argv, struct fp8r_tool_error *error)
{
    void *arguments = NULL;
    int code = fp8r_options_parse(verb, argc, argv, &arguments, error);
    if (code != FP8R_EXIT_GOOD) return code;
    const struct fp8r_common *common = arguments;
    if (common->help)
        fp8r_manual_print_help(verb, stdout);
    else
        code = verb->run(arguments, error);
    fp8r_options_fini(verb, arguments);
    return code;
}

static int run(int argc, char **argv, const char **verb_name, struct fp8r_tool_error *error)
{
    if (argc < 2) {
        fp8r_manual_print_program_help(stderr);
        return FP8R_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fp8r_manual_print_program_help(stdout);
        return FP8R_EXIT_GOOD;
    }
    if (strcmp(argv[1], "--version") == 0) {
        uint32_t version = fp8r_version();
        printf("fp8route %u.%u.%u\n", version / 10000, version / 100 % 100, version % 100);
        return FP8R_EXIT_GOOD;
    }
    const struct fp8r_verb *verb = fp8r_verb_find(argv[1], error);
    if (!verb) return FP8R_EXIT_USAGE;
    *verb_name = verb->name;
    return run_verb(verb, argc - 2, argv + 2, error);
}

/* Output that did not arrive is a failure, even where the verb went well; unless whoever read has enough. */
static int flush_output(int code, struct fp8r_tool_error *error)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || fp8r_is_read_no_more(stdout)) return code;
    int failed = fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "standard output could not be written");
    return fp8r_exit_worse(code, failed);
}

int main(int argc, char **argv)
{
    struct fp8r_tool_error error = {0};
    const char *verb_name = NULL;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe then shows as an error of the write */
    int code = run(argc, argv, &verb_name, &error);
    code = flush_output(code, &error);
    if (error.text[0])
        fprintf(stderr, "%sfp8route%s%s%s: %s\n", fp8r_style(stderr, FP8R_STYLE_BOLD), verb_name ? " " : "",
                verb_name ? verb_name : "", fp8r_style(stderr, FP8R_STYLE_NONE), error.text);
    return code;
}
