/* Field reports D: NaN, infinity, overflow, accumulation, stale memory (docs/field-reports.md). D1 and D4 are in
 * test_quantize and test_convert.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rows.h"
#include "support/slow.h"

static void make(struct sample *sample, const char *text)
{
    if (!sample_init(sample, text, SAMPLE_EXACT, 9))
        fail_msg("%s: %s", text, fp8r_last_error());
}

/* Fills a packed 8-bit operand by position. */
static void fill(fp8r_matrix *matrix, uint8_t (*code)(int64_t row, int64_t col))
{
    for (int64_t r = 0; r < matrix->rows; r++)
        for (int64_t c = 0; c < matrix->cols; c++)
            ((uint8_t *)matrix->data)[r * matrix->row_stride + c * matrix->col_stride] = code(r, c);
}

static void solve_and_run(struct sample *sample, const char *name)
{
    assert_true(sample_solve(sample));
    rows_run(&shared_rows, sample, name);
    sample_fini(sample);
}

static uint8_t by_row(int64_t row, int64_t col)
{
    (void)col;
    return (uint8_t)row;
}

static uint8_t one(int64_t row, int64_t col)
{
    (void)row, (void)col;
    return 0x38;
}

/* All 256 codes of both types, each a row of a times 1: NaN codes give NaN (and e5m2's infinities infinity), nothing is
 * read as 480. */
static void d2_all_codes_mean_the_same_everywhere(void **state)
{
    static const char *const texts[] = {"256x3x1:fp32:sa=none:sb=none", "256x3x1:a=e5m2:fp32:sa=none:sb=none"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sample sample;
        make(&sample, texts[i]);
        fill(&sample.matmul.a, by_row);
        fill(&sample.matmul.b, one);
        solve_and_run(&sample, texts[i]);
    }
}

static void d2_all_codes_of_b(void **state)
{
    struct sample sample;
    (void)state;
    make(&sample, "3x256x1:fp32:sa=none:sb=none");
    for (int i = 0; i < 256; i++)
        ((uint8_t *)sample.matmul.b.data)[i] = (uint8_t)i;
    fill(&sample.matmul.a, one);
    solve_and_run(&sample, "256 codes of b");
}

/* One NaN in a poisons exactly its row, one in b exactly its column; the oracle demands the rest to be right. */
static void d2_nan_stays_in_its_row_and_column(void **state)
{
    static const char *const texts[] = {"1x17x40", "5x17x40:fp32", "40x70x130:fp16:bias", "9x24x33:a=e5m2"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int where = 0; where < 2; where++) {
            struct sample sample;
            make(&sample, texts[i]);
            fp8r_matrix *matrix = where ? &sample.matmul.b : &sample.matmul.a;
            int64_t line = where ? 13 : sample.matmul.a.rows / 2, k = sample.matmul.a.cols - 1;
            ((uint8_t *)matrix->data)[where ? line * matrix->col_stride + k : line * matrix->row_stride + k] = 0xFF;
            solve_and_run(&sample, texts[i]);
        }
}

/* Dot products far beyond fp16 whose scaled values fit: nothing may be stored narrow before it is scaled. */
static void d6_large_sums_with_small_scales(void **state)
{
    static const char *const outs[] = {"fp16", "bf16", "fp32"};
    (void)state;
    for (int out = 0; out < 3; out++)
        for (int scaled = 0; scaled < 2; scaled++) {
            struct sample sample;
            char text[64];
            snprintf(text, sizeof text, "6x20x128:%s:tensor", outs[out]);
            make(&sample, text);
            memset(sample.matmul.a.data, 0x7E, 6 * 128);
            memset(sample.matmul.b.data, 0x7E, 20 * 128);
            *(float *)sample.matmul.scale_a.data = scaled ? 1e-3f : 1.0f;
            *(float *)sample.matmul.scale_b.data = scaled ? 1e-3f : 1.0f;
            assert_true(sample_solve(&sample));
            double wanted = (double)sample.wanted[0];
            assert_true(scaled ? fabs(wanted - 25.690112) < 0.1 : out == 0 ? isinf(wanted) : fabs(wanted - 25690112.0) < 1e5);
            solve_and_run(&sample, text);
        }
}

static uint8_t extremes(int64_t row, int64_t col)
{
    static const uint8_t codes[] = {0x7E, 0xFE, 0x01, 0x81};
    return codes[(row * 3 + col) % 4];
}

/* Only the largest and smallest codes. 448 * 2^-9 + 2^-18 needs 27 bits, so sums are chosen to stay exact in fp32: each
 * product alone (K = 1), and longer ones of one magnitude. */
static uint8_t largest(int64_t row, int64_t col)
{
    return (row + col) % 3 ? 0x7E : 0xFE;
}

static uint8_t smallest(int64_t row, int64_t col)
{
    return (row + 2 * col) % 3 ? 0x01 : 0x81;
}

static void d8_largest_and_smallest_codes(void **state)
{
    uint8_t (*const fills[])(int64_t, int64_t) = {largest, smallest};
    static const int ks[] = {1, 16, 64};
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int pair = 0; pair < 4; pair++) {
            struct sample sample;
            char text[64];
            snprintf(text, sizeof text, "7x19x%d:fp32:sa=none:sb=none", ks[k]);
            make(&sample, text);
            fill(&sample.matmul.a, fills[pair & 1]);
            fill(&sample.matmul.b, fills[pair >> 1]);
            solve_and_run(&sample, text);
        }
    struct sample sample;
    make(&sample, "8x16x1:fp32:sa=none:sb=none");
    fill(&sample.matmul.a, extremes);
    fill(&sample.matmul.b, extremes);
    solve_and_run(&sample, "extremes, K = 1");
}

/* A long sum of equal terms: 8192 * 3/32 is 768, and one large term followed by 8191 small ones loses none of them. */
static void d9_long_sums_do_not_stall(void **state)
{
    static const char *const texts[] = {"5x16x8192:fp32:sa=none:sb=none", "5x16x8192:fp32:sa=none:sb=none:precise",
                                        "40x16x8192:fp32:sa=none:sb=none"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int large = 0; large < 2; large++) {
            struct sample sample;
            make(&sample, texts[i]);
            int64_t m = sample.matmul.a.rows;
            memset(sample.matmul.a.data, 0x10, (size_t)(m * 8192)); /* 2^-5 */
            memset(sample.matmul.b.data, 0x44, 16 * 8192);          /* 3 */
            for (int64_t row = 0; large && row < m; row++)
                ((uint8_t *)sample.matmul.a.data)[row * 8192] = 0x7E; /* 448 */
            assert_true(sample_solve(&sample));
            assert_true(sample.wanted[0] == (large ? 448.0f * 3 + 8191 * 0.09375f : 768.0f));
            solve_and_run(&sample, texts[i]);
        }
}

/* A call full of NaN codes, then clean ones with the same context and the same workspace: what a fresh one gives. */
static void d11_nothing_stale_is_read(void **state)
{
    static const char *const texts[] = {"16x64x96", "16x64x96:a=bf16"};
    char line[160];
    (void)state;
    for (int which = 0; which < shared_rows.count; which++)
        for (int i = 0; i < 2; i++) {
            struct sample poison;
            make(&poison, texts[i]);
            memset(poison.blocks[SAMPLE_A].memory, 0x7F, poison.blocks[SAMPLE_A].used_bytes);
            memset(poison.blocks[SAMPLE_B].memory, 0x7F, poison.blocks[SAMPLE_B].used_bytes);
            for (int m = 16; m >= 1; m -= 5) {
                struct sample clean;
                char text[64];
                snprintf(text, sizeof text, "%dx64x96%s", m, i ? ":a=bf16" : "");
                make(&clean, text);
                sample_clear(&clean);
                assert_int_equal(fp8r_scaled_mm(shared_rows.contexts[which], &poison.matmul, NULL), FP8R_OK);
                assert_int_equal(fp8r_scaled_mm(shared_rows.contexts[which], &clean.matmul, NULL), FP8R_OK);
                if (!sample_judge(&clean, m, line, sizeof line))
                    fail_msg("%s (%s): %s", text, shared_rows.features[which], line);
                sample_fini(&clean);
            }
            sample_fini(&poison);
        }
}

/* Out starts as NaN and no element is left so: what all runs here are judged by, once more with padded rows. */
static void d12_every_element_is_written(void **state)
{
    static const int ms[] = {1, 2, 3, 5, 8, 13, 21, 34, 55};
    (void)state;
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        char text[64];
        snprintf(text, sizeof text, "%dx%dx50:ldo=128:bias=fp32", ms[i], 90 - ms[i]);
        rows_check_exact(&shared_rows, text);
    }
}

/* Scale, bias, then one rounding: 1 + 2^-8 + ... rounds up to 1.0078125 with the bias added before, to 1.0 behind. */
static void d13_the_bias_is_added_before_rounding(void **state)
{
    static const int biases[] = {FP8R_DTYPE_BF16, FP8R_DTYPE_FP16, FP8R_DTYPE_FP32};
    static const char *const names[] = {"bf16", "fp16", "fp32"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct sample sample;
        char text[64];
        snprintf(text, sizeof text, "3x9x16:tensor:bias=%s", names[i]);
        make(&sample, text);
        uint8_t *a = sample.matmul.a.data;
        memset(a, 0, 3 * 16);
        for (int row = 0; row < 3; row++) {
            const double values[] = {448, 448, 128, 3};
            for (int k = 0; k < 4; k++)
                a[row * 16 + k] = (uint8_t)slow_encode(FP8R_DTYPE_E4M3, values[k]);
        }
        memset(sample.matmul.b.data, 0x38, 9 * 16);
        *(float *)sample.matmul.scale_a.data = 0x1p-10f;
        *(float *)sample.matmul.scale_b.data = 1.0f;
        for (int col = 0; col < 9; col++) {
            uint16_t half = (uint16_t)slow_encode(biases[i], 3 * 0x1p-10);
            float full = 3 * 0x1p-10f;
            unsigned char *bias = sample.matmul.bias.data;
            if (i < 2)
                memcpy(bias + 2 * col, &half, 2);
            else
                memcpy(bias + 4 * col, &full, 4);
        }
        assert_true(sample_solve(&sample));
        assert_true(sample.wanted[0] == 1.0078125f);
        solve_and_run(&sample, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d2_all_codes_mean_the_same_everywhere),
        cmocka_unit_test(d2_all_codes_of_b),
        cmocka_unit_test(d2_nan_stays_in_its_row_and_column),
        cmocka_unit_test(d6_large_sums_with_small_scales),
        cmocka_unit_test(d8_largest_and_smallest_codes),
        cmocka_unit_test(d9_long_sums_do_not_stall),
        cmocka_unit_test(d11_nothing_stale_is_read),
        cmocka_unit_test(d12_every_element_is_written),
        cmocka_unit_test(d13_the_bias_is_added_before_rounding),
    };
    return cmocka_run_group_tests_name("field reports D", tests, shared_rows_setup, shared_rows_teardown);
}
