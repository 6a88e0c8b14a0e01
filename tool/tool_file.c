/* Devices and pipes are written in place: a rename would put a file where they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tool_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_replace.h"
#include "tool_status.h"

static int write_in_place(const char *path, const char *text, struct fp8r_tool_error *error)
{
    FILE *stream = fopen(path, "we");
    bool is_written = stream && fputs(text, stream) >= 0 && fflush(stream) == 0;
    int reason = errno;
    if (stream) fclose(stream);
    return is_written ? FP8R_EXIT_GOOD
                      : fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s cannot be written: %s", path,
                                            strerror(reason));
}

int fp8r_tool_file_write(const char *path, const char *text, struct fp8r_tool_error *error)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
        return write_in_place(path, text, error);
    return fp8r_tool_status(error, fp8r_file_replace(path, text));
}
