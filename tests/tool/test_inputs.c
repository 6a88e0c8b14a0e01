/* Operands: the same seed the same bytes, real values, scales all different, and every kind of damage
 * noticed. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "measure/inputs.h"
#include "measure/statistics.h"

static void create(const char *problem, uint64_t seed, enum fp8r_guard guard, struct fp8r_inputs *inputs)
{
    struct fp8r_tool_error error = {0};
    fp8r_matmul shape;
    assert_int_equal(fp8r_matmul_parse(problem, &shape), FP8R_OK);
    if (fp8r_inputs_create(&shape, seed, guard, inputs, &error) != 0) fail_msg("%s", error.text);
}

static void same_seed_same_bytes(void **state)
{
    (void)state;
    struct fp8r_inputs a, b, c;
    create("9x33x65:bias:lda=70", 3, FP8R_GUARD_BYTES, &a);
    create("9x33x65:bias:lda=70", 3, FP8R_GUARD_PAGES, &b);
    create("9x33x65:bias:lda=70", 4, FP8R_GUARD_BYTES, &c);
    for (int i = 0; i < FP8R_INPUT_COUNT; i++) {
        assert_int_equal(a.areas[i].data_bytes, b.areas[i].data_bytes);
        assert_memory_equal(a.areas[i].data, b.areas[i].data, a.areas[i].data_bytes);
        if (i != FP8R_INPUT_OUT)
            assert_memory_not_equal(a.areas[i].data, c.areas[i].data, a.areas[i].data_bytes);
    }
    fp8r_inputs_destroy(&a);
    fp8r_inputs_destroy(&b);
    fp8r_inputs_destroy(&c);
}

/* Large operands are filled by several threads: a line has the bytes that it has in a smaller one. */
static void lines_do_not_depend_on_how_many_there_are(void **state)
{
    (void)state;
    static const char *const large[] = {"3000x2000x4100", "3*1500x700x4100:lda=12300:ba=4100"};
    static const char *const small[] = {"30x2000x4100", "3*15x700x4100:lda=12300:ba=4100"};
    for (int i = 0; i < 2; i++) {
        struct fp8r_inputs a, b;
        create(large[i], 5, FP8R_GUARD_NONE, &a);
        create(small[i], 5, FP8R_GUARD_BYTES, &b);
        const fp8r_matrix *of = &b.matmul.a;
        assert_memory_equal(a.matmul.b.data, b.matmul.b.data, b.areas[FP8R_INPUT_B].data_bytes);
        for (int64_t r = 0; r < of->rows; r++)
            assert_memory_equal((const uint8_t *)a.matmul.a.data + r * of->row_stride,
                                (const uint8_t *)of->data + r * of->row_stride, (size_t)of->cols);
        fp8r_inputs_destroy(&a);
        fp8r_inputs_destroy(&b);
    }
}

static void scales_all_different(void **state)
{
    (void)state;
    struct fp8r_inputs inputs;
    create("300x5000x1", 1, FP8R_GUARD_BYTES, &inputs);
    double *values = malloc(5300 * sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < 300; i++)
        values[i] = (double)((const float *)inputs.matmul.scale_a.data)[i];
    for (int i = 0; i < 5000; i++)
        values[300 + i] = (double)((const float *)inputs.matmul.scale_b.data)[i];
    fp8r_sort(values, 300);
    fp8r_sort(values + 300, 5000);
    for (int i = 1; i < 5300; i++)
        if (i != 300) assert_true(values[i] > values[i - 1]);
    assert_true(values[0] > 1e-4 && values[299] < 0.1);
    free(values);
    fp8r_inputs_destroy(&inputs);
}

/* Codes reach the whole range of the type, as quantised data do, and none is NaN. */
static void real_range(void **state)
{
    (void)state;
    struct fp8r_inputs inputs;
    create("1x64x1024", 1, FP8R_GUARD_BYTES, &inputs);
    const uint8_t *b = inputs.matmul.b.data;
    double squares = 0, largest = 0;
    for (int i = 0; i < 64 * 1024; i++) {
        double value = (double)fp8r_from_e4m3(b[i]);
        assert_true(value == value);
        squares += value * value;
        largest = fmax(largest, fabs(value));
    }
    assert_true(largest == 448);
    assert_true(fabs(sqrt(squares / (64 * 1024)) - 112) < 3);
    fp8r_inputs_destroy(&inputs);
}

static void exact_alignment(void **state)
{
    (void)state;
    static const int aligns[] = {1, 2, 4, 8, 16, 32, 64, 128};
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        char problem[64];
        struct fp8r_inputs inputs;
        snprintf(problem, sizeof problem, "3x5x7:align=%d", aligns[i]);
        create(problem, 1, i % 2 ? FP8R_GUARD_PAGES : FP8R_GUARD_BYTES, &inputs);
        uintptr_t a = (uintptr_t)inputs.matmul.a.data;
        assert_true(a % (uintptr_t)aligns[i] == 0 && a % (2 * (uintptr_t)aligns[i]) != 0);
        fp8r_inputs_destroy(&inputs);
    }
}

static void poison_between(void **state)
{
    (void)state;
    struct fp8r_inputs inputs;
    create("3x5x7:lda=10:ldb=9", 1, FP8R_GUARD_BYTES, &inputs);
    const uint8_t *a = inputs.matmul.a.data;
    for (int row = 0; row < 2; row++)
        for (int gap = 7; gap < 10; gap++)
            assert_int_equal(a[row * 10 + gap], FP8R_POISON);
    fp8r_inputs_destroy(&inputs);
}

/* Flips one byte and expects a word of it; then everything is as it was. */
static void expect_damage(struct fp8r_inputs *inputs, uint8_t *byte, const char *word)
{
    *byte ^= 0x55;
    const char *damage = fp8r_inputs_damage(inputs);
    if (!damage || !strstr(damage, word))
        fail_msg("'%s' does not name %s", damage ? damage : "nothing", word);
    *byte ^= 0x55;
    assert_null(fp8r_inputs_damage(inputs));
}

static void damage_is_noticed(void **state)
{
    (void)state;
    struct fp8r_inputs inputs;
    create("3x5x7:bias:ldo=9:lda=11", 1, FP8R_GUARD_BYTES, &inputs);
    assert_null(fp8r_inputs_damage(&inputs));
    uint8_t *a = inputs.matmul.a.data, *out = inputs.matmul.out.data;
    expect_damage(&inputs, a, "a was changed");
    expect_damage(&inputs, a + 8, "a was changed"); /* a gap */
    expect_damage(&inputs, a - 1, "a was changed");
    expect_damage(&inputs, (uint8_t *)inputs.matmul.b.data + 34, "b was changed");
    expect_damage(&inputs, inputs.matmul.scale_a.data, "scale_a");
    expect_damage(&inputs, inputs.matmul.scale_b.data, "scale_b");
    expect_damage(&inputs, inputs.matmul.bias.data, "bias");
    expect_damage(&inputs, out - 1, "around out");
    expect_damage(&inputs, out + 2 * (2 * 9 + 5), "around out");
    expect_damage(&inputs, out + 2 * 6, "between the rows of out");
    out[0] = 1;
    assert_null(fp8r_inputs_damage(&inputs));
    assert_false(fp8r_inputs_out_untouched(&inputs));
    fp8r_inputs_poison_out(&inputs);
    assert_true(fp8r_inputs_out_untouched(&inputs));
    fp8r_inputs_destroy(&inputs);
}

static void too_large(void **state)
{
    (void)state;
    struct fp8r_tool_error error = {0};
    struct fp8r_inputs inputs;
    fp8r_matmul shape;
    assert_int_equal(fp8r_matmul_parse("4000000x4000000x4000000", &shape), FP8R_OK);
    assert_int_equal(fp8r_inputs_create(&shape, 1, FP8R_GUARD_BYTES, &inputs, &error), FP8R_EXIT_INTERNAL);
    assert_non_null(strstr(error.text, "GiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(lines_do_not_depend_on_how_many_there_are),
        cmocka_unit_test(scales_all_different),
        cmocka_unit_test(real_range),
        cmocka_unit_test(exact_alignment),
        cmocka_unit_test(poison_between),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
