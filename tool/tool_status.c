/* Statuses as exit codes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tool_status.h"

static int exit_of(fp8r_status status)
{
    switch (status) {
    case FP8R_OK:
        return FP8R_EXIT_GOOD;
    case FP8R_ERROR_INVALID_ARGUMENT:
    case FP8R_ERROR_NOT_FOUND:
        return FP8R_EXIT_USAGE;
    case FP8R_ERROR_UNSUPPORTED:
    case FP8R_ERROR_AMBIGUOUS:
    case FP8R_ERROR_DEVICE:
        return FP8R_EXIT_UNMEASURED;
    case FP8R_ERROR_IO:
    case FP8R_ERROR_FORMAT:
        return FP8R_EXIT_BAD_DATA;
    default:
        return FP8R_EXIT_INTERNAL;
    }
}

int fp8r_tool_status(struct fp8r_tool_error *error, fp8r_status status)
{
    if (status == FP8R_OK) return FP8R_EXIT_GOOD;
    const char *line = fp8r_last_error();
    return fp8r_tool_error_set(error, exit_of(status), "%s", *line ? line : fp8r_status_name(status));
}
