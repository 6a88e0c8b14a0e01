/* Does a backend keep its contract (fp8route/backend.h)? Each backend is examined in a process of its own, so
 * that one which crashes or hangs is a result like any other. Asks the contract's functions themselves and
 * runs products through the public API. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CONFORM_H
#define FP8R_CONFORM_H

#include <fp8route/backend.h>

#include "tool_error.h"

/* How the examining process gets its context; both are called there. */
struct fp8r_conform_host {
    int (*open)(void *user, fp8r_context **context, const fp8r_backend *const **outside,
                size_t *outside_count, struct fp8r_tool_error *error);
    void *user;
    const char *only;  /* examine the backend of this name; NULL = all */
    bool outside_only; /* examine no backend of the library's own */
    uint64_t seed;
};

enum fp8r_conform_outcome {
    FP8R_CONFORM_PASSED,
    FP8R_CONFORM_FAILED,
    FP8R_CONFORM_SKIPPED, /* not asked for */
    FP8R_CONFORM_UNFIT    /* cannot run on this device: see text */
};

/* Lives in memory that both processes see. */
struct fp8r_conform_result {
    int backend_count; /* of the context */
    char backend[64];
    enum fp8r_conform_outcome outcome;
    int64_t problems, runs, refusals, checks;
    /* What is being examined, or what failed. */
    char check[32], problem[256], config[64], text[512];
};

/* Examines backend `index` of the context's list; *result is complete when this returns GOOD. Exit codes:
 * those of open; INTERNAL where no process could be made. A contract that registration refuses is FAILED in
 * the result. */
int fp8r_conform_examine(const struct fp8r_conform_host *host, size_t index,
                         struct fp8r_conform_result *result, struct fp8r_tool_error *error);

#endif
