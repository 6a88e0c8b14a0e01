/* The set of pairs against a search through all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/random.h"
#include "tune/pair_set.h"

static void an_empty_set_has_nothing(void **state)
{
    struct fp8r_pair_set set = {0};
    (void)state;
    assert_false(fp8r_pair_set_has(&set, 1, 1));
    fp8r_pair_set_fini(&set);
}

/* Enough of them to grow it many times, and some of them twice. */
static void it_says_what_a_search_says(void **state)
{
    enum { PAIRS = 3000, VALUES = 50 };
    static bool is_in[VALUES][VALUES];
    struct fp8r_pair_set set = {0};
    struct fp8r_random random = {7};
    size_t distinct = 0;
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        int n = (int)(fp8r_random_unit(&random) * VALUES), k = (int)(fp8r_random_unit(&random) * (VALUES - 1));
        assert_int_equal(fp8r_pair_set_has(&set, 128 * (n + 1), k), is_in[n][k]);
        distinct += !is_in[n][k];
        is_in[n][k] = true;
        assert_true(fp8r_pair_set_add(&set, 128 * (n + 1), k));
    }
    assert_int_equal(set.count, distinct);
    for (int n = 0; n < VALUES; n++)
        for (int k = 0; k < VALUES; k++)
            assert_int_equal(fp8r_pair_set_has(&set, 128 * (n + 1), k), is_in[n][k]);
    fp8r_pair_set_fini(&set);
}

/* N and K are not the same thing, and sizes may be as large as they are. */
static void order_and_size_matter(void **state)
{
    struct fp8r_pair_set set = {0};
    (void)state;
    assert_true(fp8r_pair_set_add(&set, INT64_MAX, 1));
    assert_true(fp8r_pair_set_has(&set, INT64_MAX, 1));
    assert_false(fp8r_pair_set_has(&set, 1, INT64_MAX));
    fp8r_pair_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_empty_set_has_nothing),
                                       cmocka_unit_test(it_says_what_a_search_says),
                                       cmocka_unit_test(order_and_size_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
