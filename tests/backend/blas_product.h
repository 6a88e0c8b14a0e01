/* Running a sample on the blas backend the way an engine does: a plan, and a workspace of exactly its size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_BACKEND_BLAS_PRODUCT_H
#define FP8R_TESTS_BACKEND_BLAS_PRODUCT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/blas/blas_library.h"
#include "support/rows.h"

static inline bool has_library(void)
{
    fp8r_reason reason;
    return fp8r_blas_load(&reason) != NULL;
}

#define NEEDS_LIBRARY()                                                                                                \
    if (!has_library()) {                                                                                              \
        print_message("skipped: no BLAS library on this machine\n");                                                   \
        skip();                                                                                                        \
    }

/* The library's own number of threads; 0 where it has none. */
static inline int library_threads(void)
{
    fp8r_reason reason;
    const struct fp8r_blas *library = fp8r_blas_load(&reason);
    return library && library->process.get ? library->process.get() : 0;
}

/* Plans for `extra` rows more than the sample has. The workspace is full of NaN and ends where its guard begins. False
 * with last_error, or where the guard is hurt. Does not fail the test itself: it may run in any thread. */
static inline bool run_planned(fp8r_context *context, const struct sample *sample, int64_t extra)
{
    enum { GUARD_BYTES = 256 };
    fp8r_matmul planned = sample->matmul;
    fp8r_matrix *rows[] = {&planned.a, &planned.out, &planned.scale_a};
    int64_t m = planned.a.rows;
    for (int i = 0; i < 3 && planned.out.batch == 1; i++) /* packed batch items of more rows would overlap */
        if (rows[i]->rows == m)
            rows[i]->rows = m + extra;
    fp8r_plan *plan;
    if (fp8r_plan_create(context, &planned, "blas", &plan) != FP8R_OK)
        return false;
    size_t bytes = fp8r_plan_workspace(plan), all = (bytes + GUARD_BYTES + 255) / 256 * 256;
    uint8_t *space = aligned_alloc(256, all);
    bool good = space != NULL;
    if (good) {
        memset(space, 0xFF, all);
        fp8r_pointers pointers = sample_pointers(sample, m);
        good = fp8r_plan_run(plan, &pointers, space, bytes, NULL) == FP8R_OK;
        for (size_t i = bytes; i < all; i++)
            good = good && space[i] == 0xFF;
    }
    free(space);
    fp8r_plan_destroy(plan);
    return good;
}

/* Makes, runs and judges one. */
static inline bool computes(fp8r_context *context, const char *text, int64_t extra)
{
    struct sample sample;
    char line[256] = "could not be made or run";
    if (!sample_init(&sample, text, SAMPLE_RANDOM, 5))
        return false;
    bool good = run_planned(context, &sample, extra) && sample_judge(&sample, sample.matmul.a.rows, line, sizeof line);
    if (!good)
        print_message("%s: %s\n", text, line);
    sample_fini(&sample);
    return good;
}

#endif
