/* Random problems: the same for a seed, within their limits, in the shares that are promised.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/random_problem.h"

enum { DRAWS = 4000 };

static struct fp8r_random_problem drawn[DRAWS];

static void draw_all(int32_t kind, int64_t available_bytes, uint64_t seed,
                     struct fp8r_random_problems *problems)
{
    fp8r_random_problems_init(problems, kind, available_bytes, seed);
    for (int i = 0; i < DRAWS; i++)
        drawn[i] = fp8r_random_problems_next(problems);
}

static void keeps_to_its_limits(void **state)
{
    (void)state;
    static const int32_t kinds[] = {FP8R_DEVICE_CPU, FP8R_DEVICE_CUDA};
    for (int kind = 0; kind < 2; kind++) {
        struct fp8r_random_problems problems;
        draw_all(kinds[kind], INT64_MAX, 7, &problems);
        for (int i = 0; i < DRAWS; i++) {
            const struct fp8r_random_problem *p = &drawn[i];
            assert_in_range(p->m, 1, kind == 0 ? 512 : 16384);
            assert_in_range(p->n, 512, kind == 0 ? 8192 : 32768);
            assert_in_range(p->k, 512, kind == 0 ? 8192 : 32768);
            assert_true(2.0 * (double)p->m * (double)p->n * (double)p->k <= problems.operations_max);
        }
    }
}

static void has_the_promised_shares(void **state)
{
    (void)state;
    struct fp8r_random_problems problems;
    int by_128 = 0, by_16 = 0, decode = 0, small = 0;
    draw_all(FP8R_DEVICE_CUDA, INT64_MAX, 3, &problems);
    for (int i = 0; i < DRAWS; i++) {
        bool is_128 = drawn[i].n % 128 == 0 && drawn[i].k % 128 == 0;
        by_128 += is_128;
        by_16 += !is_128 && drawn[i].n % 16 == 0 && drawn[i].k % 16 == 0;
        decode += drawn[i].m <= 128; /* half of the way to 16384, in factors */
        small += drawn[i].n <= 4096; /* likewise from 512 to 32768 */
    }
    assert_in_range(by_128, 0.66 * DRAWS, 0.75 * DRAWS);
    assert_in_range(by_16, 0.16 * DRAWS, 0.24 * DRAWS);
    assert_in_range(decode, 0.45 * DRAWS, 0.56 * DRAWS);
    assert_in_range(small, 0.45 * DRAWS, 0.56 * DRAWS);
}

static void is_the_same_for_a_seed(void **state)
{
    (void)state;
    struct fp8r_random_problems problems;
    static struct fp8r_random_problem before[DRAWS];
    draw_all(FP8R_DEVICE_CPU, INT64_MAX, 11, &problems);
    memcpy(before, drawn, sizeof before);
    draw_all(FP8R_DEVICE_CPU, INT64_MAX, 11, &problems);
    assert_memory_equal(before, drawn, sizeof before);
    draw_all(FP8R_DEVICE_CPU, INT64_MAX, 12, &problems);
    assert_memory_not_equal(before, drawn, sizeof before);
}

/* Where memory is short, weights are small; where there is none, the smallest problem is drawn. */
static void heeds_memory(void **state)
{
    (void)state;
    struct fp8r_random_problems problems;
    draw_all(FP8R_DEVICE_CPU, INT64_C(64) << 20, 5, &problems);
    for (int i = 0; i < DRAWS; i++)
        assert_true(drawn[i].n * drawn[i].k <= INT64_C(4) << 20);
    draw_all(FP8R_DEVICE_CPU, 0, 5, &problems);
    for (int i = 0; i < DRAWS; i++)
        assert_true(drawn[i].n == 512 && drawn[i].k == 512 && drawn[i].m >= 1);
    char text[FP8R_RANDOM_PROBLEMS_BYTES];
    fp8r_random_problems_describe(&problems, text);
    assert_non_null(strstr(text, "512..8192"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_to_its_limits), cmocka_unit_test(has_the_promised_shares),
        cmocka_unit_test(is_the_same_for_a_seed), cmocka_unit_test(heeds_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
