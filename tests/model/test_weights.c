/* FILE:TENSOR: values and scales element by element against the formulas the fixture was written with, and
 * every weight or scale that cannot be multiplied by. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fp8route/fp8route.h>

#include "base/convert.h"
#include "model/image.h"
#include "model/weights.h"

#define SMALL   FP8R_TEST_DATA "/checkpoints/small.safetensors"
#define SHARDED FP8R_TEST_DATA "/checkpoints/small.safetensors.index.json"

static struct fp8r_weights loaded(const char *what)
{
    struct fp8r_weights weights;
    struct fp8r_tool_error error = {0};
    if (fp8r_weights_load(what, &weights, &error) != 0) fail_msg("%s: %s", what, error.text);
    assert_int_equal((uintptr_t)weights.data % 256, 0);
    return weights;
}

static void expect_codes(const struct fp8r_weights *weights, int64_t n, int64_t k)
{
    assert_int_equal(weights->dtype, FP8R_DTYPE_E4M3);
    assert_int_equal(weights->n, n);
    assert_int_equal(weights->k, k);
    for (int64_t i = 0; i < n * k; i++) {
        int want = (int)((37 * i + 11) % 126) | (i % 3 == 0 ? 0x80 : 0);
        int have = ((const uint8_t *)weights->data)[i];
        if (have != want) fail_msg("code %lld is %d, not %d", (long long)i, have, want);
    }
}

static void e4m3_comes_with_its_scales(void **state)
{
    (void)state;
    static const char *const files[] = {SMALL, SHARDED};
    for (size_t f = 0; f < 2; f++) {
        char what[256];
        (void)snprintf(what, sizeof what, "%s:model.layers.0.self_attn.q_proj.weight", files[f]);
        struct fp8r_weights weights = loaded(what);
        expect_codes(&weights, 48, 64);
        assert_int_equal(weights.scale_count, 48);
        for (int64_t i = 0; i < 48; i++) {
            if (weights.scale[i] != (float)(i + 1) / 64.0f) fail_msg("scale %lld", (long long)i);
        }
        fp8r_weights_fini(&weights);
        assert_null(weights.data);
    }
}

static void scales_of_other_types_are_widened_exactly(void **state)
{
    (void)state;
    struct fp8r_weights weights =
        loaded(SMALL ":model.layers.1.self_attn.k_proj"); /* bf16, [], module name */
    expect_codes(&weights, 16, 64);
    assert_int_equal(weights.scale_count, 1);
    assert_true(weights.scale[0] == 0.375f);
    fp8r_weights_fini(&weights);
    weights = loaded(SMALL ":model.layers.1.self_attn.v_proj.weight"); /* scale_weight, fp32, [1] */
    expect_codes(&weights, 16, 64);
    assert_int_equal(weights.scale_count, 1);
    assert_true(weights.scale[0] == 0.1f);
    fp8r_weights_fini(&weights);
    weights = loaded(SMALL ":model.layers.0.mlp.gate_proj"); /* fp16, [N] */
    expect_codes(&weights, 96, 64);
    assert_int_equal(weights.scale_count, 96);
    for (int64_t i = 0; i < 96; i++) {
        if (weights.scale[i] != (float)(i + 1) / 64.0f) fail_msg("scale %lld", (long long)i);
    }
    fp8r_weights_fini(&weights);
}

static float wide_value(const struct fp8r_weights *weights, int64_t i)
{
    if (weights->dtype == FP8R_DTYPE_FP32) return ((const float *)weights->data)[i];
    uint16_t code = ((const uint16_t *)weights->data)[i];
    return weights->dtype == FP8R_DTYPE_BF16 ? fp8r_from_bf16(code) : fp8r_from_fp16(code);
}

static void wide_weights_are_handed_over_as_stored(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int32_t dtype;
        int64_t n, k;
    } cases[] = {
        {SMALL ":model.layers.0.self_attn.o_proj.weight", FP8R_DTYPE_BF16, 64, 48},
        {SMALL ":model.layers.1.mlp.up_proj", FP8R_DTYPE_FP16, 96, 64},
        {SHARDED ":lm_head", FP8R_DTYPE_FP32, 40, 64},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct fp8r_weights weights = loaded(cases[c].what);
        assert_int_equal(weights.dtype, cases[c].dtype);
        assert_int_equal(weights.n, cases[c].n);
        assert_int_equal(weights.k, cases[c].k);
        assert_int_equal(weights.scale_count, 0);
        assert_null(weights.scale);
        for (int64_t i = 0; i < weights.n * weights.k; i++) {
            float want = ((float)(i % 64) - 31.0f) / 8.0f, have = wide_value(&weights, i);
            if (!(have == want))
                fail_msg("%s: element %lld is %g", cases[c].what, (long long)i, (double)have);
        }
        fp8r_weights_fini(&weights);
    }
}

static void expect_error(const char *what, int exit_code, const char *const *words)
{
    struct fp8r_weights weights, before;
    struct fp8r_tool_error error = {0};
    memset(&weights, 0x5a, sizeof weights);
    before = weights;
    int rc = fp8r_weights_load(what, &weights, &error);
    if (rc != exit_code) fail_msg("exit code %d for %s: %s", rc, what, error.text);
    for (; *words != NULL; words++) {
        if (strstr(error.text, *words) == NULL) fail_msg("no '%s' in '%s'", *words, error.text);
    }
    assert_memory_equal(&weights, &before, sizeof weights);
}

static void misnamed_weights_are_usage_errors(void **state)
{
    (void)state;
    expect_error("file", FP8R_EXIT_USAGE, (const char *const[]){"'file'", "FILE:TENSOR", NULL});
    expect_error("file:", FP8R_EXIT_USAGE, (const char *const[]){"FILE:TENSOR", NULL});
    expect_error(":tensor", FP8R_EXIT_USAGE, (const char *const[]){"FILE:TENSOR", NULL});
    expect_error(SMALL ":nothing", FP8R_EXIT_USAGE, (const char *const[]){"small", "'nothing'", NULL});
    expect_error("no/such:lm_head", FP8R_EXIT_BAD_DATA, (const char *const[]){"no/such", NULL});
}

static void block_scales_are_recognised(void **state)
{
    (void)state;
    expect_error(SMALL ":model.layers.0.mlp.down_proj", FP8R_EXIT_BAD_DATA,
                 (const char *const[]){"down_proj.weight", "block scales", "weight_scale_inv [1,1]", NULL});
}

#define WEIGHT(dtype, shape, end)                                                                            \
    "{\"m.weight\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[0," #end "]}"
#define SCALE(name, dtype, shape, begin, end)                                                                \
    ",\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *words[4];
} bad_files[] = {
    {WEIGHT("F8_E4M3", "[6]", 6) "}", 6, {"'m.weight'", "[6]", "[N,K]"}},
    {WEIGHT("F8_E4M3", "[1,2,3]", 6) "}", 6, {"'m.weight'", "[1,2,3]"}},
    {WEIGHT("F8_E5M2", "[2,3]", 6) "}", 6, {"'m.weight'", "F8_E5M2", "F8_E4M3"}},
    {WEIGHT("F64", "[1,1]", 8) "}", 8, {"'m.weight'", "F64"}},
    {WEIGHT("U8", "[2,3]", 6) "}", 6, {"'m.weight'", "U8"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "F32", "[3]", 6, 18) "}",
     18,
     {"'m.weight_scale'", "[3]", "[2] or [2,1]"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "F32", "[2,2]", 6, 22) "}",
     22,
     {"'m.weight_scale'", "[2,2], block scales"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "F32", "[1,2]", 6, 14) "}",
     14,
     {"'m.weight_scale'", "[1,2], block scales"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "F32", "[2,1,1]", 6, 14) "}",
     14,
     {"'m.weight_scale'", "[2,1,1]; it must be"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "F32", "[0]", 6, 6) "}",
     6,
     {"'m.weight_scale'", "[0]; it must be"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "I32", "[]", 6, 10) "}",
     10,
     {"'m.weight_scale'", "I32", "F32, BF16 or F16"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale_inv", "F32", "[]", 6, 10) "}", 10, {"block scales"}},
    {WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "F32", "[]", 6, 10)
         SCALE("m.scale_weight", "F32", "[]", 10, 14) "}",
     14,
     {"'m.weight'", "two scales"}},
};

static void unusable_weights_are_refused(void **state)
{
    (void)state;
    struct folder folder;
    folder_make(&folder);
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        size_t bytes = 0;
        char what[256];
        unsigned char *image = image_make(bad_files[i].header, bad_files[i].data_bytes, &bytes);
        (void)snprintf(what, sizeof what, "%s:m", folder_write(&folder, "m.safetensors", image, bytes));
        expect_error(what, FP8R_EXIT_BAD_DATA, bad_files[i].words);
        free(image);
    }
    folder_remove(&folder);
}

static void scales_must_be_finite(void **state)
{
    (void)state;
    static const char header[] =
        WEIGHT("F8_E4M3", "[2,3]", 6) SCALE("m.weight_scale", "BF16", "[2]", 6, 10) "}";
    static const struct {
        uint16_t code;
        const char *value;
    } cases[] = {{0x7f80, "inf"}, {0xff80, "-inf"}, {0x7fc0, "nan"}};
    struct folder folder;
    folder_make(&folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 0;
        char what[256];
        unsigned char *image = image_make(header, 10, &bytes);
        memcpy(image + bytes - 4, (const uint16_t[]){0x3f80, cases[i].code}, 4);
        (void)snprintf(what, sizeof what, "%s:m", folder_write(&folder, "m.safetensors", image, bytes));
        expect_error(what, FP8R_EXIT_BAD_DATA,
                     (const char *const[]){cases[i].value, "row 1", "finite", NULL});
        free(image);
    }
    folder_remove(&folder);
}

/* No scale stored: e4m3 means scale 1. Names with ':' in the folder part still split at the last. */
static void plain_and_empty_weights_load(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes;
        int64_t n, k;
    } cases[] = {{WEIGHT("F8_E4M3", "[2,3]", 6) "}", 6, 2, 3}, {WEIGHT("BF16", "[0,3]", 0) "}", 0, 0, 3}};
    struct folder folder;
    folder_make(&folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 0;
        char what[256];
        unsigned char *image = image_make(cases[i].header, cases[i].data_bytes, &bytes);
        (void)snprintf(what, sizeof what, "%s:m.weight", folder_write(&folder, "a:b", image, bytes));
        struct fp8r_weights weights = loaded(what);
        assert_int_equal(weights.n, cases[i].n);
        assert_int_equal(weights.k, cases[i].k);
        assert_int_equal(weights.scale_count, 0);
        assert_memory_equal(weights.data, image + bytes - cases[i].data_bytes, cases[i].data_bytes);
        fp8r_weights_fini(&weights);
        free(image);
    }
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e4m3_comes_with_its_scales),
        cmocka_unit_test(scales_of_other_types_are_widened_exactly),
        cmocka_unit_test(wide_weights_are_handed_over_as_stored),
        cmocka_unit_test(misnamed_weights_are_usage_errors),
        cmocka_unit_test(block_scales_are_recognised),
        cmocka_unit_test(unusable_weights_are_refused),
        cmocka_unit_test(scales_must_be_finite),
        cmocka_unit_test(plain_and_empty_weights_load),
    };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
