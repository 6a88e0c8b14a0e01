/* Comparing results bit by bit: distances in values of the type, NaN, holes, strides.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/bits.h"

static struct bits_difference halves(int32_t dtype, uint16_t a, uint16_t b)
{
    const fp8r_matrix out = {
        .dtype = dtype, .batch = 1, .rows = 1, .cols = 1, .row_stride = 1, .col_stride = 1};
    struct bits_difference difference = {0};
    bits_compare(&out, &a, &b, &difference);
    return difference;
}

static void counts_values_between(void **state)
{
    (void)state;
    static const struct {
        uint16_t a, b;
        int64_t ulp;
    } cases[] = {{0x3F80, 0x3F81, 1}, {0x3F81, 0x3F80, 1}, {0x3F80, 0x4000, 128},
                 {0x0001, 0x8001, 2}, {0xBF80, 0xBF82, 2}, {0x7F7F, 0x7F80, 1}}; /* the last: to infinity */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bits_difference found = halves(FP8R_DTYPE_BF16, cases[i].a, cases[i].b);
        assert_int_equal(found.different, 1);
        assert_int_equal(found.first_ulp, cases[i].ulp);
        assert_int_equal(found.most_ulp, cases[i].ulp);
    }
    assert_int_equal(halves(FP8R_DTYPE_FP16, 0x3C00, 0x3C05).first_ulp, 5);
    assert_true(halves(FP8R_DTYPE_FP16, 0x3C00, 0x4000).b == 2.0);
}

/* Bits, not values: the zeros differ, though by no value. */
static void zeros_are_told_apart(void **state)
{
    (void)state;
    struct bits_difference found = halves(FP8R_DTYPE_BF16, 0x0000, 0x8000);
    assert_int_equal(found.different, 1);
    assert_int_equal(found.first_ulp, 0);
}

static void nan_equals_nan_alone(void **state)
{
    (void)state;
    assert_int_equal(halves(FP8R_DTYPE_BF16, 0x7FC0, 0xFFC1).different, 0);
    struct bits_difference found = halves(FP8R_DTYPE_BF16, 0x7FC0, 0x3F80);
    assert_int_equal(found.different, 1);
    assert_int_equal(found.first_ulp, BITS_NO_ULP);
    assert_int_equal(halves(FP8R_DTYPE_BF16, 0x7FC0, 0xFFFF).different, 1); /* poison: not written */
    assert_int_equal(halves(FP8R_DTYPE_BF16, 0xFFFF, 0xFFFF).different, 1);
}

/* Padded rows: what lies between them is nobody's. Several results add up; the first one stays the first. */
static void walks_as_out_lies(void **state)
{
    (void)state;
    float a[2][2][5], b[2][2][5];
    const fp8r_matrix out = {.dtype = FP8R_DTYPE_FP32,
                             .batch = 2,
                             .rows = 2,
                             .cols = 3,
                             .batch_stride = 10,
                             .row_stride = 5,
                             .col_stride = 1};
    struct bits_difference found = {0};
    for (int i = 0; i < 20; i++)
        (&a[0][0][0])[i] = (&b[0][0][0])[i] = (float)(i + 1);
    b[0][0][4] = -1; /* between rows */
    bits_compare(&out, a, b, &found);
    assert_int_equal(found.compared, 12);
    assert_int_equal(found.different, 0);
    uint32_t bits;
    memcpy(&bits, &b[1][0][2], sizeof bits);
    bits += 3;
    memcpy(&b[1][0][2], &bits, sizeof bits);
    memcpy(&bits, &b[1][1][0], sizeof bits);
    bits -= 7;
    memcpy(&b[1][1][0], &bits, sizeof bits);
    bits_compare(&out, a, b, &found);
    assert_int_equal(found.compared, 24);
    assert_int_equal(found.different, 2);
    assert_int_equal(found.first.batch, 1);
    assert_int_equal(found.first.row, 0);
    assert_int_equal(found.first.col, 2);
    assert_int_equal(found.first_ulp, 3);
    assert_int_equal(found.most_ulp, 7);
    assert_true(found.a == 13.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_values_between), cmocka_unit_test(zeros_are_told_apart),
        cmocka_unit_test(nan_equals_nan_alone), cmocka_unit_test(walks_as_out_lies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
