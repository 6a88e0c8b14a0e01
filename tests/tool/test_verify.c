/* Verification accepts what the reference computes and catches one planted fault of each kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "measure/trial.h"
#include "measure/verify.h"

/* Operands, the reference's result in them, and a verifier. */
struct setting {
    fp8r_context *context;
    struct fp8r_inputs inputs;
    struct fp8r_verifier *verifier;
};

static void setting_init(struct setting *setting, const char *problem,
                         const struct fp8r_verify_options *options)
{
    struct fp8r_tool_error error = {0};
    struct fp8r_trial trial;
    fp8r_matmul shape;
    fp8r_context_options context = {.struct_size = sizeof context,
                                    .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &context, &setting->context),
                     FP8R_OK);
    assert_int_equal(fp8r_matmul_parse(problem, &shape), FP8R_OK);
    assert_int_equal(fp8r_inputs_create(&shape, 7, FP8R_GUARD_BYTES, &setting->inputs, &error), 0);
    assert_int_equal(
        fp8r_trial_create(setting->context, &setting->inputs.matmul, "reference", FP8R_GUARD_BYTES, &trial),
        FP8R_OK);
    assert_int_equal(fp8r_trial_run(&trial, &setting->inputs.matmul), FP8R_OK);
    fp8r_trial_destroy(&trial);
    assert_int_equal(fp8r_verifier_create(&setting->inputs.matmul, options, &setting->verifier, &error), 0);
}

static void setting_fini(struct setting *setting)
{
    fp8r_verifier_destroy(setting->verifier);
    fp8r_inputs_destroy(&setting->inputs);
    fp8r_context_destroy(setting->context);
}

static struct fp8r_verdict verify(struct setting *setting)
{
    struct fp8r_verdict verdict;
    fp8r_verify(setting->verifier, setting->inputs.matmul.out.data, &verdict);
    return verdict;
}

static void expect_good(const char *problem)
{
    struct setting setting;
    setting_init(&setting, problem, &fp8r_verify_defaults);
    struct fp8r_verdict verdict = verify(&setting);
    if (!verdict.is_good) fail_msg("%s: %s", problem, verdict.text);
    assert_true(verdict.is_whole);
    assert_int_equal(verdict.checked, setting.inputs.matmul.out.batch * setting.inputs.matmul.out.rows *
                                          setting.inputs.matmul.out.cols);
    assert_true(verdict.worst_error <= verdict.worst_bound);
    assert_null(fp8r_inputs_damage(&setting.inputs));
    setting_fini(&setting);
}

static void right_results(void **state)
{
    (void)state;
    static const char *const problems[] = {"1x1x1",
                                           "0x3x4",
                                           "3x4x0:bias",
                                           "7x33x65:fp32:bias=bf16",
                                           "16x48x300:fp16:tensor",
                                           "5x9x17:a=bf16:fp32",
                                           "5x9x17:a=fp16:ta:bias",
                                           "5x9x17:a=e5m2:to:ldo=20",
                                           "3*4x8x16:sa=batch:sb=none:bb=0",
                                           "4x8x16:sa=none:sb=none:fp16"};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        expect_good(problems[i]);
}

/* r as every backend computes it, with one term left out. */
static float without_last_term(const fp8r_matmul *matmul, int64_t row, int64_t col)
{
    double sum = 0;
    for (int64_t k = 0; k + 1 < matmul->a.cols; k++)
        sum += (double)fp8r_load(matmul->a.data, row * matmul->a.row_stride + k, matmul->a.dtype) *
               (double)fp8r_load(matmul->b.data, k + col * matmul->b.col_stride, FP8R_DTYPE_E4M3);
    float scaled = (float)sum * ((const float *)matmul->scale_b.data)[col];
    return scaled * ((const float *)matmul->scale_a.data)[row];
}

/* The last of 8192 terms is missing in one row: all its elements are off by about one in ten thousand of
 * sum|ab|. */
static void dropped_term(void **state)
{
    (void)state;
    struct setting setting;
    setting_init(&setting, "3x32x8192:fp32", &fp8r_verify_defaults);
    float *out = setting.inputs.matmul.out.data;
    for (int64_t col = 0; col < 32; col++)
        out[32 + col] = without_last_term(&setting.inputs.matmul, 1, col);
    struct fp8r_verdict verdict = verify(&setting);
    assert_false(verdict.is_good);
    assert_true(verdict.wrong >= 28 && verdict.wrong <= 32); /* a term may be near 0 */
    assert_non_null(strstr(verdict.text, "out[0,1,"));
    setting_fini(&setting);
}

/* Towards zero, 13 bits below the largest of what is added: 32 products at a time, as a tensor core does. */
static double tensor_core_step(double sum, const double products[32])
{
    double largest = fabs(sum), total;
    int exponent;
    for (int i = 0; i < 32; i++)
        largest = fmax(largest, fabs(products[i]));
    if (largest == 0) return 0;
    (void)frexp(largest, &exponent);
    const double unit = ldexp(1, exponent - 1 - 13);
    total = trunc(sum / unit);
    for (int i = 0; i < 32; i++)
        total += trunc(products[i] / unit);
    return total * unit;
}

/* One element; `dropped`: a step that is left out, -1 for none. promotes: sums of 128 are added in double. */
static float tensor_core_element(const fp8r_matmul *matmul, int64_t row, int64_t col, int64_t dropped, bool promotes)
{
    double sum = 0, kept = 0;
    for (int64_t step = 0; 32 * step < matmul->a.cols; step++) {
        double products[32] = {0};
        for (int64_t i = 0; i < 32 && 32 * step + i < matmul->a.cols && step != dropped; i++) {
            int64_t k = 32 * step + i;
            products[i] = (double)fp8r_load(matmul->a.data, row * matmul->a.row_stride + k, FP8R_DTYPE_E4M3) *
                          (double)fp8r_load(matmul->b.data, k + col * matmul->b.col_stride, FP8R_DTYPE_E4M3);
        }
        sum = tensor_core_step(sum, products);
        if (promotes && step % 4 == 3) {
            kept += sum;
            sum = 0;
        }
    }
    return (float)(kept + sum) * ((const float *)matmul->scale_b.data)[col] * ((const float *)matmul->scale_a.data)[row];
}

/* What a tensor core makes of it is right; with a step of 32 left out anywhere it is not. */
static void tensor_cores(void **state)
{
    static const char *const problems[] = {"3x40x96:fp32",   "3x40x1024:fp32", "3x40x7000:fp32", "3x40x16384:fp32",
                                           "3x40x1024:fp32:precise", "3x40x16384:fp32:precise"};
    struct fp8r_verify_options options = fp8r_verify_options_of(&(fp8r_device_facts){.kind = FP8R_DEVICE_CUDA});
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        struct setting setting;
        setting_init(&setting, problems[i], &options);
        const fp8r_matmul *matmul = &setting.inputs.matmul;
        float *out = matmul->out.data;
        for (int fault = 0; fault < 2; fault++) {
            int64_t dropped = fault ? matmul->a.cols / 64 : -1;
            for (int64_t row = 0; row < 3; row++)
                for (int64_t col = 0; col < 40; col++)
                    out[row * 40 + col] = tensor_core_element(matmul, row, col, dropped,
                                                              matmul->accumulation == FP8R_ACCUMULATE_PRECISE);
            struct fp8r_verdict verdict = verify(&setting);
            if (!fault && !verdict.is_good) fail_msg("%s: %s", problems[i], verdict.text);
            if (!fault)
                print_message("%s: the worst element comes to %.2f of its bound\n", problems[i],
                              verdict.worst_error / verdict.worst_bound);
            else
                assert_true(verdict.wrong >= 2);
        }
        setting_fini(&setting);
    }
}

static void swapped_scales(void **state)
{
    (void)state;
    struct setting setting;
    setting_init(&setting, "6x10x40", &fp8r_verify_defaults);
    uint16_t *out = setting.inputs.matmul.out.data;
    const float *scale = setting.inputs.matmul.scale_b.data;
    for (int row = 0; row < 6; row++) {
        for (int col = 4; col < 6; col++) {
            float value = fp8r_from_bf16(out[row * 10 + col]);
            out[row * 10 + col] = fp8r_to_bf16(value / scale[col] * scale[9 - col]);
        }
    }
    struct fp8r_verdict verdict = verify(&setting);
    assert_false(verdict.is_good);
    assert_true(verdict.wrong >= 6);
    setting_fini(&setting);
}

/* A tile of 128 x 128 in a result that is only sampled. */
static void missing_tile(void **state)
{
    (void)state;
    struct setting setting;
    struct fp8r_verify_options options = fp8r_verify_defaults;
    options.whole_limit = 1000;
    setting_init(&setting, "1024x1024x16", &options);
    struct fp8r_verdict verdict = verify(&setting);
    assert_true(verdict.is_good);
    assert_false(verdict.is_whole);
    assert_true(verdict.checked >= 4096);
    uint16_t *out = setting.inputs.matmul.out.data;
    for (int row = 256; row < 384; row++)
        memset(out + row * 1024 + 640, 0, 128 * sizeof *out);
    verdict = verify(&setting); /* from the kept expectations */
    assert_false(verdict.is_good);
    assert_true(verdict.wrong >= 32);
    setting_fini(&setting);
}

static void last_row_and_column(void **state)
{
    (void)state;
    struct setting setting;
    struct fp8r_verify_options options = fp8r_verify_defaults;
    options.whole_limit = 1000;
    setting_init(&setting, "1000x999x8", &options);
    uint16_t *out = setting.inputs.matmul.out.data;
    for (int row = 0; row < 1000; row++)
        out[row * 999 + 998] = 0;
    struct fp8r_verdict verdict = verify(&setting);
    assert_true(verdict.wrong > 100);
    setting_fini(&setting);
}

static void not_a_number(void **state)
{
    (void)state;
    struct setting setting;
    setting_init(&setting, "4x8x16:fp32", &fp8r_verify_defaults);
    float *out = setting.inputs.matmul.out.data, kept = out[11];
    out[11] = nanf("");
    struct fp8r_verdict verdict = verify(&setting);
    assert_int_equal(verdict.wrong, 1);
    assert_non_null(strstr(verdict.text, "out[0,1,3] is"));
    out[11] = INFINITY;
    assert_int_equal(verify(&setting).wrong, 1);
    out[11] = kept;
    assert_true(verify(&setting).is_good);
    setting_fini(&setting);
}

/* A NaN code makes exactly its column NaN, and a finite value there is wrong. */
static void expected_nan(void **state)
{
    (void)state;
    struct setting setting;
    setting_init(&setting, "4x8x16:fp32", &fp8r_verify_defaults);
    ((uint8_t *)setting.inputs.matmul.b.data)[2 * 16 + 5] = 0x7F;
    struct fp8r_tool_error error = {0};
    struct fp8r_verifier *verifier = NULL;
    struct fp8r_verdict verdict;
    assert_int_equal(fp8r_verifier_create(&setting.inputs.matmul, &fp8r_verify_defaults, &verifier, &error),
                     0);
    fp8r_verify(verifier, setting.inputs.matmul.out.data, &verdict);
    assert_int_equal(verdict.wrong, 4);
    assert_non_null(strstr(verdict.text, "must be NaN"));
    float *out = setting.inputs.matmul.out.data;
    for (int row = 0; row < 4; row++)
        out[row * 8 + 2] = nanf("");
    fp8r_verify(verifier, out, &verdict);
    assert_true(verdict.is_good);
    fp8r_verifier_destroy(verifier);
    setting_fini(&setting);
}

static void untouched_element(void **state)
{
    (void)state;
    static const char *const problems[] = {"4x8x16", "4x8x16:fp16", "4x8x16:fp32"};
    for (size_t i = 0; i < 3; i++) {
        struct setting setting;
        setting_init(&setting, problems[i], &fp8r_verify_defaults);
        size_t size = i == 2 ? 4 : 2;
        memset((uint8_t *)setting.inputs.matmul.out.data + 31 * size, FP8R_POISON, size);
        struct fp8r_verdict verdict = verify(&setting);
        assert_int_equal(verdict.wrong, 1);
        assert_non_null(strstr(verdict.text, "out[0,3,7] was never written"));
        setting_fini(&setting);
    }
}

/* One unit in the last place of bf16 beside the right one. */
static void one_step_off(void **state)
{
    (void)state;
    struct setting setting;
    setting_init(&setting, "4x8x16", &fp8r_verify_defaults);
    uint16_t *out = setting.inputs.matmul.out.data;
    out[9] = (uint16_t)(out[9] + 2);
    assert_int_equal(verify(&setting).wrong, 1);
    setting_fini(&setting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_results),       cmocka_unit_test(dropped_term),
        cmocka_unit_test(tensor_cores),
        cmocka_unit_test(swapped_scales),      cmocka_unit_test(missing_tile),
        cmocka_unit_test(last_row_and_column), cmocka_unit_test(not_a_number),
        cmocka_unit_test(expected_nan),        cmocka_unit_test(untouched_element),
        cmocka_unit_test(one_step_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
