/* The dispatch order: forced, measured route, extrapolated, neighbour, default, reference. Pure: no clock, no device
 * call, no allocation; the same inputs decide the same on every rank.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_DECIDE_H
#define FP8R_ROUTE_DECIDE_H

#include "route/candidates.h"
#include "route/table.h"

struct fp8r_router {
    const struct fp8r_registry *registry;
    const fp8r_device_facts *device;
    const struct fp8r_table *table;
    int mode;                      /* FP8R_MODE_* */
    int forced_row, forced_config; /* FP8ROUTE_BACKEND; row -1 = none */
    bool routed_only;
};

enum fp8r_source {
    FP8R_SOURCE_NONE, /* nothing can run it */
    FP8R_SOURCE_FORCED,
    FP8R_SOURCE_ROUTE,
    FP8R_SOURCE_EXTRAPOLATED,
    FP8R_SOURCE_NEIGHBOUR,
    FP8R_SOURCE_DEFAULT,
    FP8R_SOURCE_REFERENCE,
    FP8R_SOURCE_ONLY,     /* routed_only, and one row can */
    FP8R_SOURCE_AMBIGUOUS /* routed_only, and several can */
};

/* How a route that exists for this key and M was kept from deciding. */
enum fp8r_miss {
    FP8R_MISS_NO_ENTRY,  /* the key was never measured */
    FP8R_MISS_NO_M,      /* it was, but not around this M */
    FP8R_MISS_BACKEND,   /* the route names a backend that this registry has not */
    FP8R_MISS_CONFIG,    /* or a configuration that the backend has not */
    FP8R_MISS_REFUSED,   /* or one that is not eligible: see `refusal` */
    FP8R_MISS_BEYOND,    /* M is above all measured ones, and the last segment is not the default */
    FP8R_MISS_NONE       /* it decided */
};

struct fp8r_decision {
    enum fp8r_source source;
    int row, config; /* -1 where nothing runs */
    int64_t m_last;  /* the decision is the same up to this m */
    const struct fp8r_entry *entry;     /* what was measured for the key; NULL = nothing */
    const struct fp8r_segment *segment; /* the one that decided, or that missed; NULL = none */
    enum fp8r_miss miss;
    bool is_overtaking;  /* the default is not the first by priority: its model expects clearly less */
    bool forced_refused; /* FP8ROUTE_BACKEND names a row that cannot run this problem */
    fp8r_reason refusal; /* of the forced row, or of the route's */
};

const char *fp8r_source_name(enum fp8r_source source);

/* Also gives the candidates it decided among. excluded: rows that failed to prepare, by bit. is_capturing: a stream is,
 * and only what needs no workspace may run on it. */
void fp8r_decide(const struct fp8r_router *router, const fp8r_problem *problem, uint64_t excluded, bool is_capturing,
                 struct fp8r_candidates *candidates, struct fp8r_decision *decision);

#endif
