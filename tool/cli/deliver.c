/* Delivering texts and route files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/deliver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_status.h"

int fp8r_deliver_text(const char *path, const char *text, struct fp8r_tool_error *error)
{
    FILE *stream = path ? fopen(path, "we") : stdout;
    if (!stream)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s cannot be made: %s", path, strerror(errno));
    bool is_written = fputs(text, stream) >= 0 && fflush(stream) == 0;
    int reason = errno;
    if (path && fclose(stream) != 0 && is_written) {
        reason = errno;
        is_written = false;
    }
    if (is_written)
        return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s cannot be written: %s", path ? path : "standard output",
                               strerror(reason));
}

int fp8r_deliver_format(const struct fp8r_route_file *file, char **text, struct fp8r_tool_error *error)
{
    struct fp8r_route_file back;
    char *made = NULL;
    int code = fp8r_tool_status(error, fp8r_route_file_format(file, &made));
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = fp8r_tool_status(error, fp8r_route_file_parse("the routes", made, strlen(made), &back));
    if (code != FP8R_EXIT_GOOD) {
        free(made);
        return code;
    }
    fp8r_route_file_fini(&back);
    *text = made;
    return FP8R_EXIT_GOOD;
}

int fp8r_deliver_routes(const char *path, const struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    char *text = NULL;
    if (path)
        return fp8r_tool_status(error, fp8r_route_file_write(path, file));
    int code = fp8r_deliver_format(file, &text, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_deliver_text(NULL, text, error);
    free(text);
    return code;
}
