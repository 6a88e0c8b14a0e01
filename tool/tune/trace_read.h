/* What FP8ROUTE_TRACE wrote: which problems were met, how often, by how many processes. Files of several machines may be
 * read together: they say what is asked for, not how long it takes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TRACE_READ_H
#define FP8R_TRACE_READ_H

#include "tune/families.h"

struct fp8r_trace_problem {
    char text[FP8R_TEXT_BYTES];
    struct fp8r_key key; /* eager mode, whatever it ran in */
    int64_t m;
    int64_t calls, captured; /* captured: those of the calls that were recorded into a graph */
    double cost; /* of one call, in bytes moved: an estimate to weigh problems against each other */
};

/* Zero-initialise. */
struct fp8r_traced {
    struct fp8r_trace_problem *problems; /* in order of first appearance; no two of equal text */
    size_t count, capacity;
    size_t *index; /* hash of the text -> problem + 1; power-of-two size */
    size_t index_size;
    int64_t calls, captured; /* of all problems */
    double cost;             /* of all calls */
    size_t lines, processes, torn; /* torn: files whose last line was cut off */
    struct fp8r_trace_count *counts; /* the lines, while they are added up */
    size_t count_count, count_capacity;
};

void fp8r_traced_fini(struct fp8r_traced *traced);

/* Reads the files. A last line without its end is left out. Exit codes: BAD_DATA with file and line, INTERNAL. */
int fp8r_trace_read(struct fp8r_traced *traced, const char *const *paths, size_t path_count,
                    struct fp8r_tool_error *error);

/* A sum that stays at the largest number there is. */
void fp8r_trace_add(int64_t *sum, int64_t count);

/* Cost of all its calls. */
double fp8r_trace_weight(const struct fp8r_trace_problem *problem);

/* Calls of that family (whatever its mode) with m rows: the weight of a case that is tuned; 0 where it was not met. */
int64_t fp8r_trace_calls(const struct fp8r_traced *traced, const struct fp8r_key *key, int64_t m);

/* Adds every family that was met, with its M: of a family with more than m_most, the smallest, the largest and those of
 * the largest weight (0: all). Products of nothing are left out. Exit codes: INTERNAL. */
int fp8r_families_add_traced(struct fp8r_tune_families *families, const struct fp8r_traced *traced, size_t m_most,
                             struct fp8r_tool_error *error);

/* Weighs every family's M that was met by its calls, once all M are there. Exit codes: INTERNAL. */
int fp8r_families_weigh_traced(struct fp8r_tune_families *families, const struct fp8r_traced *traced,
                               struct fp8r_tool_error *error);

#endif
