/* A regular file opened for reading at positions. Knows nothing of what is in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FILE_READ_H
#define FP8R_FILE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "tool_error.h"

struct fp8r_file {
    const char *path; /* borrowed, for errors */
    int descriptor;
    uint64_t size_bytes; /* when it was opened */
};

/* Opens path; anything but a regular file is BAD_DATA (and opening a pipe does not wait for a writer). */
int fp8r_file_open(const char *path, struct fp8r_file *file, struct fp8r_tool_error *error);

/* Reads exactly bytes bytes at offset_bytes; a file that has shrunk since is BAD_DATA. */
int fp8r_file_read(const struct fp8r_file *file, uint64_t offset_bytes, void *to, size_t bytes,
                   struct fp8r_tool_error *error);

void fp8r_file_close(struct fp8r_file *file);

/* Reads the whole of a file of at most limit_bytes into a new buffer (free it); one NUL follows the text. */
int fp8r_text_read(const char *path, uint64_t limit_bytes, char **text, size_t *text_bytes,
                   struct fp8r_tool_error *error);

#endif
