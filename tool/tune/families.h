/* What is to be tuned: families of products, each with the M to measure. Read from the command line's words
 * and from case lists. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FAMILIES_H
#define FP8R_FAMILIES_H

#include "problem/grammar.h"
#include "route/advice.h"
#include "tool_error.h"

enum { FP8R_FAMILIES_POINTS = FP8R_QUICK_POINTS };

struct fp8r_tune_family {
    char text[FP8R_TEXT_BYTES]; /* with the letter M: "Mx4096x14336" */
    struct fp8r_key key;
    int64_t *ms; /* ascending, no two equal */
    size_t m_count, m_capacity;
    double *weights; /* of each m, e.g. its calls; NULL: all 1 */
};

/* Zero-initialise; no two of equal key. */
struct fp8r_tune_families {
    struct fp8r_tune_family *items;
    size_t count, capacity;
    int mode; /* FP8R_MODE_* of their keys */
};

/* The number of the family of that key; -1: there is none. */
int fp8r_families_find(const struct fp8r_tune_families *families, const struct fp8r_key *key);

/* A family: "NxK[:option]...", or "[B*]MxNxK[:option]..." with the letter M. Adds nothing where it is there
 * already. Exit codes: USAGE, INTERNAL. */
int fp8r_families_add(struct fp8r_tune_families *families, const char *text, struct fp8r_tool_error *error);

/* A problem: its family, and its M as one to measure. */
int fp8r_families_add_problem(struct fp8r_tune_families *families, const char *text,
                              struct fp8r_tool_error *error);

/* A case list: problems and families, one a line; '#' begins a comment. Exit codes: BAD_DATA with the line.
 */
int fp8r_families_read(struct fp8r_tune_families *families, const char *path, struct fp8r_tool_error *error);

/* Gives every family the M of the list; without one (NULL) those that have none yet get powers of two from 1
 * to 2048. */
int fp8r_families_set_ms(struct fp8r_tune_families *families, const int64_t *list, size_t count,
                         struct fp8r_tool_error *error);

/* Weighs the family's m, where it is among those to measure: once all of them are there. Exit codes: INTERNAL. */
int fp8r_families_weigh(struct fp8r_tune_families *families, const struct fp8r_key *key, int64_t m, double weight,
                        struct fp8r_tool_error *error);

/* 1 where nobody weighed it. */
double fp8r_family_weight(const struct fp8r_tune_family *family, int64_t m);

void fp8r_families_fini(struct fp8r_tune_families *families);

#endif
