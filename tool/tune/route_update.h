/* A route file that a tune adds to: what it holds of other families stays. Opened before anything is measured, so that a
 * file which cannot be added to is refused early and never lost; written once at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_UPDATE_H
#define FP8R_ROUTE_UPDATE_H

#include "tune/families.h"
#include "tune/machine.h"

struct fp8r_route_update {
    char path[FP8R_MACHINE_PATH_BYTES];
    struct fp8r_route_file header; /* of what will be measured; without entries */
    struct fp8r_route_file found;  /* what the file holds; no entries where there is none */
};

/* path: the file to add to, or to make. Exit codes: USAGE (the path is too long), BAD_DATA (it cannot be read or written, or
 * holds another machine's routes, or of another mode, or measured behind another kernel, or full measurements of other
 * operands), INTERNAL. */
int fp8r_route_update_open(struct fp8r_route_update *update, const char *path, const struct fp8r_route_file *header,
                           struct fp8r_tool_error *error);

/* A quick tune replaces no full measurement. Exit codes: USAGE where the file holds one of a family. */
int fp8r_route_update_admits_quick(const struct fp8r_route_update *update, const struct fp8r_tune_families *families,
                                   struct fp8r_tool_error *error);

/* Reads the file again (another tuner may have added to it meanwhile) and writes it, atomically. A family's entry is that of
 * `measured`, else what the file held, else that of `rest` (may be NULL); only that a full one is never replaced by a quick
 * one. Their entries are taken out, and `measured` is then what was written. note: once it is written, a line for each family that
 * lost rows (lost_rows.h). Exit codes: as of open. */
int fp8r_route_update_write(struct fp8r_route_update *update, struct fp8r_route_file *measured, struct fp8r_table *rest,
                            void (*note)(void *user, const char *line), void *user, struct fp8r_tool_error *error);

void fp8r_route_update_close(struct fp8r_route_update *update);

#endif
