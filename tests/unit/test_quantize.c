/* Quantising and dequantising through the public calls, against the definition: scale = max(amax / 448, 2^-126),
 * code = saturate(round(x * (1 / scale))), every step fp32.
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

#include <fp8route/backend.h>

#include "base/quantize.h"
#include "support/rows.h"
#include "support/slow.h"

static fp8r_context *context;

static int setup(void **state)
{
    (void)state;
    context = plain_context(2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fp8r_context_destroy(context);
    return 0;
}

static void put(void *data, int64_t index, int32_t dtype, double value)
{
    uint32_t code = slow_encode(dtype, value);
    uint16_t half = (uint16_t)code;
    float full = (float)value;
    if (dtype == FP8R_DTYPE_FP32)
        memcpy((char *)data + 4 * index, &full, 4);
    else
        memcpy((char *)data + 2 * index, &half, 2);
}

/* ---- Single values, given scale 1 ---- */

static uint8_t code_of(float value)
{
    float one = 1.0f;
    uint8_t code = 0xAA;
    const fp8r_matrix in = {&value, FP8R_DTYPE_FP32, 0, 1, 1, 1, 0, 0, 0}, out = {&code, FP8R_DTYPE_E4M3, 0, 1, 1, 1, 0, 0, 0};
    const fp8r_matrix scale = {&one, FP8R_DTYPE_FP32, 0, 1, 1, 1, 0, 0, 0};
    assert_int_equal(fp8r_quantize(context, &in, &out, &scale, FP8R_SCALING_GIVEN, NULL), FP8R_OK);
    return code;
}

/* Field report D1: saturating; 464 is a tie and goes to 448 as well; NaN stays NaN. */
static void d1_overflow_saturates(void **state)
{
    static const float values[] = {448.0f, 449.0f, 464.0f, 464.0001f, 465.0f, 480.0f, 1000.0f, 3e10f, 1e30f, INFINITY};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(code_of(values[i]), 0x7E);
        assert_int_equal(code_of(-values[i]), 0xFE);
    }
    assert_int_equal(code_of(NAN) & 0x7F, 0x7F);
    assert_int_equal(code_of(432.0f), 0x7E - 0); /* a tie between 416 and 448: even is 448 */
    assert_int_equal(code_of(nextafterf(432.0f, 0)), 0x7D);
}

/* Field report D4: through fp16 these would round twice, downwards. */
static void d4_rounds_once(void **state)
{
    static const struct {
        float value, rounded;
    } cases[] = {{400.199585f, 416.0f}, {272.156555f, 288.0f}, {136.002075f, 144.0f}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(slow_decode(FP8R_DTYPE_E4M3, code_of(cases[i].value)) == (double)cases[i].rounded);
        assert_true(slow_decode(FP8R_DTYPE_E4M3, code_of(-cases[i].value)) == -(double)cases[i].rounded);
    }
}

/* ---- Whole matrices ---- */

struct job {
    int32_t dtype, scaling;
    int64_t batch, rows, cols, groups[3]; /* extents of the scale */
    int64_t pitch, step;                  /* row and column stride of in, 0 = packed */
    int64_t at;                           /* in starts this many elements into its buffer */
    double (*value)(int64_t batch, int64_t row, int64_t col);
};

struct buffers {
    void *in;
    uint8_t *out;
    float *scale;
    fp8r_matrix m_in, m_out, m_scale;
};

static double ordinary(int64_t batch, int64_t row, int64_t col)
{
    uint64_t state = (uint64_t)(batch * 1000003 + row * 1009 + col);
    double value = (double)(sample_random(&state) >> 40) / (1 << 20) - 8.0;
    return ldexp(value, (int)(row % 7) - 3);
}

static struct buffers make(const struct job *job)
{
    struct buffers made;
    int64_t step = job->step ? job->step : 1, pitch = job->pitch ? job->pitch : job->cols * step;
    int64_t size = job->batch * job->rows * pitch + job->cols * step + job->at, groups = job->groups[0] * job->groups[1] * job->groups[2];
    made.in = calloc((size_t)size, 4);
    made.out = malloc((size_t)(job->batch * job->rows * job->cols));
    made.scale = malloc((size_t)groups * sizeof(float));
    assert_non_null(made.in);
    memset(made.in, 0x7F, (size_t)size * 4);
    memset(made.out, 0xAA, (size_t)(job->batch * job->rows * job->cols));
    char *start = (char *)made.in + job->at * slow_bytes(job->dtype);
    for (int64_t i = 0; i < job->batch; i++)
        for (int64_t r = 0; r < job->rows; r++)
            for (int64_t c = 0; c < job->cols; c++)
                put(start, (i * job->rows + r) * pitch + c * step, job->dtype, job->value(i, r, c));
    for (int64_t i = 0; i < groups; i++)
        made.scale[i] = job->scaling == FP8R_SCALING_GIVEN ? 0.037f * (float)(i + 1) : -1.0f;
    made.m_in = (fp8r_matrix){start, job->dtype, 0, job->batch, job->rows, job->cols, job->rows * pitch, pitch, step};
    made.m_out = (fp8r_matrix){made.out, FP8R_DTYPE_E4M3, 0, job->batch, job->rows, job->cols, job->rows * job->cols, job->cols, 1};
    made.m_scale = (fp8r_matrix){made.scale, FP8R_DTYPE_FP32, 0, job->groups[0], job->groups[1], job->groups[2],
                                 job->groups[1] * job->groups[2], job->groups[2], 1};
    return made;
}

static int64_t group_of(const struct job *job, int64_t batch, int64_t row, int64_t col)
{
    int64_t i = job->groups[0] == 1 ? 0 : batch, r = job->groups[1] == 1 ? 0 : row, c = job->groups[2] == 1 ? 0 : col;
    return (i * job->groups[1] + r) * job->groups[2] + c;
}

static float wanted_scale(const struct job *job, const fp8r_matrix *in, int64_t group)
{
    double amax = 0;
    for (int64_t i = 0; i < job->batch; i++)
        for (int64_t r = 0; r < job->rows; r++)
            for (int64_t c = 0; c < job->cols; c++) {
                double x = fabs(slow_load(in->data, i * in->batch_stride + r * in->row_stride + c * in->col_stride, in->dtype));
                if (group_of(job, i, r, c) == group && x > amax)
                    amax = x;
            }
    float scale = (float)amax / 448.0f;
    return amax == 0 ? 1.0f : scale < 0x1p-126f ? 0x1p-126f : scale;
}

static void check_codes(const struct job *job, const struct buffers *it)
{
    for (int64_t i = 0; i < job->batch; i++)
        for (int64_t r = 0; r < job->rows; r++)
            for (int64_t c = 0; c < job->cols; c++) {
                double x = slow_load(it->m_in.data, i * it->m_in.batch_stride + r * it->m_in.row_stride + c * it->m_in.col_stride,
                                     job->dtype);
                volatile float inverse = 1.0f / it->scale[group_of(job, i, r, c)];
                volatile float scaled = (float)x * inverse;
                uint8_t got = it->out[(i * job->rows + r) * job->cols + c];
                uint32_t wanted = slow_encode(FP8R_DTYPE_E4M3, (double)scaled);
                if (isnan(scaled) ? (got & 0x7F) != 0x7F : got != wanted)
                    fail_msg("[%d,%d,%d] of %dx%dx%d, type %d: code 0x%x, wanted 0x%x", (int)i, (int)r, (int)c, (int)job->batch,
                             (int)job->rows, (int)job->cols, (int)job->dtype, got, (unsigned)wanted);
            }
}

static void run(const struct job *job)
{
    struct buffers it = make(job);
    int64_t groups = job->groups[0] * job->groups[1] * job->groups[2];
    assert_int_equal(fp8r_quantize(context, &it.m_in, &it.m_out, &it.m_scale, job->scaling, NULL), FP8R_OK);
    for (int64_t g = 0; g < groups && job->scaling == FP8R_SCALING_COMPUTE; g++) {
        float wanted = wanted_scale(job, &it.m_in, g);
        if (!(it.scale[g] == wanted))
            fail_msg("scale %d is %.9g, wanted %.9g", (int)g, (double)it.scale[g], (double)wanted);
    }
    check_codes(job, &it);
    free(it.in);
    free(it.out);
    free(it.scale);
}

static void every_granularity(void **state)
{
    static const int32_t dtypes[] = {FP8R_DTYPE_BF16, FP8R_DTYPE_FP16, FP8R_DTYPE_FP32};
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int mask = 0; mask < 8; mask++)
            for (int scaling = 0; scaling < 2; scaling++)
                run(&(struct job){dtypes[d], scaling, 2, 5, 37, {mask & 1 ? 2 : 1, mask & 2 ? 5 : 1, mask & 4 ? 37 : 1}, 0, 0, 0,
                                  ordinary});
}

/* Field report J13: any hidden size, rows that start unaligned. */
static void j13_any_width(void **state)
{
    static const int64_t widths[] = {1, 2, 3, 4, 7, 511, 512, 513, 1076, 1368, 3420};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int64_t at = 0; at < 4; at++)
            run(&(struct job){FP8R_DTYPE_BF16, FP8R_SCALING_COMPUTE, 1, 3, widths[i], {1, 3, 1}, widths[i] + 1, 0, at, ordinary});
}

/* Field report J14: a window of a wider buffer, every second row, elements apart. */
static void j14_strided_rows(void **state)
{
    (void)state;
    run(&(struct job){FP8R_DTYPE_BF16, FP8R_SCALING_COMPUTE, 1, 6, 128, {1, 6, 1}, 384, 0, 64, ordinary});
    run(&(struct job){FP8R_DTYPE_FP16, FP8R_SCALING_COMPUTE, 1, 6, 128, {1, 6, 1}, 256, 0, 0, ordinary});
    run(&(struct job){FP8R_DTYPE_FP32, FP8R_SCALING_COMPUTE, 2, 6, 50, {1, 1, 1}, 170, 3, 1, ordinary});
}

static double zeros_and_dust(int64_t batch, int64_t row, int64_t col)
{
    const double rows[] = {0.0, -0.0, 1e-40, col == 3 ? 1e-40 : 0.0, 0x1p-149, 0x1p-126};
    (void)batch;
    return rows[row];
}

/* Field report J11: zeros get scale 1, values far below 2^-126 * 448 get the smallest scale; nothing becomes NaN. */
static void j11_zeros_and_dust(void **state)
{
    const struct job job = {FP8R_DTYPE_FP32, FP8R_SCALING_COMPUTE, 1, 6, 16, {1, 6, 1}, 0, 0, 0, zeros_and_dust};
    (void)state;
    run(&job);
    struct buffers it = make(&job);
    assert_int_equal(fp8r_quantize(context, &it.m_in, &it.m_out, &it.m_scale, FP8R_SCALING_COMPUTE, NULL), FP8R_OK);
    assert_true(it.scale[0] == 1.0f && it.scale[1] == 1.0f);
    for (int row = 0; row < 6; row++) {
        assert_true(isfinite(it.scale[row]) && it.scale[row] > 0.0f);
        for (int col = 0; col < 16; col++)
            assert_true((it.out[row * 16 + col] & 0x7F) != 0x7F);
    }
    for (int col = 0; col < 16; col++)
        assert_true(it.out[col] == 0 && (it.out[16 + col] & 0x7F) == 0);
    free(it.in);
    free(it.out);
    free(it.scale);
}

static double with_nan(int64_t batch, int64_t row, int64_t col)
{
    if (row == 2 && (col == 6 || col == 7))
        return col == 6 ? (double)INFINITY : (double)-INFINITY;
    return row == 1 && col == 5 ? (double)NAN : ordinary(batch, row, col);
}

/* NaN does not count for amax and stays NaN; a row with Inf gets scale Inf, zeros, and NaN where Inf was. Processors give
 * such a NaN different signs, the code has none. */
static void nan_and_infinity(void **state)
{
    const struct job job = {FP8R_DTYPE_BF16, FP8R_SCALING_COMPUTE, 1, 4, 20, {1, 4, 1}, 0, 0, 0, with_nan};
    struct buffers it = make(&job);
    (void)state;
    assert_int_equal(fp8r_quantize(context, &it.m_in, &it.m_out, &it.m_scale, FP8R_SCALING_COMPUTE, NULL), FP8R_OK);
    check_codes(&job, &it);
    assert_true(isfinite(it.scale[1]) && isinf(it.scale[2]));
    assert_int_equal(it.out[25], 0x7F);
    for (int col = 0; col < 20; col++) {
        assert_int_equal((it.out[20 + col] & 0x7F) == 0x7F, col == 5);
        if (col == 6 || col == 7)
            assert_int_equal(it.out[40 + col], 0x7F);
        else
            assert_int_equal(it.out[40 + col] & 0x7F, 0);
    }
    free(it.in);
    free(it.out);
    free(it.scale);
}

/* The same with a scale for every column and with one for every element, which take other loops. */
static void nan_code_has_no_sign(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows <= 4; rows += 3) {
        const struct job job = {FP8R_DTYPE_BF16, FP8R_SCALING_COMPUTE, 1, 4, 20, {1, rows, 20}, 0, 0, 0, with_nan};
        struct buffers it = make(&job);
        assert_int_equal(fp8r_quantize(context, &it.m_in, &it.m_out, &it.m_scale, FP8R_SCALING_COMPUTE, NULL), FP8R_OK);
        check_codes(&job, &it);
        for (int i = 0; i < 80; i++)
            assert_int_not_equal(it.out[i], 0xFF);
        assert_true(it.out[25] == 0x7F && it.out[46] == 0x7F && it.out[47] == 0x7F);
        free(it.in);
        free(it.out);
        free(it.scale);
    }
}

/* ---- And back ---- */

static void dequantize_multiplies_once(void **state)
{
    static const int32_t from[] = {FP8R_DTYPE_E4M3, FP8R_DTYPE_E5M2}, to[] = {FP8R_DTYPE_BF16, FP8R_DTYPE_FP16, FP8R_DTYPE_FP32};
    uint8_t in[2 * 256];
    float scales[2] = {0.37f, 1.9f};
    unsigned char out[2 * 256 * 4];
    (void)state;
    for (int i = 0; i < 512; i++)
        in[i] = (uint8_t)i;
    for (int f = 0; f < 2; f++)
        for (int t = 0; t < 3; t++)
            for (int scaled = 0; scaled < 2; scaled++) {
                const fp8r_matrix m_in = {in, from[f], 0, 1, 2, 256, 0, 256, 1}, m_out = {out, to[t], 0, 1, 2, 256, 0, 256, 1};
                const fp8r_matrix m_scale = {scales, FP8R_DTYPE_FP32, 0, 1, 2, 1, 0, 1, 1};
                assert_int_equal(fp8r_dequantize(context, &m_in, scaled ? &m_scale : NULL, &m_out, NULL), FP8R_OK);
                for (int i = 0; i < 512; i++) {
                    volatile float product = (float)slow_decode(from[f], in[i]) * (scaled ? scales[i / 256] : 1.0f);
                    double got = slow_load(out, i, to[t]), wanted = slow_decode(to[t], slow_encode(to[t], (double)product));
                    if (isnan(wanted) ? !isnan(got) : !(got == wanted))
                        fail_msg("code 0x%x: %.9g, wanted %.9g", in[i], got, wanted);
                }
            }
}

static void bad_arguments_are_named(void **state)
{
    float in[4] = {0}, scale[4] = {0};
    uint8_t out[4] = {1, 2, 3, 4};
    const fp8r_matrix good_in = {in, FP8R_DTYPE_FP32, 0, 1, 2, 2, 0, 2, 1}, good_out = {out, FP8R_DTYPE_E4M3, 0, 1, 2, 2, 0, 2, 1};
    const fp8r_matrix good_scale = {scale, FP8R_DTYPE_FP32, 0, 1, 2, 1, 0, 1, 1};
    fp8r_matrix bad[8];
    const char *names[8] = {"in", "in", "out", "out", "out", "scale", "scale", "scale"};
    (void)state;
    for (int i = 0; i < 8; i++)
        bad[i] = i < 2 ? good_in : i < 5 ? good_out : good_scale;
    bad[0].dtype = FP8R_DTYPE_E4M3;
    bad[1].data = NULL;
    bad[2].dtype = FP8R_DTYPE_BF16;
    bad[3].row_stride = 0;
    bad[4].rows = 3;
    bad[5].dtype = FP8R_DTYPE_BF16;
    bad[6].rows = 3;
    bad[7].row_stride = -1;
    for (int i = 0; i < 8; i++) {
        fp8r_status status = fp8r_quantize(context, i < 2 ? &bad[i] : &good_in, i >= 2 && i < 5 ? &bad[i] : &good_out,
                                           i >= 5 ? &bad[i] : &good_scale, FP8R_SCALING_COMPUTE, NULL);
        if (status != FP8R_ERROR_INVALID_ARGUMENT || !strstr(fp8r_last_error(), names[i]))
            fail_msg("case %d: %s, \"%s\"", i, fp8r_status_name(status), fp8r_last_error());
        assert_int_equal(out[0], 1);
    }
    assert_int_equal(fp8r_quantize(context, &good_in, &good_out, &good_scale, 2, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fp8r_quantize(NULL, &good_in, &good_out, &good_scale, 0, NULL), FP8R_ERROR_INVALID_ARGUMENT);
}

/* Where one extent is 0 nothing bounds the others: their product must not be formed. */
static void nothing_of_a_huge_shape(void **state)
{
    (void)state;
    const int64_t huge = INT64_MAX / 3, shapes[3][3] = {{huge, huge, 0}, {huge, 0, INT64_MAX}, {0, huge, INT64_MAX}};
    for (int i = 0; i < 3; i++) {
        fp8r_matrix in = {.dtype = FP8R_DTYPE_FP32, .batch = shapes[i][0], .rows = shapes[i][1], .cols = shapes[i][2]};
        fp8r_matrix codes = in, scale = in;
        codes.dtype = FP8R_DTYPE_E4M3;
        for (int each = 0; each < 2; each++) {
            assert_int_equal(fp8r_quantize(context, &in, &codes, &scale, FP8R_SCALING_COMPUTE, NULL), FP8R_OK);
            assert_int_equal(fp8r_dequantize(context, &codes, &scale, &in, NULL), FP8R_OK);
            scale.batch = scale.rows = scale.cols = 1;
        }
    }
}

/* The quantiser that this processor gets and the portable one: the same bytes for bits of every kind, at odd lengths. */
static void the_same_bytes_with_other_instructions(void **state)
{
    (void)state;
    enum { COUNT = 1317, LINES = 4000 };
    static const float inverses[] = {1.0f, 0x1p-9f, 3.7f, 0x1p126f};
    const struct fp8r_quantizer *portable = fp8r_quantizer_of(0),
                                *here = fp8r_quantizer_of(fp8r_context_device(context)->cpu_features);
    static float in[COUNT];
    uint8_t first[COUNT + 1] = {0}, second[COUNT + 1] = {0};
    for (uint32_t line = 0; line < LINES; line++) {
        for (uint32_t i = 0; i < COUNT; i++) { /* all exponents, dense mantissas */
            uint32_t bits = (line * COUNT + i) * 0x9E3779B1u;
            memcpy(&in[i], &bits, sizeof bits);
        }
        int32_t dtype = line % 3 == 0 ? FP8R_DTYPE_FP32 : line % 3 == 1 ? FP8R_DTYPE_BF16 : FP8R_DTYPE_FP16;
        int64_t count = COUNT - line % 67;
        float amax = portable->amax(in, dtype, 1, count, 0.0f), other = here->amax(in, dtype, 1, count, 0.0f);
        assert_memory_equal(&amax, &other, sizeof amax);
        portable->codes(in, dtype, 1, count, inverses[line % 4], first, 1);
        here->codes(in, dtype, 1, count, inverses[line % 4], second, 1);
        assert_memory_equal(first, second, sizeof first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_with_other_instructions),
        cmocka_unit_test(d1_overflow_saturates),
        cmocka_unit_test(d4_rounds_once),
        cmocka_unit_test(every_granularity),
        cmocka_unit_test(j13_any_width),
        cmocka_unit_test(j14_strided_rows),
        cmocka_unit_test(j11_zeros_and_dust),
        cmocka_unit_test(nan_and_infinity),
        cmocka_unit_test(nan_code_has_no_sign),
        cmocka_unit_test(dequantize_multiplies_once),
        cmocka_unit_test(bad_arguments_are_named),
        cmocka_unit_test(nothing_of_a_huge_shape),
    };
    return cmocka_run_group_tests_name("quantize", tests, setup, teardown);
}
