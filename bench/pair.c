/* Paired timing of two alternatives.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bar.h"

#include "measure/random.h"
#include "measure/statistics.h"

bool bench_pair(struct bench_bar *bar, int rounds, bench_pass mine, void *mine_arg, bench_pass peer,
                void *peer_arg, double units)
{
    double own[BENCH_ROUNDS_MOST], other[BENCH_ROUNDS_MOST], ratios[BENCH_ROUNDS_MOST];
    struct fp8r_random random = {.state = 1};
    int count = rounds < BENCH_ROUNDS_MOST ? rounds : BENCH_ROUNDS_MOST;
    for (int i = -1; i < count; i++) {
        bool first = fp8r_random_below(&random, 2) == 0;
        int64_t a = first ? mine(mine_arg) : 0;
        int64_t b = peer(peer_arg);
        a = first ? a : mine(mine_arg);
        if (a <= 0 || b <= 0) return false;
        if (i >= 0) {
            own[i] = (double)a;
            other[i] = (double)b;
        }
    }
    struct fp8r_ratio ratio = bar->larger_is_better
                                  ? fp8r_paired_ratio(other, own, (size_t)count, 0.95, ratios)
                                  : fp8r_paired_ratio(own, other, (size_t)count, 0.95, ratios);
    fp8r_sort(own, (size_t)count);
    fp8r_sort(other, (size_t)count);
    bar->is_measured = true;
    bar->rounds = count;
    bar->ratio = ratio.median;
    bar->low = ratio.interval.low;
    bar->high = ratio.interval.high;
    bar->mine_us = fp8r_median(own, (size_t)count) / units / 1e3;
    bar->peer_us = fp8r_median(other, (size_t)count) / units / 1e3;
    return true;
}
