/* Field reports B and F6: windows, orders, views, alignment (docs/field-reports.md).
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/rows.h"

/* A window of a larger buffer, one operand at a time. Padding of inputs is NaN, bytes of out's must stay. */
static void b1_windows_of_larger_buffers(void **state)
{
    static const char *const texts[] = {"512x96x512:lda=1024",  "96x512x512:ldb=1024",  "96x512x96:ldo=1024",
                                        "48x48x48:lda=64",      "48x48x48:ldb=64",      "48x48x48:ldo=64",
                                        "48x48x48:lda=64:fp32", "1x48x48:ldb=64:fp32",  "3x48x48:lda=64:ldb=64:ldo=64:bias"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        rows_check(&shared_rows, texts[i]);
}

/* Every order is taken, by every entry point, with the same values. */
static void b3_all_orders_of_a_and_b(void **state)
{
    static const char *const orders[] = {"", ":ta", ":tb", ":ta:tb"}, *const outs[] = {"", ":to"};
    static const int ms[] = {1, 16, 70};
    (void)state;
    for (int m = 0; m < 3; m++)
        for (int order = 0; order < 4; order++)
            for (int out = 0; out < 2; out++) {
                char text[64];
                snprintf(text, sizeof text, "%dx24x32%s%s", ms[m], orders[order], outs[out]);
                rows_check(&shared_rows, text);
            }
}

/* [2, 8, K] from its fourth row on: the batch's stride is not rows times pitch. */
static void b5_a_slice_along_the_sequence(void **state)
{
    (void)state;
    rows_check(&shared_rows, "2*5x24x64:ba=512:sa=row");
    rows_check(&shared_rows, "2*5x24x64:ba=512:bb=0:bo=192");
}

static void b6_batches_in_their_own_strides(void **state)
{
    static const char *const texts[] = {"3*16x24x32:ldo=40:bo=1000", "3*16x24x32:bb=5000", "3*16x24x32:bb=0", "3*16x24x32:tb:bb=768",
                                        "3*16x24x32:ba=0:bo=384", "4*1x24x32:lda=32:ba=32:bo=24"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        rows_check(&shared_rows, texts[i]);
}

/* All scales are different powers of two: every element is exact, and a swapped or repeated scale shows (and would be
 * seen: test_oracle). */
static void b8_every_row_and_column_has_its_own_scale(void **state)
{
    static const char *const texts[] = {"33x57x64", "33x57x64:fp32", "33x57x64:fp16:bias", "2*17x31x48:fp32", "1x300x64", "300x1x64"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        rows_check_exact(&shared_rows, texts[i]);
}

/* Scales and bias that are windows or repeat themselves: strides of their own. */
static void b8_strided_scales(void **state)
{
    (void)state;
    for (int64_t stride = 1; stride <= 3; stride++) {
        fp8r_matmul matmul;
        struct sample sample;
        assert_int_equal(fp8r_matmul_parse("9x12x40:bias:fp32", &matmul), FP8R_OK);
        matmul.scale_a.row_stride = stride;
        matmul.scale_b.col_stride = stride + 1;
        matmul.bias.col_stride = stride;
        assert_true(sample_init_matmul(&sample, &matmul, SAMPLE_EXACT, 3));
        rows_run(&shared_rows, &sample, "strided scales");
        sample_fini(&sample);
    }
}

/* Each operand in turn off a 256-byte border by every power of two that its type allows. */
static void f6_every_alignment_of_every_operand(void **state)
{
    static const int least[SAMPLE_OPERANDS] = {1, 1, 2, 4, 4, 2};
    (void)state;
    for (int operand = SAMPLE_A; operand < SAMPLE_OPERANDS; operand++)
        for (int align = least[operand]; align <= 64; align *= 2)
            for (int m = 1; m <= 33; m += 32) {
                struct sample sample;
                char text[64], name[128];
                snprintf(text, sizeof text, "%dx96x160:bias", m);
                assert_true(sample_init(&sample, text, SAMPLE_EXACT, 11));
                sample_unalign(&sample, (enum sample_operand)operand, (size_t)align);
                snprintf(name, sizeof name, "%s, operand %d aligned to %d", text, operand, align);
                rows_run(&shared_rows, &sample, name);
                sample_fini(&sample);
            }
}

/* A call with aligned data, then one with unaligned data of the same shape: what was cached for the first is not used. */
static void f6_a_cached_plan_is_not_for_less_aligned_data(void **state)
{
    char line[160];
    (void)state;
    for (int round = 0; round < 2; round++)
        for (int align = 256; align >= 1; align /= 2) {
            struct sample sample;
            assert_true(sample_init(&sample, "5x64x96", SAMPLE_EXACT, 2));
            if (align < 256)
                sample_unalign(&sample, SAMPLE_A, (size_t)align);
            sample_clear(&sample);
            assert_int_equal(fp8r_scaled_mm(shared_rows.contexts[0], &sample.matmul, NULL), FP8R_OK);
            if (!sample_judge(&sample, 5, line, sizeof line))
                fail_msg("align %d: %s", align, line);
            sample_fini(&sample);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b1_windows_of_larger_buffers),
        cmocka_unit_test(b3_all_orders_of_a_and_b),
        cmocka_unit_test(b5_a_slice_along_the_sequence),
        cmocka_unit_test(b6_batches_in_their_own_strides),
        cmocka_unit_test(b8_every_row_and_column_has_its_own_scale),
        cmocka_unit_test(b8_strided_scales),
        cmocka_unit_test(f6_every_alignment_of_every_operand),
        cmocka_unit_test(f6_a_cached_plan_is_not_for_less_aligned_data),
    };
    return cmocka_run_group_tests_name("field reports B", tests, shared_rows_setup, shared_rows_teardown);
}
