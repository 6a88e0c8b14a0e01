/* Reads a command line by a verb's option table. Knows the options that all verbs share, nothing of what any
 * means. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_OPTIONS_H
#define FP8R_OPTIONS_H

#include "cli/verb.h"

/* Tables of the shared options: all verbs', and those of verbs with a context. */
struct fp8r_option_table {
    const struct fp8r_option *options;
    size_t count;
};
enum { FP8R_OPTION_TABLES = 3 };

/* The verb's own options, then the shared ones that it takes. */
void fp8r_options_tables(const struct fp8r_verb *verb, struct fp8r_option_table tables[FP8R_OPTION_TABLES]);

/* Parses argv[0..argc-1], the words behind the verb, into new arguments (fini frees them; the strings stay
 * argv's). With --help nothing is asked of the rest. Exit codes: USAGE, with the option and what would be
 * right; INTERNAL. */
int fp8r_options_parse(const struct fp8r_verb *verb, int argc, char **argv, void **arguments,
                       struct fp8r_tool_error *error);

void fp8r_options_fini(const struct fp8r_verb *verb, void *arguments);

/* An option that would be passed over beside another one, and why. */
struct fp8r_idle_option {
    const char *name, *why;
    bool is_given;
};

/* One that is given would be passed over: USAGE, which names it, `beside` ("tune --quick") and why. */
int fp8r_options_refuse_idle(const char *beside, const struct fp8r_idle_option *options, size_t count,
                             struct fp8r_tool_error *error);

/* The nearest of count names to text by edit distance, or NULL where none is near. */
const char *fp8r_nearest_name(const char *text, const char *(*name_at)(const void *names, size_t index),
                              const void *names, size_t count);

#endif
