/* Routed against the best single backend, measured beside it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "workload.h"

enum { TRIAL_PASSES = 3, BACKENDS = 2 };

static int64_t best_pass(struct bench_workload *workload)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < TRIAL_PASSES; i++) {
        int64_t time = bench_workload_pass(workload);
        best = time > 0 && time < best ? time : best;
    }
    return best;
}

/* The fastest of the backends, each in its own pick, as a workload; false where none can be had. */
static bool best_single(const struct bench_settings *settings, const char *problem, struct bench_workload *best,
                        struct bench_bar *bar)
{
    static const char *const backends[BACKENDS] = {"cpu", "blas"};
    int64_t least = INT64_MAX;
    int winner = -1;
    for (int i = 0; i < BACKENDS; i++) {
        struct bench_settings one = *settings;
        one.backend = backends[i];
        if (!bench_workload_make(&one, problem, 0, best, bar)) continue;
        int64_t time = best_pass(best);
        winner = time < least ? i : winner;
        least = time < least ? time : least;
        bench_workload_drop(best);
    }
    struct bench_settings one = *settings;
    one.backend = winner >= 0 ? backends[winner] : "cpu";
    return winner >= 0 && bench_workload_make(&one, problem, 0, best, bar);
}

void bench_routed(const struct bench_settings *settings, const char *problem, const char *name, struct bench_bar *bar)
{
    struct bench_settings routed_settings = *settings;
    struct bench_workload routed, best;
    *bar = (struct bench_bar){.name = name, .must = 1.03, .aim = 1.0, .by_interval = true, .rate_unit = "GFLOP/s"};
    snprintf(bar->what, sizeof bar->what, "%s, cold: time where routed / fastest single backend", problem);
    routed_settings.backend = NULL;
    if (!best_single(settings, problem, &best, bar)) return;
    snprintf(bar->note, sizeof bar->note, "fastest: %.63s", bar->config);
    char note[sizeof bar->note];
    snprintf(note, sizeof note, "%s", bar->note);
    if (bench_workload_make(&routed_settings, problem, 0, &routed, bar)) {
        bench_pair(bar, settings->rounds, bench_workload_pass, &routed, bench_workload_pass, &best,
                   (double)routed.copies);
        double flops = 2.0 * (double)routed.matmul.a.rows * (double)routed.copy_bytes;
        bar->mine_rate = flops / bar->mine_us / 1e3;
        bar->peer_rate = flops / bar->peer_us / 1e3;
        snprintf(bar->note, sizeof bar->note, "%s", note);
        bench_workload_drop(&routed);
    }
    bench_workload_drop(&best);
}
