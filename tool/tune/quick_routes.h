/* The routes of a quick tune: opened before anything is measured, gathered family by family, added to a route file at the
 * end. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_QUICK_ROUTES_H
#define FP8R_QUICK_ROUTES_H

#include "tune/points.h"
#include "tune/route_update.h"

struct fp8r_quick_routes {
    struct fp8r_route_update update;
    struct fp8r_route_file file; /* this machine's header, the new entries; once written, all */
};

/* families: what will be measured. path: NULL for the user's file of this machine. Exit codes: USAGE (no home; a full
 * measurement of a family, which a quick tune does not replace), and those of fp8r_route_update_open. */
int fp8r_quick_routes_open(struct fp8r_quick_routes *routes, const fp8r_context *context,
                           const struct fp8r_tune_families *families, const char *path, struct fp8r_tool_error *error);

/* The family's new entry replaces its old one. No points: nothing changes. Exit codes: INTERNAL. */
int fp8r_quick_routes_add(struct fp8r_quick_routes *routes, const struct fp8r_tune_family *family,
                          const struct fp8r_points *points, struct fp8r_tool_error *error);

/* Writes new and old entries, atomically. is_cold: how the operands were. Exit codes: BAD_DATA where it
 * cannot be written, INTERNAL. note: as of fp8r_route_update_write. */
int fp8r_quick_routes_write(struct fp8r_quick_routes *routes, bool is_cold, void (*note)(void *user, const char *line), void *user,
                            struct fp8r_tool_error *error);

void fp8r_quick_routes_close(struct fp8r_quick_routes *routes);

#endif
