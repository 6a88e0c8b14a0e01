/* The actions of `fp8route table`, one file each.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TABLE_ACTIONS_H
#define FP8R_TABLE_ACTIONS_H

#include "cli/verb.h"
#include "tune/route_check.h"

struct fp8r_table_arguments {
    struct fp8r_common common;
    const char *out, *into, *language, *function;
    int64_t machine;
};

/* files: the words behind the action. All print to standard output: text, or an object under --json. */
typedef int (*fp8r_table_action)(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                                 struct fp8r_tool_error *error);

int fp8r_table_run_build(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                     struct fp8r_tool_error *error);
int fp8r_table_run_diff(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                    struct fp8r_tool_error *error);
int fp8r_table_run_merge(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                           struct fp8r_tool_error *error);
int fp8r_table_run_export(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                      struct fp8r_tool_error *error);

/* Of one file, which has been read. */
int fp8r_table_show(const struct fp8r_route_file *file, const struct fp8r_common *common, struct fp8r_tool_error *error);
int fp8r_table_print_check(const struct fp8r_route_file *file, const struct fp8r_common *common,
                           struct fp8r_tool_error *error);

#endif
