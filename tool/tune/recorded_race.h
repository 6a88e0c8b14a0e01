/* One problem measured for the record: everyone who can run it (or just two) verified, warmed and raced in rounds of
 * random order; each sample goes into the record as it is taken.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_RECORDED_RACE_H
#define TOOL_TUNE_RECORDED_RACE_H

#include "measure/rotation.h"
#include "tune/points.h"
#include "tune/record.h"

/* What races share. Borrowed by each. */
struct race_track {
    fp8r_context *context; /* without routes */
    const struct fp8r_measure_device *device;
    struct fp8r_rotation *rotation;
    struct fp8r_inputs *inputs;         /* of the family's largest member */
    const struct fp8r_points *entrants; /* only its entrants are looked at */
    struct record *record;
    int64_t *timed_ns; /* grows by what was timed; NULL = not counted */
    void (*note)(void *user, const char *line);
    void *user;
};

struct race_rules {
    int phase; /* SAMPLE_* */
    uint64_t seed;
    double weight;               /* of the case; 0 stands for 1 */
    const char *const *only;     /* candidates that race, NULL behind the last; NULL = all */
    int rounds_least, rounds_most;
    double budget_us;            /* no further round behind this, once the least are done */
    double behind_factor;        /* this much slower than the best is out; the default never is, nor who is kept */
    double sibling_factor;       /* the same against the best of its own backend; 0: they are all alike */
    const char *keep;            /* never out for being slow, even if it was once; NULL = nobody */
    /* Asked after each round behind the least; true ends the race. NULL: the budget and the most do. */
    bool (*is_enough)(void *arg, const struct sample_case *it);
    void *arg;
};

/* Races a member of the family (a product without data). *index: the case. Exit codes: INTERRUPTED, UNMEASURED (nobody can
 * run it: no case then), FAILED (someone's result was wrong; the others raced), INTERNAL. */
int race_run(const struct race_track *track, const struct race_rules *rules, const char *problem,
             const fp8r_matmul *member, size_t *index, struct fp8r_tool_error *error);

#endif
