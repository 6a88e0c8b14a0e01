/* Field reports A and E at their original sizes: minutes of work and gigabytes of memory, so for `make test-full`.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/rows.h"

static struct rows rows;

static int setup(void **state)
{
    (void)state;
    rows_init(&rows, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rows_fini(&rows);
    return 0;
}

static void a5_vision_layers(void **state)
{
    (void)state;
    rows_check_exact(&rows, "256x1280x3420");
    rows_check_exact(&rows, "256x3420x1280");
}

static void a6_a_partial_last_tile(void **state)
{
    (void)state;
    rows_check_exact(&rows, "1088x2048x2048");
}

static void a8_neighbouring_shapes(void **state)
{
    (void)state;
    rows_check_exact(&rows, "8x8192x8192");
    rows_check_exact(&rows, "8x12288x8192:fp16");
    rows_check_exact(&rows, "8x16384x8192");
}

static void a9_many_rows(void **state)
{
    (void)state;
    rows_check_exact(&rows, "2048x768x4096");
    rows_check_exact(&rows, "2048x7168x1152");
    rows_check_exact(&rows, "128x1344x1152");
}

static void c8_the_reported_shape(void **state)
{
    (void)state;
    rows_check_exact(&rows, "4x6400x6144:fp16:bias");
    rows_check_exact(&rows, "63x6400x6144:fp16:bias");
}

/* 2^31 elements and a row more to quantise: 4.3 GB of input that is never written but for some rows, 2.1 GB of codes. */
static void e1_quantises_beyond_32_bits(void **state)
{
    enum { M = 524289, K = 4096 };
    static float scale[M];
    (void)state;
    uint16_t *in = mmap(NULL, (size_t)M * K * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *out = malloc((size_t)M * K);
    assert_true(in != MAP_FAILED && out);
    memset(out, 0xAA, (size_t)M * K);
    in[(size_t)(M - 1) * K + 4095] = 0x4000; /* 2 */
    const fp8r_matrix m_in = {in, FP8R_DTYPE_BF16, 0, 1, M, K, 0, K, 1}, m_out = {out, FP8R_DTYPE_E4M3, 0, 1, M, K, 0, K, 1};
    const fp8r_matrix m_scale = {scale, FP8R_DTYPE_FP32, 0, 1, M, 1, 0, 1, 1};
    assert_int_equal(fp8r_quantize(rows.contexts[0], &m_in, &m_out, &m_scale, FP8R_SCALING_COMPUTE, NULL), FP8R_OK);
    for (size_t i = 0; i < (size_t)M * K; i++)
        if (out[i] != (i == (size_t)M * K - 1 ? 0x7E : 0))
            fail_msg("code %zu is 0x%x", i, out[i]);
    assert_true(scale[0] == 1.0f && scale[M - 1] == 2.0f / 448.0f);
    free(out);
    assert_int_equal(munmap(in, (size_t)M * K * 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a5_vision_layers),      cmocka_unit_test(a6_a_partial_last_tile),
        cmocka_unit_test(a8_neighbouring_shapes), cmocka_unit_test(a9_many_rows),
        cmocka_unit_test(c8_the_reported_shape), cmocka_unit_test(e1_quantises_beyond_32_bits),
    };
    return cmocka_run_group_tests_name("field reports, full size", tests, setup, teardown);
}
