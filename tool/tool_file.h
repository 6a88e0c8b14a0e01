/* Texts into files, whole or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TOOL_FILE_H
#define FP8R_TOOL_FILE_H

#include "tool_error.h"

/* Writes the text to the file, making the folders above it; a device or a pipe that is there takes it as it comes. Exit
 * codes: BAD_DATA where it cannot be written, and then an older file stays as it was. */
int fp8r_tool_file_write(const char *path, const char *text, struct fp8r_tool_error *error);

#endif
