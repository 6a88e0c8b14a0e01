/* Field reports A: sizes of zero, odd sizes, partial tiles (docs/field-reports.md). Each on every row, configuration and
 * set of processor features.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/rows.h"

static void check_all(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rows_check_exact(&shared_rows, texts[i]);
}
#define CHECK_ALL(texts) check_all(texts, sizeof texts / sizeof *(texts))

/* Products of ms x ns x ks; M varies slowest. */
static void check_grid(const int *ms, int m_count, const int *ns, int n_count, const int *ks, int k_count, const char *options)
{
    for (int m = 0; m < m_count; m++)
        for (int n = 0; n < n_count; n++)
            for (int k = 0; k < k_count; k++) {
                char text[64];
                snprintf(text, sizeof text, "%dx%dx%d%s", ms[m], ns[n], ks[k], options);
                rows_check_exact(&shared_rows, text);
            }
}
#define COUNT(list) (int)(sizeof list / sizeof *(list))
#define CHECK_GRID(ms, ns, ks, options) check_grid(ms, COUNT(ms), ns, COUNT(ns), ks, COUNT(ks), options)

/* Nothing is written for M = 0 or N = 0; K = 0 writes zeros, or the bias; scales may have an extent of 0, too. */
static void a1_empty_products(void **state)
{
    static const char *const texts[] = {"0x16x32", "16x0x32", "16x16x0", "0x0x0", "0x16x32:bias", "16x0x32:bias:fp32",
                                        "16x16x0:bias", "16x16x0:fp16:bias=fp32", "0x16x32:tensor", "16x16x0:tensor",
                                        "16x16x0:to:fp32", "2*16x16x0:bias", "0*16x16x16", "2*0x16x16"};
    (void)state;
    CHECK_ALL(texts);
}

/* Data pointers of empty products are never looked at. */
static void a1_empty_products_need_no_data(void **state)
{
    static const char *const texts[] = {"0x16x32", "16x0x32", "0x0x0", "0*4x4x4"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fp8r_matmul matmul;
        assert_int_equal(fp8r_matmul_parse(texts[i], &matmul), FP8R_OK);
        assert_int_equal(fp8r_scaled_mm(shared_rows.contexts[0], &matmul, NULL), FP8R_OK);
    }
}

static void a3_any_m_and_unaligned_n_and_k(void **state)
{
    static const int ns[] = {1, 3, 15, 17, 40}, ks[] = {1, 3, 15, 17, 40, 100}, few[] = {2, 33}, n64[] = {64}, k64[] = {64};
    int ms[33];
    (void)state;
    for (int m = 0; m < 33; m++)
        ms[m] = m + 1;
    CHECK_GRID(ms, n64, k64, "");
    CHECK_GRID(few, ns, ks, ":fp32");
}

static void a5_k_a_multiple_of_4_only(void **state)
{
    static const char *const texts[] = {"64x1280x3420", "64x3420x1280", "1x1280x3420", "3x3420x1280:bias"};
    (void)state;
    CHECK_ALL(texts);
}

/* One row more and less than any tile, scales of all rows different, every row of the last tile judged. */
static void a6_partial_tiles(void **state)
{
    static const int ms[] = {7, 9, 13, 15, 25, 31, 47, 49, 63, 65, 127, 129}, ns[] = {31, 33, 63, 65, 97}, ks[] = {200};
    (void)state;
    CHECK_GRID(ms, ns, ks, "");
}

static void a7_every_kernel_or_not_mine(void **state)
{
    static const int ms[] = {1, 4, 40}, ns[] = {1, 7, 9, 255, 257}, ks[] = {16, 48, 272, 528};
    (void)state;
    CHECK_GRID(ms, ns, ks, ":bias");
}

/* Long sums, exact: what would be split over K must still add up. */
static void a8_long_sums(void **state)
{
    static const char *const texts[] = {"8x1024x8192:fp16", "8x1536x8192:fp16", "8x2048x8192", "1x512x32768:fp32",
                                        "24x96x32767:fp32"};
    (void)state;
    CHECK_ALL(texts);
}

static void a9_multiples_of_small_tiles(void **state)
{
    static const int ms[] = {1, 64}, ns[] = {576, 640, 768, 1152, 1344}, ks[] = {64, 128, 192, 1152};
    (void)state;
    CHECK_GRID(ms, ns, ks, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a1_empty_products),
        cmocka_unit_test(a1_empty_products_need_no_data),
        cmocka_unit_test(a3_any_m_and_unaligned_n_and_k),
        cmocka_unit_test(a5_k_a_multiple_of_4_only),
        cmocka_unit_test(a6_partial_tiles),
        cmocka_unit_test(a7_every_kernel_or_not_mine),
        cmocka_unit_test(a8_long_sums),
        cmocka_unit_test(a9_multiples_of_small_tiles),
    };
    return cmocka_run_group_tests_name("field reports A", tests, shared_rows_setup, shared_rows_teardown);
}
