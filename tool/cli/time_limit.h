/* Times on the command line: "90s", "10m", "2h", or a number of seconds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TIME_LIMIT_H
#define FP8R_TIME_LIMIT_H

#include "tool_error.h"

/* option: for the message. text NULL: not given, 0 seconds. Exit codes: USAGE. */
int fp8r_time_limit_parse(const char *option, const char *text, double *seconds,
                          struct fp8r_tool_error *error);

#endif
