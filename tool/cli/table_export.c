/* fp8route table export: a route file as source text.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/deliver.h"
#include "cli/output.h"
#include "cli/table.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/route_source.h"

static int print_json(const struct fp8r_table_arguments *arguments, const struct fp8r_route_file *file,
                      const char *function, const char *text, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "table_export");
    fp8r_output_set_text(&output, output.root, "path", arguments->out);
    fp8r_output_set_text(&output, output.root, "language", arguments->language);
    fp8r_output_set_text(&output, output.root, "function", function);
    fp8r_output_set(&output, output.root, "family_count", json_integer((json_int_t)file->table.count));
    fp8r_output_set_text(&output, output.root, "text", arguments->out ? NULL : text);
    return fp8r_output_print(&output, error);
}

static int export(const struct fp8r_table_arguments *arguments, const struct fp8r_route_file *file,
                  enum fp8r_language language, struct fp8r_tool_error *error)
{
    const char *function = arguments->function ? arguments->function : "fp8_route";
    char *text = NULL;
    int code = fp8r_route_source(file, language, function, &text, error);
    if (code == FP8R_EXIT_GOOD && (arguments->out || !arguments->common.json))
        code = fp8r_deliver_text(arguments->out, text, error);
    if (code == FP8R_EXIT_GOOD && arguments->common.json)
        code = print_json(arguments, file, function, text, error);
    else if (code == FP8R_EXIT_GOOD && arguments->out)
        printf("%s: function %s, %zu famil%s\n", arguments->out, function, file->table.count,
               fp8r_plural(file->table.count, "y", "ies"));
    free(text);
    return code;
}

int fp8r_table_run_export(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                          struct fp8r_tool_error *error)
{
    struct fp8r_route_file file;
    enum fp8r_language language;
    (void)count; /* always one */
    int code = fp8r_language_parse(arguments->language, &language, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_route_file_read(files[0], &file));
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = export(arguments, &file, language, error);
    fp8r_route_file_fini(&file);
    return code;
}
