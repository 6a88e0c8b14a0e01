/* Field reports C: scales, bias, output types (docs/field-reports.md).
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/rows.h"

/* A changed product must be refused by every entry point, the error naming `word`, with out as it was. */
static void must_refuse(const fp8r_matmul *matmul, const struct sample *sample, const char *word)
{
    fp8r_plan *plan = NULL;
    fp8r_explanation *explanation = NULL;
    assert_int_equal(fp8r_scaled_mm(shared_rows.contexts[0], matmul, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    if (!strstr(fp8r_last_error(), word))
        fail_msg("the error \"%s\" does not name %s", fp8r_last_error(), word);
    assert_int_equal(fp8r_plan_create(shared_rows.contexts[0], matmul, NULL, &plan), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fp8r_explain(shared_rows.contexts[0], matmul, &explanation), FP8R_ERROR_INVALID_ARGUMENT);
    assert_true(!plan && !explanation);
    for (size_t i = 0; i < sample->blocks[SAMPLE_OUT].size_bytes; i++)
        assert_int_equal(sample->blocks[SAMPLE_OUT].memory[i], 0xFF);
}

/* An fp8 out (which would need a scale of its own) is refused by name, not half done. */
static void c1_fp8_out_is_refused(void **state)
{
    struct sample sample;
    (void)state;
    assert_true(sample_init(&sample, "4x8x16", SAMPLE_EXACT, 1));
    for (int32_t dtype = FP8R_DTYPE_E4M3; dtype <= FP8R_DTYPE_E5M2; dtype++) {
        fp8r_matmul matmul = sample.matmul;
        matmul.out.dtype = dtype;
        must_refuse(&matmul, &sample, "out.dtype");
    }
    sample_fini(&sample);
}

/* One value is one value, whatever its strides and in which of the forms it comes. */
static void c3_all_one_element_scales_are_the_same(void **state)
{
    static const int64_t strides[][3] = {{0, 0, 0}, {1, 1, 1}, {100, 7, 3}};
    float first[4 * 8];
    (void)state;
    for (int form = 0; form < 9; form++) {
        struct sample sample;
        assert_true(sample_init(&sample, "4x8x16:tensor:fp32", SAMPLE_EXACT, 1));
        fp8r_matrix *scales[] = {&sample.matmul.scale_a, &sample.matmul.scale_b};
        const int64_t *chosen[] = {strides[form / 3], strides[form % 3]};
        for (int i = 0; i < 2; i++) {
            scales[i]->batch_stride = chosen[i][0];
            scales[i]->row_stride = chosen[i][1];
            scales[i]->col_stride = chosen[i][2];
        }
        rows_run(&shared_rows, &sample, "one-element scales");
        if (form == 0)
            memcpy(first, sample.matmul.out.data, sizeof first);
        assert_memory_equal(first, sample.matmul.out.data, sizeof first);
        sample_fini(&sample);
    }
}

/* Scales are fp32; anything else is refused, never read as fp32. */
static void c5_scales_of_other_types_are_refused(void **state)
{
    struct sample sample;
    (void)state;
    assert_true(sample_init(&sample, "4x8x16", SAMPLE_EXACT, 1));
    const int32_t dtypes[] = {FP8R_DTYPE_BF16, FP8R_DTYPE_FP16, FP8R_DTYPE_E4M3, 6, -1, 1000};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        fp8r_matmul matmul = sample.matmul;
        matmul.scale_a.dtype = dtypes[i];
        must_refuse(&matmul, &sample, "scale_a");
        matmul = sample.matmul;
        matmul.scale_b.dtype = dtypes[i];
        must_refuse(&matmul, &sample, "scale_b");
    }
    sample_fini(&sample);
}

/* Where a scalar lives is one place: the data pointer, on the context's device. A scale without data is refused. */
static void c6_a_scale_without_data_is_refused(void **state)
{
    struct sample sample;
    (void)state;
    assert_true(sample_init(&sample, "4x8x16:tensor", SAMPLE_EXACT, 1));
    fp8r_matmul matmul = sample.matmul;
    matmul.scale_a.data = NULL;
    assert_int_equal(fp8r_scaled_mm(shared_rows.contexts[0], &matmul, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "scale_a"));
    matmul = sample.matmul;
    matmul.scale_b.dtype = FP8R_DTYPE_NONE; /* data without a type: meant, or forgotten? */
    must_refuse(&matmul, &sample, "scale_b");
    sample_fini(&sample);
}

static void c7_every_bias_with_every_out(void **state)
{
    static const char *const types[] = {"bf16", "fp16", "fp32"};
    (void)state;
    for (int out = 0; out < 3; out++)
        for (int bias = 0; bias < 4; bias++)
            for (int m = 1; m <= 19; m += 9) {
                char text[64];
                snprintf(text, sizeof text, "%dx40x48:%s%s%s", m, types[out], bias < 3 ? ":bias=" : "", bias < 3 ? types[bias] : "");
                rows_check(&shared_rows, text);
            }
}

static void c8_bias_at_any_m_and_address(void **state)
{
    static const int ms[] = {1, 2, 4, 63};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (size_t align = 2; align <= 16; align *= 8) {
            struct sample sample;
            char text[64];
            snprintf(text, sizeof text, "%dx640x614:fp16:bias", ms[i]);
            assert_true(sample_init(&sample, text, SAMPLE_EXACT, 5));
            sample_unalign(&sample, SAMPLE_BIAS, align);
            rows_run(&shared_rows, &sample, text);
            sample_fini(&sample);
        }
}

/* Scales that are no powers of two are honoured as they are. The sums are small integers: one rounding a step. */
static void c11_scales_that_are_no_powers_of_two(void **state)
{
    static const float values[] = {1.0f, 1.5f, 1.9f, 0.7f, 0.1f, 3.3333333f};
    (void)state;
    for (int m = 1; m <= 9; m += 4) {
        struct sample sample;
        char text[64];
        snprintf(text, sizeof text, "%dx24x32:fp32:bias", m);
        assert_true(sample_init(&sample, text, SAMPLE_EXACT, 5));
        for (int i = 0; i < m; i++)
            ((float *)sample.matmul.scale_a.data)[i] = values[i % 6];
        for (int i = 0; i < 24; i++)
            ((float *)sample.matmul.scale_b.data)[i] = values[(i + 2) % 5];
        assert_true(sample_solve(&sample));
        rows_run(&shared_rows, &sample, text);
        sample_fini(&sample);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_fp8_out_is_refused),
        cmocka_unit_test(c3_all_one_element_scales_are_the_same),
        cmocka_unit_test(c5_scales_of_other_types_are_refused),
        cmocka_unit_test(c6_a_scale_without_data_is_refused),
        cmocka_unit_test(c7_every_bias_with_every_out),
        cmocka_unit_test(c8_bias_at_any_m_and_address),
        cmocka_unit_test(c11_scales_that_are_no_powers_of_two),
    };
    return cmocka_run_group_tests_name("field reports C", tests, shared_rows_setup, shared_rows_teardown);
}
