/* Order statistics against values worked out by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/random.h"
#include "measure/statistics.h"

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-12 * fabs(wanted) + 1e-15))
        fail_msg("%.17g is not %.17g", value, wanted);
}

static void medians(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    fp8r_sort(odd, 3);
    fp8r_sort(even, 4);
    assert_near(fp8r_median(odd, 3), 3);
    assert_near(fp8r_median(even, 4), 2.5);
    assert_near(fp8r_median(one, 1), 7);
    assert_near(fp8r_quantile(even, 4, 0), 1);
    assert_near(fp8r_quantile(even, 4, 1), 4);
    assert_near(fp8r_quantile(even, 4, 0.25), 1.75);
}

/* P(B(n, 1/2) < r): n = 6: r=1: 1/64. n = 10: r=1: 1/1024, r=2: 11/1024, r=3: 56/1024. */
static void intervals(void **state)
{
    (void)state;
    double values[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct fp8r_interval six = fp8r_median_interval(values, 6, 0.95);
    assert_near(six.low, 1);
    assert_near(six.high, 6);
    assert_near(six.coverage, 1 - 2.0 / 64);
    struct fp8r_interval ten = fp8r_median_interval(values, 10, 0.95);
    assert_near(ten.low, 2); /* 1 - 22/1024 = 0.9785; the next, 1 - 112/1024, is short of 0.95 */
    assert_near(ten.high, 9);
    assert_near(ten.coverage, 1 - 22.0 / 1024);
    struct fp8r_interval loose = fp8r_median_interval(values, 10, 0.85);
    assert_near(loose.low, 3);
    assert_near(loose.high, 8);
}

static void too_few(void **state)
{
    (void)state;
    double values[5] = {1, 2, 3, 4, 5};
    struct fp8r_interval five = fp8r_median_interval(values, 5, 0.95);
    assert_near(five.low, 1);
    assert_near(five.high, 5);
    assert_near(five.coverage, 1 - 2.0 / 32);
    struct fp8r_interval one = fp8r_median_interval(values, 1, 0.95);
    assert_near(one.low, 1);
    assert_near(one.high, 1);
    assert_near(one.coverage, 0);
}

static void large(void **state)
{
    (void)state;
    static double values[5000];
    for (int i = 0; i < 5000; i++)
        values[i] = i;
    struct fp8r_interval interval = fp8r_median_interval(values, 5000, 0.95);
    assert_true(interval.coverage >= 0.95 && interval.coverage < 0.953);
    assert_near(interval.low + interval.high, 4999);
    assert_true(fabs(interval.high - 2499.5 - 1.96 * sqrt(5000) / 2) < 1.5); /* the normal approximation */
}

static void paired_ratios(void **state)
{
    (void)state;
    double base[] = {10, 20, 30, 40, 50, 60, 70}, other[] = {5, 10, 15, 20, 25, 30, 70}, ratios[7];
    struct fp8r_ratio ratio = fp8r_paired_ratio(base, other, 7, 0.95, ratios);
    assert_near(ratio.median, 2);
    assert_near(ratio.interval.low, 1);
    assert_near(ratio.interval.high, 2);
}

/* The true median must be inside at least as often as promised. */
static void coverage_holds(void **state)
{
    (void)state;
    struct fp8r_random random = {42};
    int inside = 0, runs = 20000;
    for (int run = 0; run < runs; run++) {
        double values[15];
        for (int i = 0; i < 15; i++)
            values[i] = exp(3 * fp8r_random_unit(&random)); /* skewed; median e^1.5 */
        fp8r_sort(values, 15);
        struct fp8r_interval interval = fp8r_median_interval(values, 15, 0.95);
        inside += interval.low <= exp(1.5) && exp(1.5) <= interval.high;
    }
    assert_true(inside >= 0.95 * runs);
    assert_true(inside <= 0.975 * runs); /* 15 samples: 96.5 % */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians), cmocka_unit_test(intervals),     cmocka_unit_test(too_few),
        cmocka_unit_test(large),   cmocka_unit_test(paired_ratios), cmocka_unit_test(coverage_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
