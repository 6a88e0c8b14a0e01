/* Reading shares. SPDX-License-Identifier: Apache-2.0 */
#include "cli/share.h"

#include <stdlib.h>
#include <string.h>

int fp8r_share_parse(const char *option, const char *text, double least, double *share,
                     struct fp8r_tool_error *error)
{
    char *end;
    if (!text) return FP8R_EXIT_GOOD;
    double value = strtod(text, &end);
    size_t length = (size_t)(end - text);
    if (strcmp(end, "%") == 0) {
        value /= 100;
        end++;
    }
    if (length == 0 || *end != '\0' || !(value >= least && value < 1))
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "--%s is \"%.40s\": it must be a share like 2%% or 0.02, from %g to below 1", option, text,
            least);
    *share = value;
    return FP8R_EXIT_GOOD;
}
