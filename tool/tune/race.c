/* Entering and running.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/race.h"

#include "measure/clock.h"
#include "tune/interrupt.h"

/* A call so long, as a multiple of what a warm-up must last, that what a first one does once is little of it. */
static const double long_calls = 20;

/* Who took so long in its one verified call that the others are far ahead is not called again. */
static double hopelessly_behind(const struct fp8r_race *race, const struct fp8r_contest *contest, int racer)
{
    if (racer == race->keep || !(contest->racers[racer].first_us > long_calls * race->enough_us)) return 0;
    return fp8r_contest_behind(contest, racer, fp8r_contest_best_us(contest), race->behind_factor);
}

int fp8r_race_enter(const struct fp8r_race *race, struct fp8r_contest *contest, struct fp8r_tool_error *error)
{
    for (int i = 0; i < contest->count; i++) {
        if (contest->racers[i].standing != FP8R_STANDING_READY) continue;
        if (fp8r_interrupted()) return FP8R_EXIT_INTERRUPTED;
        int code = fp8r_contest_verify(contest, i, &race->verify, error);
        if (code != FP8R_EXIT_GOOD) return code;
        if (contest->racers[i].standing != FP8R_STANDING_READY) continue;
        const double times = hopelessly_behind(race, contest, i);
        if (times > 0)
            fp8r_contest_drop(contest, i, FP8R_STANDING_BEHIND, "%.1fx behind", times);
        else
            code = fp8r_contest_enter(contest, i, race->enough_us, error);
        if (code != FP8R_EXIT_GOOD) return code;
    }
    return FP8R_EXIT_GOOD;
}

static void drop_behind(const struct fp8r_race *race, struct fp8r_contest *contest)
{
    double best_us = fp8r_contest_best_us(contest); /* who is dropped is not the best */
    for (int i = 0; i < contest->count; i++) {
        if (i == race->keep || contest->racers[i].standing != FP8R_STANDING_RACING) continue;
        double times = fp8r_contest_behind(contest, i, best_us, race->behind_factor);
        if (times > 0) fp8r_contest_drop(contest, i, FP8R_STANDING_BEHIND, "%.1fx behind", times);
    }
}

int fp8r_race_run(const struct fp8r_race *race, struct fp8r_contest *contest, struct fp8r_tool_error *error)
{
    for (int round = 0; round < race->rounds_max; round++) {
        int64_t round_ns = (int64_t)(fp8r_sampler_round_us(&contest->sampler) * 1e3);
        if (round >= race->rounds_min && fp8r_clock_ns() + round_ns > race->until_ns) break;
        if (fp8r_interrupted()) return FP8R_EXIT_INTERRUPTED;
        int code = fp8r_sampler_round(&contest->sampler, error);
        if (code != FP8R_EXIT_GOOD) return code;
        drop_behind(race, contest);
    }
    return FP8R_EXIT_GOOD;
}
