/* Regret: what the routed choice costs beyond the best one. The best is picked on one half of the rounds and
 * charged on the other, so that luck in the picking is not counted as loss. Pure. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef TOOL_TUNE_REGRET_H
#define TOOL_TUNE_REGRET_H

#include "tune/samples.h"

struct regret {
    int best;       /* candidate; the fastest by median over the even rounds */
    double best_us; /* its median over those */
    int pairs;      /* odd rounds that have both; 0: nothing can be said */
    double value; /* time(routed) / time(best) - 1, by the median of the pairs; 0 where the best is the routed
                     one */
    double low, high; /* its interval, 95 % */
};

/* Over the samples of one phase. A candidate needs samples in half of the routed one's even rounds to be
 * picked: who was dropped early was behind. Exit codes: INTERNAL. */
int regret_of(const struct sample_case *it, int phase, int routed, struct regret *regret,
              struct fp8r_tool_error *error);

/* Over several problems. */
struct regret_summary {
    int counted;
    double mean, worst; /* of the values */
    double worst_low;   /* the largest lower end of an interval: what the worst problem surely loses */
    int above;          /* values above the margin */
};
void regret_add(struct regret_summary *summary, const struct regret *regret, double margin);

#endif
