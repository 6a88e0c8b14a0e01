/* Where a verb's product goes: a file that was named, or standard output.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_DELIVER_H
#define FP8R_DELIVER_H

#include "tune/route_build.h"
#include "tool_error.h"

/* Text to the file, or to standard output where path is NULL. Exit codes: BAD_DATA where it cannot be written. */
int fp8r_deliver_text(const char *path, const char *text, struct fp8r_tool_error *error);

/* A route file as text, known to read back. The caller frees it. Exit codes: BAD_DATA, INTERNAL. */
int fp8r_deliver_format(const struct fp8r_route_file *file, char **text, struct fp8r_tool_error *error);

/* A route file to the file, atomically, or to standard output. */
int fp8r_deliver_routes(const char *path, const struct fp8r_route_file *file, struct fp8r_tool_error *error);

#endif
