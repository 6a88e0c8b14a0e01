/* Who challenges the default: near-equals of the fastest, never the default, never who is out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune/challengers.h"

enum { COUNT = 7 };

static const double margin = 0.02;

static void expect(const double medians_us[COUNT], int fallback, int count, const int *wanted)
{
    int found[CHALLENGERS_MOST];
    assert_int_equal(challengers_choose(medians_us, COUNT, fallback, margin, found), count);
    for (int i = 0; i < count; i++)
        assert_int_equal(found[i], wanted[i]);
}

/* One lucky median must not be the only one that is looked at. */
static void near_equals_challenge_together(void **state)
{
    (void)state;
    expect((double[COUNT]){70, 62.9, 61.9, 62.5, 66, 64, INFINITY}, 0, 3, (int[]){2, 3, 1});
    expect((double[COUNT]){70, 62.9, 61.9, 62.5, 66, 64, INFINITY}, 4, 3, (int[]){2, 3, 1});
    expect((double[COUNT]){61, 61.9, 61.2, 61.3, 61.4, 70, 61.1}, 5, 3, (int[]){0, 6, 2});
}

static void who_is_behind_the_fastest_does_not(void **state)
{
    (void)state;
    expect((double[COUNT]){70, 60, 61.3, INFINITY, INFINITY, INFINITY, INFINITY}, 0, 1, (int[]){1});
    expect((double[COUNT]){70, 60, 61.1, INFINITY, INFINITY, INFINITY, INFINITY}, 0, 2, (int[]){1, 2});
}

/* Half of the margin: a few rounds are no closer than that, so that a gain of the whole one is not missed. */
static void a_default_close_to_the_fastest_is_challenged_from_half_of_the_margin(void **state)
{
    (void)state;
    expect((double[COUNT]){60.5, 60, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}, 0, 0, NULL);
    expect((double[COUNT]){60.7, 60, 60.2, INFINITY, INFINITY, INFINITY, INFINITY}, 0, 1, (int[]){1});
}

static void without_a_default_nobody_does(void **state)
{
    (void)state;
    expect((double[COUNT]){60, 61, 62, 63, 64, 65, 66}, -1, 0, NULL);
    expect((double[COUNT]){INFINITY, 61, 62, 63, 64, 65, 66}, 0, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_equals_challenge_together),
        cmocka_unit_test(who_is_behind_the_fastest_does_not),
        cmocka_unit_test(a_default_close_to_the_fastest_is_challenged_from_half_of_the_margin),
        cmocka_unit_test(without_a_default_nobody_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
