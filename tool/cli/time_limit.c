/* Reading times. SPDX-License-Identifier: Apache-2.0 */
#include "cli/time_limit.h"

#include <stdlib.h>
#include <string.h>

int fp8r_time_limit_parse(const char *option, const char *text, double *seconds,
                          struct fp8r_tool_error *error)
{
    char *end;
    *seconds = 0;
    if (!text) return FP8R_EXIT_GOOD;
    double number = strtod(text, &end);
    double unit = strcmp(end, "h") == 0            ? 3600
                  : strcmp(end, "m") == 0          ? 60
                  : strcmp(end, "s") == 0 || !*end ? 1
                                                   : 0;
    *seconds = number * unit;
    if (end == text || !(*seconds > 0) || *seconds > 1e9)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--%s %.40s: a time like 90s, 10m or 2h, or a number of seconds, is wanted",
                                   option, text);
    return FP8R_EXIT_GOOD;
}
