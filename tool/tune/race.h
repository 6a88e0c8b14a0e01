/* Rounds of a contest: who is wrong never starts, who is clearly behind stops early, and time limits it all.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_RACE_H
#define FP8R_RACE_H

#include "tune/contest.h"

struct fp8r_race {
    struct fp8r_verify_options verify;
    int rounds_min, rounds_max;
    double behind_factor; /* who is this many times behind stops (fp8r_contest_behind); INFINITY:
                             none does */
    int keep;             /* a racer that never stops, -1 for none */
    double enough_us;     /* a call that takes longer needs no more warming */
    int64_t until_ns;     /* no round that would end later is begun, once there are rounds_min */
};

/* Verifies and warms every racer that is ready; whose one verified call was long and far behind is not warmed. Exit codes:
 * INTERRUPTED, UNMEASURED, INTERNAL. */
int fp8r_race_enter(const struct fp8r_race *race, struct fp8r_contest *contest,
                    struct fp8r_tool_error *error);

/* Runs the rounds. Exit codes likewise. */
int fp8r_race_run(const struct fp8r_race *race, struct fp8r_contest *contest, struct fp8r_tool_error *error);

#endif
