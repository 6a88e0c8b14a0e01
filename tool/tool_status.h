/* The library's statuses as the program's exit codes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TOOL_STATUS_H
#define FP8R_TOOL_STATUS_H

#include <fp8route/fp8route.h>

#include "tool_error.h"

/* Fills the error with fp8r_last_error() and returns the exit code that the status means; GOOD for FP8R_OK.
 */
int fp8r_tool_status(struct fp8r_tool_error *error, fp8r_status status);

#endif
