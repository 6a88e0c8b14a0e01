/* One bar: what is measured, against what, and what it must and should be. Each bar is a ratio of two times
 * that were taken alternately in one run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BENCH_BAR_H
#define FP8R_BENCH_BAR_H

#include <stdbool.h>
#include <stdint.h>

#include <fp8route/backend.h>

enum { BENCH_ROUNDS_MOST = 200 };

struct bench_settings {
    int32_t threads;
    int rounds;
    const char *commit; /* for the result file; NULL: ask git */
    const char *backend; /* that a workload is planned on; NULL: routed, with the machine's route files */
    fp8r_device_facts facts;
};

/* Ratios are oriented so that more is better where larger_is_better, else less. */
struct bench_bar {
    const char *name;
    char what[160];
    double must, aim;
    bool larger_is_better;
    bool by_interval; /* holds unless the whole interval misses the limit */

    bool is_measured;
    char note[256];  /* why not, or the peer's name */
    char config[64]; /* "cpu:CONFIG" that ran */
    int rounds;
    double ratio, low, high; /* median of the paired ratios and its 95 % interval */
    double mine_us, peer_us; /* medians of one product */
    double mine_rate, peer_rate;
    const char *rate_unit;
};

/* Time of `repeats` units of work, in nanoseconds; negative where it failed. */
typedef int64_t (*bench_pass)(void *arg);

/* Alternates the two passes in random order, after one unmeasured round, and fills ratio (mine's rate over
 * the peer's where larger is better, else mine's time over the peer's), interval and medians. False where a
 * pass failed. */
bool bench_pair(struct bench_bar *bar, int rounds, bench_pass mine, void *mine_arg, bench_pass peer,
                void *peer_arg, double units);

/* The bars. Each fills the whole struct; without memory, library or peer it stays unmeasured with a note. */
void bench_decode(const struct bench_settings *settings, int64_t n, int64_t k, const char *name,
                  struct bench_bar *bar);
void bench_sgemm(const struct bench_settings *settings, struct bench_bar *bar);
/* A product where the routes send it, against the fastest of the backends measured beside it. */
void bench_routed(const struct bench_settings *settings, const char *problem, const char *name, struct bench_bar *bar);
/* Time over what it may take: a decision for one of 1,000 known problems, a plan's run on a backend that computes
 * nothing. */
void bench_decision(const struct bench_settings *settings, struct bench_bar *bar);
void bench_plan_run(const struct bench_settings *settings, struct bench_bar *bar);
void bench_torch(const struct bench_settings *settings, struct bench_bar *bar);

#endif
