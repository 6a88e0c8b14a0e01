/* Opening what somebody names as a file to read: the one way of everything under tool/. A pipe never makes it wait, and a
 * device is never read without end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TOOL_INPUT_H
#define FP8R_TOOL_INPUT_H

#include <stdio.h>

#include "tool_error.h"

/* Opens path for reading, a regular file or BAD_DATA; *descriptor is the caller's to close. */
int fp8r_tool_input_descriptor(const char *path, int *descriptor, struct fp8r_tool_error *error);

/* The same as a stream; BAD_DATA, INTERNAL. */
int fp8r_tool_input_stream(const char *path, FILE **stream, struct fp8r_tool_error *error);

/* The SHA-256 of the file's bytes, as sha256sum prints it; BAD_DATA. */
int fp8r_tool_input_digest(const char *path, char text[65], struct fp8r_tool_error *error);

/* Where getline has stopped: was that the end of the file? Else it could not be read, or a line found no room, of which the
 * stream says nothing: BAD_DATA, INTERNAL. */
int fp8r_tool_input_ended(const char *path, FILE *stream, struct fp8r_tool_error *error);

#endif
