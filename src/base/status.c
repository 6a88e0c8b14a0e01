/* Status names and the thread-local error line. Knows nothing of what failed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

static _Thread_local char last_error[512];

const char *fp8r_status_name(fp8r_status status)
{
    static const char *const names[] = {
        [FP8R_OK] = "FP8R_OK",
        [FP8R_ERROR_INVALID_ARGUMENT] = "FP8R_ERROR_INVALID_ARGUMENT",
        [FP8R_ERROR_UNSUPPORTED] = "FP8R_ERROR_UNSUPPORTED",
        [FP8R_ERROR_AMBIGUOUS] = "FP8R_ERROR_AMBIGUOUS",
        [FP8R_ERROR_NOT_FOUND] = "FP8R_ERROR_NOT_FOUND",
        [FP8R_ERROR_OUT_OF_MEMORY] = "FP8R_ERROR_OUT_OF_MEMORY",
        [FP8R_ERROR_DEVICE] = "FP8R_ERROR_DEVICE",
        [FP8R_ERROR_IO] = "FP8R_ERROR_IO",
        [FP8R_ERROR_FORMAT] = "FP8R_ERROR_FORMAT",
    };
    size_t index = (size_t)status;
    return index < sizeof names / sizeof *names ? names[index] : "FP8R_ERROR_UNKNOWN";
}

const char *fp8r_last_error(void)
{
    return last_error;
}

void fp8r_error_clear(void)
{
    last_error[0] = '\0';
}

uint32_t fp8r_version(void)
{
    return FP8R_VERSION;
}

fp8r_status fp8r_fail(fp8r_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    /* Formatted aside first: an argument may be the last error itself. */
    char line[sizeof last_error];
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fp8r_line_clean(line);
    snprintf(last_error, sizeof last_error, "%s", line);
    return status;
}

fp8r_status fp8r_fail_memory(const char *what)
{
    return fp8r_fail(FP8R_ERROR_OUT_OF_MEMORY, "out of memory for %s", what);
}
