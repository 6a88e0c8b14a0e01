/* Holds a route file against this build's backends and, where asked, against this machine: which of its routes would miss,
 * and which were measured with another revision of their backend.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_CHECK_H
#define FP8R_ROUTE_CHECK_H

#include <fp8route/fp8route.h>

#include "route/route_file.h"
#include "tool_error.h"

enum fp8r_finding_kind {
    FP8R_FINDING_BACKEND, /* there is no backend of that name */
    FP8R_FINDING_CONFIG,  /* the backend has no such configuration */
    FP8R_FINDING_REFUSED, /* the backend cannot run on this machine */
    FP8R_FINDING_STALE    /* the backend's revision is another now: the route is used all the same */
};

/* About one segment. */
struct fp8r_finding {
    enum fp8r_finding_kind kind;
    const struct fp8r_entry *entry; /* the file's */
    const struct fp8r_segment *segment;
    char sentence[512];
};

struct fp8r_table_report {
    bool fits;        /* true where the machine was not asked about */
    char misfit[256]; /* what differs */
    struct fp8r_finding *findings;
    size_t count, capacity;
    size_t miss_count; /* findings of routes that would not be used */
};

/* is_here: the file is meant for the context's device. The report points into the file; fini frees it. Exit codes:
 * INTERNAL. Bad routes are findings, not errors. */
int fp8r_table_check(const struct fp8r_route_file *file, const fp8r_context *context, bool is_here,
                     struct fp8r_table_report *report, struct fp8r_tool_error *error);

void fp8r_table_report_fini(struct fp8r_table_report *report);

/* "unknown_backend", "unknown_config", "refused" or "stale". */
const char *fp8r_finding_name(enum fp8r_finding_kind kind);

#endif
