/* Who is clearly behind: by the least that was seen of each, so that one disturbed sample drops nobody.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune/contest.h"

enum { ROUNDS = 3 };

/* Two racers: the first takes 100 us; the second's verified call, warm-up and samples are given. */
static double behind(double first_us, double warm_us, const double *samples_us, int rounds)
{
    struct fp8r_racer racers[2] = {{.standing = FP8R_STANDING_RACING, .first_us = 120},
                                   {.standing = FP8R_STANDING_RACING, .first_us = first_us}};
    struct fp8r_contestant contestants[2] = {{.warm_us = 101}, {.warm_us = warm_us}};
    struct fp8r_sample samples[2 * ROUNDS];
    for (int i = 0; i < rounds; i++) {
        samples[2 * i] = (struct fp8r_sample){.contestant = 0, .round = i, .us = 100};
        samples[2 * i + 1] = (struct fp8r_sample){.contestant = 1, .round = i, .us = samples_us[i]};
    }
    const struct fp8r_contest contest = {.racers = racers,
                                         .count = 2,
                                         .sampler = {.contestants = contestants,
                                                     .count = 2,
                                                     .rounds = rounds,
                                                     .samples = samples,
                                                     .sample_count = 2 * (size_t)rounds}};
    return fp8r_contest_behind(&contest, 1, fp8r_contest_best_us(&contest), 3);
}

static void one_disturbed_sample_drops_nobody(void **state)
{
    (void)state;
    assert_true(behind(40000, 105, (const double[]){40000}, 1) == 0);
    assert_true(behind(105, 40000, (const double[]){40000}, 1) == 0);
    assert_true(behind(40000, 40000, (const double[]){40000, 40000, 104}, 3) == 0);
}

static void who_never_was_near_is_dropped(void **state)
{
    (void)state;
    assert_true(behind(900, 800, (const double[]){700}, 1) == 7); /* at once: twice the factor */
    assert_true(behind(900, 800, (const double[]){400}, 1) == 0); /* between: after three rounds */
    assert_true(behind(900, 800, (const double[]){400, 410}, 2) == 0);
    assert_true(behind(900, 800, (const double[]){400, 410, 405}, 3) == 4);
    assert_true(behind(900, 800, (const double[]){400, 299, 405}, 3) == 0);
}

/* Before it is warm only the verified call is known. */
static void one_call_may_be_enough(void **state)
{
    (void)state;
    assert_true(behind(900, 0, NULL, 0) > 8.9);
    assert_true(behind(400, 0, NULL, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_disturbed_sample_drops_nobody),
                                       cmocka_unit_test(who_never_was_near_is_dropped),
                                       cmocka_unit_test(one_call_may_be_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
