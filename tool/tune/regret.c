/* Picking on even rounds, charging on odd ones. SPDX-License-Identifier: Apache-2.0 */
#include "tune/regret.h"

#include <math.h>
#include <stdlib.h>

#include "measure/statistics.h"

static const double coverage = 0.95;

/* Times of a candidate in the even rounds of the phase, sorted; how many. */
static size_t even_times(const struct sample_candidate *it, int phase, double *times)
{
    size_t count = 0;
    for (size_t i = 0; i < it->count; i++)
        if (it->samples[i].phase == phase && it->samples[i].round % 2 == 0)
            times[count++] = it->samples[i].us;
    fp8r_sort(times, count);
    return count;
}

static void pick(const struct sample_case *it, int phase, int routed, double *times, struct regret *regret)
{
    size_t wanted = even_times(&it->candidates[routed], phase, times);
    regret->best = routed;
    regret->best_us = wanted > 0 ? fp8r_median(times, wanted) : INFINITY;
    for (int i = 0; i < it->count; i++) {
        size_t count = even_times(&it->candidates[i], phase, times);
        double median = count > 0 && 2 * count >= wanted ? fp8r_median(times, count) : INFINITY;
        if (median < regret->best_us) {
            regret->best = i;
            regret->best_us = median;
        }
    }
}

/* Pairs of the odd rounds. There are few samples, so that looking through all of them is cheap. */
static size_t odd_pairs(const struct sample_candidate *a, const struct sample_candidate *b, int phase,
                        double *a_us, double *b_us)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count && a->samples[i].phase == phase && a->samples[i].round % 2 == 1; j++)
            if (b->samples[j].phase == phase && b->samples[j].run == a->samples[i].run &&
                b->samples[j].round == a->samples[i].round) {
                a_us[count] = a->samples[i].us;
                b_us[count++] = b->samples[j].us;
                break;
            }
    return count;
}

static void charge(const struct sample_case *it, int phase, int routed, double *a_us, double *b_us,
                   double *ratios, struct regret *regret)
{
    size_t count = odd_pairs(&it->candidates[routed], &it->candidates[regret->best], phase, a_us, b_us);
    regret->pairs = (int)count;
    if (count == 0 || regret->best == routed) return;
    struct fp8r_ratio ratio = fp8r_paired_ratio(a_us, b_us, count, coverage, ratios);
    regret->value = ratio.median - 1;
    regret->low = ratio.interval.low - 1;
    regret->high = ratio.interval.high - 1;
}

int regret_of(const struct sample_case *it, int phase, int routed, struct regret *regret,
              struct fp8r_tool_error *error)
{
    size_t most = 1;
    for (int i = 0; i < it->count; i++)
        most = it->candidates[i].count > most ? it->candidates[i].count : most;
    double *room = calloc(3 * most, sizeof *room);
    if (!room) return fp8r_tool_error_memory(error, "the times of a problem");
    *regret = (struct regret){0};
    pick(it, phase, routed, room, regret);
    charge(it, phase, routed, room, room + most, room + 2 * most, regret);
    free(room);
    return FP8R_EXIT_GOOD;
}

void regret_add(struct regret_summary *summary, const struct regret *regret, double margin)
{
    if (regret->pairs == 0) return;
    summary->worst = summary->counted == 0 ? regret->value : fmax(summary->worst, regret->value);
    summary->worst_low = summary->counted == 0 ? regret->low : fmax(summary->worst_low, regret->low);
    summary->mean += (regret->value - summary->mean) / (summary->counted + 1);
    summary->above += regret->value > margin;
    summary->counted++;
}
