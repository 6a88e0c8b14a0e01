/* Checked sizes, at the border of 64 bits, against 128-bit arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sizes.h"
#include "support/sample.h"

__extension__ typedef __int128 wide;

/* Numbers of every magnitude, so that about half of the products overflow. */
static int64_t draw(uint64_t *random)
{
    uint64_t bits = sample_random(random);
    return (int64_t)(bits >> (1 + sample_random(random) % 63));
}

static void products_and_sums(void **state)
{
    uint64_t random = 3;
    int refused = 0;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        int64_t a = draw(&random), b = draw(&random), result = 0;
        bool fits = (wide)a * b <= INT64_MAX;
        assert_int_equal(fp8r_size_mul(a, b, &result), fits);
        assert_true(!fits || result == a * b);
        refused += !fits;
        fits = (wide)a + b <= INT64_MAX;
        assert_int_equal(fp8r_size_add(a, b, &result), fits);
        assert_true(!fits || result == a + b);
    }
    assert_in_range(refused, 20000, 180000);
}

static void last_elements(void **state)
{
    uint64_t random = 4;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        int64_t extents[3], strides[3], last = 0;
        wide wanted = 0;
        for (int d = 0; d < 3; d++) {
            extents[d] = draw(&random) / 2 + 1;
            strides[d] = draw(&random);
            wanted += (wide)(extents[d] - 1) * strides[d];
        }
        bool fits = wanted <= INT64_MAX;
        assert_int_equal(fp8r_size_last(extents, strides, &last), fits);
        assert_true(!fits || last == (int64_t)wanted);
    }
}

static void rounding(void **state)
{
    (void)state;
    for (int64_t unit = 1; unit < 40; unit++)
        for (int64_t value = 0; value < 200; value++) {
            int64_t up = fp8r_size_round_up(value, unit);
            assert_true(up >= value && up < value + unit && up % unit == 0);
            assert_int_equal(fp8r_size_blocks(value, unit), up / unit);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_sums),
        cmocka_unit_test(last_elements),
        cmocka_unit_test(rounding),
    };
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
