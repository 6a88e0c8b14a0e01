/* Shares on the command line: "2%" or 0.02.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SHARE_H
#define FP8R_SHARE_H

#include "tool_error.h"

/* option: for the message. text NULL: not given, *share stays. Exit codes: USAGE for what is not from `least`
 * up to but not including 1. */
int fp8r_share_parse(const char *option, const char *text, double least, double *share,
                     struct fp8r_tool_error *error);

#endif
