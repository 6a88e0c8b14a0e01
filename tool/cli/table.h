/* The actions of `fp8route table`, one file each.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TABLE_ACTIONS_H
#define FP8R_TABLE_ACTIONS_H

#include "cli/verb.h"
#include "tune/route_check.h"

/* Both print to standard output: text, or an object under --json. */
int fp8r_table_show(const struct fp8r_route_file *file, const struct fp8r_common *common, struct fp8r_tool_error *error);
int fp8r_table_print_check(const struct fp8r_route_file *file, const struct fp8r_common *common,
                           struct fp8r_tool_error *error);

#endif
