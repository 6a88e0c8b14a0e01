/* Every row of the registry, in every configuration and under every mask of processor features, on one product: where a
 * row says that it can, it must run and be right; where it says no, the plan must be refused with a reason.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_ROWS_H
#define FP8R_TESTS_SUPPORT_ROWS_H

#include "support/sample.h"

enum { ROWS_CONTEXTS = 8 };

struct rows {
    fp8r_context *contexts[ROWS_CONTEXTS]; /* one a set of processor features, the full one first */
    char features[ROWS_CONTEXTS][96];
    int count;
    long runs; /* products computed so far */
};

/* Fails the running test where a context cannot be made. threads: 0 = one a core. */
void rows_init(struct rows *rows, int threads);
void rows_fini(struct rows *rows);

/* A group's fixture: one set on two threads for all its tests. */
extern struct rows shared_rows;
int shared_rows_setup(void **state);
int shared_rows_teardown(void **state);

/* All rows on the sample, at M and at some smaller m. Fails the running test on the first fault. `name` for messages. */
void rows_run(struct rows *rows, struct sample *sample, const char *name);

/* Problem text, with exact and with random data. */
void rows_check(struct rows *rows, const char *text);
void rows_check_exact(struct rows *rows, const char *text);

/* A context without environment and route files, for everything else. */
fp8r_context *plain_context(int threads);

#endif
