/* Help and man pages, made from the verbs' tables.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_MANUAL_H
#define FP8R_MANUAL_H

#include <stdio.h>

#include "cli/verb.h"

void fp8r_manual_print_program_help(FILE *stream);
void fp8r_manual_print_help(const struct fp8r_verb *verb, FILE *stream);

/* The man page in roff: of a verb, or of the program for NULL. */
void fp8r_manual_print_page(const struct fp8r_verb *verb, FILE *stream);

/* The tables themselves as one JSON object: of a verb, or of all for NULL. Exit code: INTERNAL. */
int fp8r_manual_print_json(const struct fp8r_verb *verb, struct fp8r_tool_error *error);

/* The program's environment variables and exit codes, as the pages list them; name NULL behind the last. */
struct fp8r_manual_item {
    const char *name, *text;
};
extern const struct fp8r_manual_item fp8r_manual_environment[], fp8r_manual_exits[];

#endif
