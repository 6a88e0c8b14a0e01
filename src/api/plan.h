/* Plans: a family's segments of M, each with a prepared backend.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_API_PLAN_H
#define FP8R_API_PLAN_H

#include "api/context.h"
#include "problem/problem.h"

/* What every run looks at stands first, here and in the plan: it fits a line of cache. */
struct fp8r_plan_segment {
    int64_t m_first, m_last;
    void *state;
    int row, config;
    bool is_prepared;
    bool is_refused; /* a backend asked for by name takes the planned rows, but not so few */
    bool uses_workspace; /* for its last m; where not, for no other either */
    enum fp8r_source source;
    fp8r_reason refusal;
    char label[FP8R_LABEL_BYTES];
};

struct fp8r_plan {
    struct fp8r_context *context;
    struct fp8r_plan_segment *segments; /* ascending, without gaps from 1 to m; none where nothing is multiplied */
    int count, capacity;
    size_t workspace_bytes;
    fp8r_problem problem; /* m: the planned one */
    struct fp8r_plan *next; /* in the cache's list of retired plans */
};

/* row -1: routed; otherwise that row, in `config` or (FP8R_CONFIG_ANY) its own pick. is_capturing: for a stream that is.
 * On a GPU, which must be current for all of these. */
fp8r_status fp8r_plan_build(struct fp8r_context *context, const fp8r_problem *problem, int row, int config,
                            bool is_capturing, struct fp8r_plan **plan);
void fp8r_plan_unprepare(struct fp8r_plan *plan); /* and has no segments then */
void fp8r_plan_free(struct fp8r_plan *plan);

/* Our own rows say what failed; for an outside one, which only has a status, it is said here. */
fp8r_status fp8r_row_told(const struct fp8r_row *row, const char *what, fp8r_status status);

/* UNSUPPORTED, with the reason in words. config: FP8R_CONFIG_ANY = none was named. */
fp8r_status fp8r_row_refused(const struct fp8r_row *row, int config, const fp8r_reason *reason);

/* The segment that holds m, 1 <= m <= the planned one. */
const struct fp8r_plan_segment *fp8r_plan_segment_at(const struct fp8r_plan *plan, int64_t m);

/* Runs a segment. problem: the call's, not empty, k >= 1. */
fp8r_status fp8r_plan_segment_run(const struct fp8r_plan *plan, const struct fp8r_plan_segment *segment,
                                  const fp8r_problem *problem, const fp8r_pointers *pointers, void *workspace,
                                  size_t workspace_bytes, void *stream);

/* The cached plan of a problem's family, made where there is none; is_capturing: one for a stream that is. owned: the
 * cache is full; the caller runs the plan and frees it. */
fp8r_status fp8r_cache_find(struct fp8r_context *context, const fp8r_problem *problem, bool is_capturing,
                            struct fp8r_plan **plan, bool *owned);

/* The cached plan, or NULL: no lock, nothing is made. */
struct fp8r_plan *fp8r_cache_look(const struct fp8r_context *context, const fp8r_problem *problem, bool is_capturing);
void fp8r_cache_init(struct fp8r_cache *cache); /* of zeroed memory */
void fp8r_cache_fini(struct fp8r_cache *cache);

/* K = 0: out becomes the bias, or zeros. */
fp8r_status fp8r_fill(const struct fp8r_context *context, const fp8r_problem *problem, const fp8r_pointers *pointers,
                      void *stream);

#endif
