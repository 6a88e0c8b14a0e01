/* fp8route table merge: route files of one machine made into one.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/deliver.h"
#include "cli/output.h"
#include "cli/table.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/route_merge.h"

static bool holds_samples(const char *path)
{
    struct stat facts;
    size_t length = strlen(path), suffix = strlen(".jsonl");
    return (length > suffix && strcmp(path + length - suffix, ".jsonl") == 0) ||
           (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode));
}

static int read_one(const char *path, struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    if (holds_samples(path))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "%s: merge is for route files; samples are merged by reading them together: fp8route "
                                   "table build", path);
    return fp8r_tool_status(error, fp8r_route_file_read(path, file));
}

static int print_json(const struct fp8r_route_file *merged, const struct fp8r_merge_summary *summary, const char *out,
                      struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    char *text = NULL;
    int code = out ? FP8R_EXIT_GOOD : fp8r_deliver_format(merged, &text, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    fp8r_output_init(&output, "table_merge");
    fp8r_output_set_text(&output, output.root, "path", out);
    fp8r_output_set_text(&output, output.root, "protocol", merged->is_quick ? "quick" : "full");
    fp8r_output_set(&output, output.root, "family_count", json_integer((json_int_t)merged->table.count));
    fp8r_output_set(&output, output.root, "contested_count", json_integer((json_int_t)summary->contested));
    fp8r_output_set_text(&output, output.root, "text", text);
    free(text);
    return fp8r_output_print(&output, error);
}

static void print_text(const struct fp8r_route_file *merged, const struct fp8r_merge_summary *summary, const char *out)
{
    FILE *stream = out ? stdout : stderr;
    fprintf(stream, "%s: %zu famil%s\n", out ? out : "fp8route table", merged->table.count,
            fp8r_plural(merged->table.count, "y", "ies"));
    if (summary->contested > 0)
        fprintf(stream, "in several files with different content: %zu (build from their samples to use all of them)\n",
                summary->contested);
}

static int deliver(const struct fp8r_table_arguments *arguments, const struct fp8r_route_file *merged,
                   const struct fp8r_merge_summary *summary, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (arguments->out || !arguments->common.json)
        code = fp8r_deliver_routes(arguments->out, merged, error);
    if (code == FP8R_EXIT_GOOD && arguments->common.json)
        return print_json(merged, summary, arguments->out, error);
    if (code == FP8R_EXIT_GOOD)
        print_text(merged, summary, arguments->out);
    return code;
}

int fp8r_table_run_merge(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                         struct fp8r_tool_error *error)
{
    struct fp8r_route_file *read = calloc(count, sizeof *read), merged;
    struct fp8r_merge_summary summary;
    size_t done = 0;
    int code = read ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "route files");
    while (done < count && code == FP8R_EXIT_GOOD) {
        code = read_one(files[done], &read[done], error);
        done += code == FP8R_EXIT_GOOD;
    }
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_routes_merge(read, files, count, &merged, &summary, error);
    if (code == FP8R_EXIT_GOOD) {
        code = deliver(arguments, &merged, &summary, error);
        fp8r_route_file_fini(&merged);
    }
    for (size_t i = 0; i < done; i++)
        fp8r_route_file_fini(&read[i]);
    free(read);
    return code;
}
