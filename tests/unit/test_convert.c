/* Conversions against the slow ones: every code of every narrow type, every border between codes, random values.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/convert.h"
#include "support/sample.h"
#include "support/slow.h"

static void same_value(double wanted, float got, uint32_t code)
{
    if (isnan(wanted) ? !isnan(got) : !((double)got == wanted && !signbit(got) == !signbit(wanted)))
        fail_msg("code 0x%x decodes to %.9g, not %.9g", (unsigned)code, (double)got, wanted);
}

static void every_code_decodes(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 256; code++) {
        same_value(slow_decode(FP8R_DTYPE_E4M3, code), fp8r_from_e4m3((uint8_t)code), code);
        same_value(slow_decode(FP8R_DTYPE_E5M2, code), fp8r_from_e5m2((uint8_t)code), code);
    }
    for (uint32_t code = 0; code < 65536; code++) {
        same_value(slow_decode(FP8R_DTYPE_BF16, code), fp8r_from_bf16((uint16_t)code), code);
        same_value(slow_decode(FP8R_DTYPE_FP16, code), fp8r_from_fp16((uint16_t)code), code);
    }
}

static void special_codes_have_their_values(void **state)
{
    (void)state;
    assert_true(fp8r_from_e4m3(0x7E) == 448.0f && fp8r_from_e4m3(0xFE) == -448.0f && fp8r_from_e4m3(0x01) == 0x1p-9f);
    assert_true(isnan(fp8r_from_e4m3(0x7F)) && isnan(fp8r_from_e4m3(0xFF)) && fp8r_from_e4m3(0x78) == 256.0f);
    assert_true(fp8r_from_e5m2(0x7B) == 57344.0f && isinf(fp8r_from_e5m2(0x7C)) && isinf(fp8r_from_e5m2(0xFC)));
    for (uint32_t code = 0x7D; code <= 0x7F; code++)
        assert_true(isnan(fp8r_from_e5m2((uint8_t)code)) && isnan(fp8r_from_e5m2((uint8_t)(code | 0x80))));
    assert_true(signbit(fp8r_from_e4m3(0x80)) && fp8r_from_e4m3(0x80) == 0.0f);
}

static uint32_t encode(int32_t dtype, float value)
{
    return dtype == FP8R_DTYPE_E4M3   ? fp8r_to_e4m3(value)
           : dtype == FP8R_DTYPE_BF16 ? fp8r_to_bf16(value)
                                      : fp8r_to_fp16(value);
}

static void same_code(int32_t dtype, float value)
{
    uint32_t got = encode(dtype, value), wanted = slow_encode(dtype, (double)value);
    if (isnan(value) ? !isnan(slow_decode(dtype, got)) : got != wanted)
        fail_msg("type %d: %.9g (0x%x) encodes to 0x%x, not 0x%x", (int)dtype, (double)value,
                 (unsigned)fp8r_float_bits(value), (unsigned)got, (unsigned)wanted);
}

static void both_signs(int32_t dtype, float value)
{
    same_code(dtype, value);
    same_code(dtype, -value);
}

/* Each value itself, the midpoint to the next, and one fp32 step to either side of both. */
static void around(int32_t dtype, float low, float high)
{
    const float points[] = {low, low + (high - low) * 0.5f};
    for (int i = 0; i < 2; i++) {
        both_signs(dtype, points[i]);
        both_signs(dtype, nextafterf(points[i], INFINITY));
        both_signs(dtype, nextafterf(points[i], -INFINITY));
    }
}

static void every_border_rounds_to_even(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x7E; code++)
        around(FP8R_DTYPE_E4M3, fp8r_from_e4m3((uint8_t)code), fp8r_from_e4m3((uint8_t)(code + 1)));
    for (uint32_t code = 0; code < 0x7BFF; code++)
        around(FP8R_DTYPE_FP16, fp8r_from_fp16((uint16_t)code), fp8r_from_fp16((uint16_t)(code + 1)));
    for (uint32_t code = 0; code < 0x7F7F; code++) {
        float low = fp8r_from_bf16((uint16_t)code), high = fp8r_from_bf16((uint16_t)(code + 1));
        around(FP8R_DTYPE_BF16, low, high);
    }
}

static void what_was_decoded_encodes_back(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 65536; code++) {
        if (code < 256 && !isnan(fp8r_from_e4m3((uint8_t)code)))
            assert_int_equal(fp8r_to_e4m3(fp8r_from_e4m3((uint8_t)code)), code);
        if (!isnan(fp8r_from_bf16((uint16_t)code)))
            assert_int_equal(fp8r_to_bf16(fp8r_from_bf16((uint16_t)code)), code);
        if (!isnan(fp8r_from_fp16((uint16_t)code)))
            assert_int_equal(fp8r_to_fp16(fp8r_from_fp16((uint16_t)code)), code);
    }
}

static void random_values_round_once(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int i = 0; i < 300000; i++) {
        float value = fp8r_bits_float((uint32_t)sample_random(&random));
        float near = fp8r_bits_float((uint32_t)sample_random(&random) % 0x0A000000u + 0x3A000000u); /* 2^-11 to 512 */
        same_code(FP8R_DTYPE_E4M3, value);
        same_code(FP8R_DTYPE_BF16, value);
        same_code(FP8R_DTYPE_FP16, value);
        same_code(FP8R_DTYPE_E4M3, near);
        same_code(FP8R_DTYPE_FP16, near);
    }
}

static void edges_of_the_wide_types(void **state)
{
    (void)state;
    assert_int_equal(fp8r_to_fp16(65504.0f), 0x7BFF);
    assert_int_equal(fp8r_to_fp16(nextafterf(65520.0f, 0)), 0x7BFF);
    assert_int_equal(fp8r_to_fp16(65520.0f), 0x7C00);
    assert_int_equal(fp8r_to_fp16(-INFINITY), 0xFC00);
    assert_int_equal(fp8r_to_bf16(0x1.FEp127f), 0x7F7F);
    assert_int_equal(fp8r_to_bf16(0x1.FFp127f), 0x7F80); /* the tie above the largest goes to infinity */
    assert_int_equal(fp8r_to_bf16(fp8r_bits_float(1)), 0);
    /* NaN whose payload lies in the bits that are cut must stay NaN. */
    const uint32_t payloads[] = {0x7F800001u, 0xFF800001u, 0x7FC00000u, 0x7FFFFFFFu};
    for (int i = 0; i < 4; i++) {
        float value = fp8r_bits_float(payloads[i]);
        assert_true(isnan(fp8r_from_bf16(fp8r_to_bf16(value))) && isnan(fp8r_from_fp16(fp8r_to_fp16(value))) &&
                    isnan(fp8r_from_e4m3(fp8r_to_e4m3(value))));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_decodes),
        cmocka_unit_test(special_codes_have_their_values),
        cmocka_unit_test(every_border_rounds_to_even),
        cmocka_unit_test(what_was_decoded_encodes_back),
        cmocka_unit_test(random_values_round_once),
        cmocka_unit_test(edges_of_the_wide_types),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
