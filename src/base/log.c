/* Log lines. Nothing is printed that neither a callback nor the environment asked for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include <fp8route/fp8route.h>

void fp8r_line_clean(char *line)
{
    for (unsigned char *at = (unsigned char *)line; *at; at++) {
        bool is_c1 = at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0; /* controls in two bytes of UTF-8 */
        if (*at < ' ' || *at == 0x7F || is_c1)
            *at = '?';
        if (is_c1)
            *++at = '?';
    }
}

void fp8r_log_line(const struct fp8r_log *log, int level, const char *format, ...)
{
    int most = log->verbose > 1 ? FP8R_LOG_DEBUG : log->verbose == 1 ? FP8R_LOG_INFO : FP8R_LOG_WARNING;
    if (!log->callback && (!log->is_asked_for || level > most))
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fp8r_line_clean(line);
    if (log->callback)
        log->callback(log->user, level, line);
    else
        fprintf(stderr, "fp8route: %s\n", line); /* one call: lines of several threads do not mix */
}
