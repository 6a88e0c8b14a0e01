/* How good are routes on problems that nobody measured? Draws some, races what the routes choose against
 * everything that can run them, and says what the choice costs beyond the best. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef TOOL_TUNE_UNSEEN_H
#define TOOL_TUNE_UNSEEN_H

#include "measure/rotation.h"
#include "tune/quick.h"
#include "tune/random_problem.h"
#include "tune/record.h"
#include "tune/regret.h"

struct unseen_problem {
    char text[FP8R_TEXT_BYTES];
    char routed[FP8R_LABEL_BYTES], source[32]; /* what the routes choose, and by which step */
    char best[FP8R_LABEL_BYTES];
    double routed_us; /* median over all rounds */
    int raced;        /* candidates, the routed one counted */
    struct regret regret;
};

struct unseen {
    fp8r_context *routed, *context; /* with the routes, and without any */
    const struct fp8r_measure_device *device;
    struct record *record;
    uint64_t seed;
    double margin;
    bool is_warm;          /* operands are not rotated out of the caches: as the file was measured */
    int64_t wanted;        /* problems, UNSEEN_MOST at most */
    double budget_seconds; /* for all; 0: UNSEEN_SECONDS a problem */
    void (*progress)(void *user, const struct fp8r_progress *progress);
    void (*note)(void *user, const char *line);
    void *user;
    /* What came of it. */
    struct unseen_problem *problems; /* owned */
    size_t count;
    int64_t left; /* not begun when the budget ended */
    struct fp8r_random_problems draws;
    struct regret_summary summary;
    bool is_wrong; /* some result was wrong */
};

enum { UNSEEN_SECONDS = 6, UNSEEN_MOST = 10000 };

/* A problem may surely lose this much more than its best before the routes are at fault; the mean only the
 * margin. */
extern const double unseen_worst_limit;

/* Exit codes: INTERRUPTED, UNMEASURED when the device fails, INTERNAL. What the problems say is no error:
 * unseen_exit. */
int unseen_measure(struct unseen *unseen, struct fp8r_tool_error *error);
void unseen_fini(struct unseen *unseen);

/* FAILED where the mean regret is above the margin, or some problem's interval lies above the limit;
 * UNMEASURED where no problem was measured. */
int unseen_exit(const struct unseen *unseen);

#endif
