/* Field reports E: more than 2^31 elements, more than 65535 rows or batches (docs/field-reports.md). Large inputs are
 * sparse mappings of which a few rows are ever written, so little memory is used; results are judged on some rows.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "support/rows.h"

static struct rows rows;

static int setup(void **state)
{
    (void)state;
    rows_init(&rows, 2);
    for (int i = 1; i < rows.count; i++) /* the full processor is enough here */
        fp8r_context_destroy(rows.contexts[i]);
    rows.count = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rows_fini(&rows);
    return 0;
}

/* Zeros that take no memory until they are written. */
static void *sparse(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* a has 524289 rows of 4096: its last rows lie beyond 2^31 elements. Row r is all zeros but for one 1 and a scale. */
static void e1_offsets_beyond_32_bits(void **state)
{
    enum { M = 524289, N = 16, K = 4096 };
    static const int64_t touched[] = {0, 1, 262144, 524287, 524288};
    static uint8_t b[N * K];
    static float out[(size_t)M * N];
    (void)state;
    uint8_t *a = sparse((size_t)M * K);
    for (int i = 0; i < N * K; i++)
        b[i] = (uint8_t)(0x30 + (i / K + i % K) % 16); /* b[k, n] at n * K + k */
    for (int i = 0; i < 5; i++)
        a[touched[i] * K + 100 * i + 7] = 0x38;
    const fp8r_matmul matmul = {.struct_size = sizeof matmul,
                                .a = {a, FP8R_DTYPE_E4M3, 0, 1, M, K, 0, K, 1},
                                .b = {b, FP8R_DTYPE_E4M3, 0, 1, K, N, 0, 1, K},
                                .out = {out, FP8R_DTYPE_FP32, 0, 1, M, N, 0, N, 1}};
    memset(out, 0xFF, sizeof out);
    assert_int_equal(fp8r_scaled_mm(rows.contexts[0], &matmul, NULL), FP8R_OK);
    for (int64_t row = 0, next = 0; row < M; row++) {
        bool is_touched = next < 5 && touched[next] == row;
        for (int64_t col = 0; col < N; col++) {
            static const float values[16] = {0.5f,  0.5625f, 0.625f, 0.6875f, 0.75f, 0.8125f, 0.875f, 0.9375f,
                                             1.0f, 1.125f,  1.25f,  1.375f,  1.5f,  1.625f,  1.75f,  1.875f};
            float wanted = is_touched ? values[(col + 100 * next + 7) % 16] : 0.0f;
            if (!(out[row * N + col] == wanted))
                fail_msg("out[%d,%d] is %g, wanted %g", (int)row, (int)col, (double)out[row * N + col], (double)wanted);
        }
        next += is_touched;
    }
    assert_int_equal(munmap(a, (size_t)M * K), 0);
}

/* As the routes send it. */
static void check_routed(const char *text)
{
    struct sample sample;
    char line[160];
    assert_true(sample_init(&sample, text, SAMPLE_EXACT, 6));
    sample_clear(&sample);
    assert_int_equal(fp8r_scaled_mm(rows.contexts[0], &sample.matmul, NULL), FP8R_OK);
    if (!sample_judge(&sample, sample.matmul.a.rows, line, sizeof line))
        fail_msg("%s: %s", text, line);
    sample_fini(&sample);
}

static void e3_more_rows_than_16_bits(void **state)
{
    (void)state;
    check_routed("1048577x16x32");
    rows_check_exact(&rows, "70001x8x16");
    rows_check_exact(&rows, "66001x4x16:a=bf16");
}

static void e3_more_batches_than_16_bits(void **state)
{
    (void)state;
    check_routed("65537*16x16x32:bias");
    rows_check_exact(&rows, "65537*2x4x8:tensor");
}

/* Quantising 262145 short rows: the last ones, and all scales. */
static void e3_quantises_many_rows(void **state)
{
    enum { M = 262145, K = 16 };
    static uint16_t in[(size_t)M * K];
    static uint8_t out[(size_t)M * K];
    static float scale[M];
    (void)state;
    for (int64_t row = 0; row < M; row++)
        in[row * K + row % K] = (uint16_t)(0x3F80 + (row % 4) * 0x80); /* 1, 2, 4, 8 */
    const fp8r_matrix m_in = {in, FP8R_DTYPE_BF16, 0, 1, M, K, 0, K, 1}, m_out = {out, FP8R_DTYPE_E4M3, 0, 1, M, K, 0, K, 1};
    const fp8r_matrix m_scale = {scale, FP8R_DTYPE_FP32, 0, 1, M, 1, 0, 1, 1};
    memset(out, 0xAA, sizeof out);
    assert_int_equal(fp8r_quantize(rows.contexts[0], &m_in, &m_out, &m_scale, FP8R_SCALING_COMPUTE, NULL), FP8R_OK);
    for (int64_t row = 0; row < M; row++) {
        assert_true(scale[row] == (float)(1 << row % 4) / 448.0f);
        for (int64_t col = 0; col < K; col++)
            assert_int_equal(out[row * K + col], col == row % K ? 0x7E : 0);
    }
}

/* Extents whose product does not fit 64 bits are refused, not wrapped. */
static void sizes_that_overflow_are_refused(void **state)
{
    static const struct {
        int64_t m, n, k, pitch;
    } cases[] = {{INT64_MAX, 4, 4, 4}, {4, 4, INT64_MAX, INT64_MAX}, {4, INT64_MAX, 4, 4}, {4, 4, 4, INT64_MAX},
                 {(int64_t)1 << 40, 4, (int64_t)1 << 30, (int64_t)1 << 30}};
    static uint8_t bytes[64];
    static float out[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fp8r_matmul matmul = {.struct_size = sizeof matmul,
                              .a = {bytes, FP8R_DTYPE_E4M3, 0, 1, cases[i].m, cases[i].k, 0, cases[i].pitch, 1},
                              .b = {bytes, FP8R_DTYPE_E4M3, 0, 1, cases[i].k, cases[i].n, 0, 1, cases[i].k},
                              .out = {out, FP8R_DTYPE_FP32, 0, 1, cases[i].m, cases[i].n, 0, cases[i].n, 1}};
        fp8r_plan *plan = NULL;
        assert_int_equal(fp8r_plan_create(rows.contexts[0], &matmul, NULL, &plan), FP8R_ERROR_INVALID_ARGUMENT);
        assert_int_equal(fp8r_scaled_mm(rows.contexts[0], &matmul, NULL), FP8R_ERROR_INVALID_ARGUMENT);
        assert_true(fp8r_last_error()[0] != '\0' && !plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e1_offsets_beyond_32_bits),
        cmocka_unit_test(e3_more_rows_than_16_bits),
        cmocka_unit_test(e3_more_batches_than_16_bits),
        cmocka_unit_test(e3_quantises_many_rows),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests_name("field reports E", tests, setup, teardown);
}
