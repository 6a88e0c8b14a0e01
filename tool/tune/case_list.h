/* Case lists: problems, one a line, '#' begins a comment.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CASE_LIST_H
#define FP8R_CASE_LIST_H

#include <stddef.h>

#include "tool_error.h"

/* Zero-initialise. */
struct fp8r_case_list {
    char *text;         /* what the lines point into */
    const char **lines; /* without blanks around them; empty ones and comments left out */
    int *numbers;       /* of each in its file, from 1 */
    size_t count;
};

/* Reads a file of at most 16 MiB. Exit codes: BAD_DATA, INTERNAL. */
int fp8r_case_list_read(const char *path, struct fp8r_case_list *list, struct fp8r_tool_error *error);
void fp8r_case_list_fini(struct fp8r_case_list *list);

#endif
