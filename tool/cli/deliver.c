/* Delivering texts and route files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/deliver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_file.h"
#include "tool_status.h"

int fp8r_deliver_text(const char *path, const char *text, struct fp8r_tool_error *error)
{
    if (path)
        return fp8r_tool_file_write(path, text, error);
    return fputs(text, stdout) >= 0 && fflush(stdout) == 0
               ? FP8R_EXIT_GOOD
               : fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "standard output cannot be written: %s", strerror(errno));
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
