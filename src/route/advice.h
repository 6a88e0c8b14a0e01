/* Decisions in words, and what to do where nothing was measured.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_ADVICE_H
#define FP8R_ROUTE_ADVICE_H

#include "route/decide.h"

/* What `tune --quick` spends on one candidate at one M, warm-up and verification included, unless calls are so long that the
 * least rounds take more; its M list when none is given. The tuner keeps to these, the advice multiplies them. */
enum { FP8R_QUICK_CANDIDATE_MS = 150, FP8R_QUICK_POINTS = 12, FP8R_QUICK_LAST_M = 2048 };

/* Why the chosen row was chosen, e.g. "measured here: 1.83x over the default". */
void fp8r_decision_sentence(const struct fp8r_router *router, const struct fp8r_decision *decision, char *text,
                            size_t size);

/* The route behind it, why a route missed, or how to measure one and how long that takes. */
void fp8r_decision_note(const struct fp8r_router *router, const fp8r_problem *problem,
                        const struct fp8r_candidates *candidates, const struct fp8r_decision *decision, char *text,
                        size_t size);

#endif
