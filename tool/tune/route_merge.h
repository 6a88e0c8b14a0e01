/* Route files of one machine made into one. The same files give the same result in whatever order they are named, and
 * merging again what was merged changes nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_MERGE_H
#define FP8R_ROUTE_MERGE_H

#include "route/route_file.h"
#include "tool_error.h"

struct fp8r_merge_summary {
    size_t contested; /* families that several files have, with different content */
};

/* Takes entries out of the files (fini them all the same). names: of the files, for messages. Full wins over quick; of
 * two entries for one family the one that was measured at more M, then the one that is clear at more M, then the one
 * whose segments come first in the order of their fields. Facts and libraries are joined; of two values the one that
 * comes last in the order of bytes. Exit codes: BAD_DATA for files of different machines or modes, INTERNAL. */
int fp8r_routes_merge(struct fp8r_route_file *files, const char *const *names, size_t count,
                      struct fp8r_route_file *merged, struct fp8r_merge_summary *summary,
                      struct fp8r_tool_error *error);

#endif
