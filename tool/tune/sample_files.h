/* Which sample files are meant: files by name, folders by what they hold.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SAMPLE_FILES_H
#define FP8R_SAMPLE_FILES_H

#include <stddef.h>

#include "tool_error.h"

struct fp8r_sample_files {
    char **paths; /* owned */
    size_t count, capacity;
};

/* Adds a file, or every *.jsonl of a folder by name; names that begin with a dot are left out, folders inside are not
 * entered. Exit codes: BAD_DATA (nothing there; a folder without such a file), INTERNAL. */
int fp8r_sample_files_add(struct fp8r_sample_files *files, const char *path, struct fp8r_tool_error *error);

void fp8r_sample_files_fini(struct fp8r_sample_files *files);

#endif
