/* The route file that a quick tune adds to: opened before anything is measured, so that a file which cannot
 * be added to is refused early; written once at the end. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_QUICK_ROUTES_H
#define FP8R_QUICK_ROUTES_H

#include "tune/families.h"
#include "tune/machine.h"
#include "tune/points.h"

struct fp8r_quick_routes {
    char path[FP8R_MACHINE_PATH_BYTES];
    struct fp8r_route_file file; /* what will be written: this machine's header, the new entries */
    struct fp8r_table old;       /* what was there */
};

/* mode: FP8R_MODE_*. path: NULL for the user's file of this machine. Exit codes: USAGE (no home; a file of full measurements,
 * which a quick tune does not touch), BAD_DATA (unreadable, or another machine's), INTERNAL. */
int fp8r_quick_routes_open(struct fp8r_quick_routes *routes, const fp8r_context *context, int mode,
                           const char *path, struct fp8r_tool_error *error);

/* The family's new entry replaces its old one. No points: nothing changes. Exit codes: INTERNAL. */
int fp8r_quick_routes_add(struct fp8r_quick_routes *routes, const struct fp8r_tune_family *family,
                          const struct fp8r_points *points, struct fp8r_tool_error *error);

/* Writes new and old entries, atomically. is_cold: how the operands were. Exit codes: BAD_DATA where it
 * cannot be written, INTERNAL. */
int fp8r_quick_routes_write(struct fp8r_quick_routes *routes, bool is_cold, struct fp8r_tool_error *error);

void fp8r_quick_routes_close(struct fp8r_quick_routes *routes);

#endif
