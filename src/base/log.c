/* Log lines. A warning without a callback is printed only where the environment asked for the thing warned about, which
 * the caller decides by calling at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include <fp8route/fp8route.h>

void fp8r_log_line(const struct fp8r_log *log, int level, const char *format, ...)
{
    if (!log->callback && level > FP8R_LOG_WARNING && log->verbose == 0)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (log->callback)
        log->callback(log->user, level, line);
    else
        fprintf(stderr, "fp8route: %s\n", line); /* one call: lines of several threads do not mix */
}
