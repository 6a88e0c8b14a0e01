/* Who can run a problem, in which configuration, and why the others cannot.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_CANDIDATES_H
#define FP8R_ROUTE_CANDIDATES_H

#include "backend/registry.h"

struct fp8r_choice {
    bool is_eligible;
    int config;         /* the row's own pick; meaningful where eligible */
    fp8r_reason reason; /* where not */
};

/* One answer a row of the registry, in its order. */
struct fp8r_candidates {
    struct fp8r_choice rows[FP8R_ROWS_MAX];
    int64_t m_last; /* up to which m all of this stays so */
};

/* What narrows the choice beside the problem. */
struct fp8r_limits {
    uint64_t excluded; /* bit i takes row i out: it failed to prepare */
    int held;          /* in batch-invariant mode the row whose numerics class the family is held to, or -1 = the first
                          that promises one */
    bool is_capturing; /* a stream is: only what needs no workspace */
};

void fp8r_candidates_init(const struct fp8r_registry *registry, const fp8r_device_facts *device,
                          const fp8r_problem *problem, const struct fp8r_limits *limits, struct fp8r_candidates *candidates);

/* Can this one run the problem in this configuration (FP8R_CONFIG_ANY: its pick)? All rules applied. */
bool fp8r_row_eligible(const struct fp8r_registry *registry, const fp8r_device_facts *device,
                       const fp8r_problem *problem, int row, int config, fp8r_reason *reason);

#endif
