/* The map of rows of b by eights: every byte that the copy engine may read lies in the operand, and a row's own bytes are
 * where the kernel looks for them. The copy of a: when there is one, and a grid that the device takes. Nothing here runs a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "backend/sm90/copy_args.h"
#include "backend/sm90/eights.h"
#include "backend/sm90/eights_shift.h"
#include "backend/sm90/limits.h"
#include "support/sm90_driver.h"

/* Where a row's bytes begin in the map. */
static int64_t address(const struct fp8r_sm90_map_form *form, int64_t group, int class_)
{
    int64_t at = (int64_t)(uintptr_t)form->data + group * (int64_t)form->pitches[0];
    for (int i = 0; i < 3; i++)
        at += (class_ >> i & 1) * (int64_t)form->pitches[i + 1];
    return at;
}

/* b begins at `first`, of which nothing is read: an address alone. */
static void check(int64_t first, int64_t n, int64_t k, int64_t pitch, int64_t batch, int64_t batch_stride)
{
    const fp8r_operand b = {.row_stride = 1, .col_stride = pitch, .batch_stride = batch_stride, .align_bytes = 4};
    const fp8r_problem problem = {.batch = batch, .m = 1, .n = n, .k = k, .b = b};
    const int64_t end = first + (batch - 1) * batch_stride + (n - 1) * pitch + k;
    const struct fp8r_sm90_map_form form = fp8r_sm90_eights_form(&problem, (const void *)(uintptr_t)first, 64);
    assert_int_equal(form.rank, 5);
    assert_int_equal((uintptr_t)form.data % 32, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(form.pitches[i] % 32, 0);
    assert_int_equal(form.box[0] * form.box[1] * form.box[2] * form.box[3] * form.box[4], 128 * 64);
    const int64_t length = (int64_t)form.extents[0];
    for (int64_t item = 0; item < batch; item++) {
        for (int64_t row = 0; row < n; row++) {
            const int64_t at = first + item * batch_stride + row * pitch;
            const int64_t group = row / 8 + item * (batch_stride / (8 * pitch));
            const int64_t from = address(&form, group, (int)(row % 8));
            assert_true(group < (int64_t)form.extents[1]);
            assert_true(from <= at && at - from <= 112);
            assert_int_equal((at - from) % 4, 0);
            assert_int_equal(at - from, fp8r_sm90_eights_shift((uint64_t)first, pitch, (int)(row % 8)));
            assert_true(from >= first / 32 * 32 && from + length <= end && from + length >= at + k);
        }
    }
}

static void maps_stay_inside(void **state)
{
    static const int64_t lengths[] = {128, 132, 1004, 1001, 3418, 3420};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int64_t gap = 0; gap < 32; gap += 4)
            for (int64_t begin = 0; begin < 32; begin += 4) {
                const int64_t pitch = (lengths[i] + 3) / 4 * 4 + gap;
                check(65536 + begin, 96, lengths[i], pitch, 1, 0);
                check(65536 + begin, 8, lengths[i], pitch, 1, 0);
                check(65536 + begin, 64, lengths[i], pitch, 3, 72 * pitch);
            }
}

/* Beyond 31 and 32 bits, of which only the low ones say where a row begins. */
static void pitches_may_be_long(void **state)
{
    static const int64_t bits[] = {31, 32, 33};
    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        for (int64_t gap = 4; gap < 32; gap += 4)
            check(65536 + gap, 64, 1004, ((int64_t)1 << bits[i]) + gap, 1, 0);
}

/* A grid's second size ends at 65535; matrices do not. */
static void copies_of_any_batch(void **state)
{
    static const int64_t batches[] = {1, 65535, 65536, 70000, 1 << 24};
    static const struct fp8r_sm90_config shifted = {.name = "shifted", .family = FP8R_SM90_WIDE, .shifted = true};
    static struct fp8r_sm90_copy_args seen;
    struct fp8r_sm90_plan plan = {.config = &shifted, .sm_count = 132, .start = sm90_driver(&seen, sizeof seen)};
    const fp8r_pointers pointers = {.struct_size = sizeof pointers, .a = (const void *)0x10004};
    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const fp8r_operand a = {.batch_stride = 3 * 132, .row_stride = 132, .col_stride = 1, .align_bytes = 4};
        const fp8r_problem problem = {.batch = batches[i], .m = 3, .n = 32, .k = 132, .a = a};
        assert_int_equal(fp8r_sm90_copy(&plan, &problem, &pointers, (void *)0x100000, NULL), FP8R_OK);
        assert_int_equal(seen.items, batches[i]);
        assert_in_range(seen_config.gridDimY, 1, 65535);
        assert_true(seen_config.gridDimY <= batches[i]);
        assert_int_equal(seen_config.gridDimX, 3);
    }
}

/* Few rows are fetched by those that multiply, where a split one has few enough blocks of whole words; others are copied, but
 * for those that the copy engine takes. */
static void few_rows_are_not_copied(void **state)
{
    static const struct {
        int tokens, split, align;
        int64_t k;
        bool gathers, copies;
    } cases[] = {{16, 4, 4, 3420, true, false},  {16, 4, 4, 4096, true, false},  {16, 4, 4, 4100, false, true},
                 {16, 2, 4, 3420, false, true},  {16, 2, 8, 2044, true, false},  {16, 1, 4, 1020, false, true},
                 {64, 4, 4, 3420, false, true},  {16, 4, 2, 3420, false, true},  {16, 4, 4, 3418, false, true},
                 {16, 4, 16, 3420, false, false}, {64, 1, 16, 3420, false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fp8r_sm90_config config = {.name = "shifted", .family = FP8R_SM90_WIDE, .shifted = true,
                                                .tokens = cases[i].tokens, .split = cases[i].split};
        const fp8r_problem problem = {.batch = 1, .m = 16, .n = 64, .k = cases[i].k, .a = {.align_bytes = cases[i].align}};
        assert_int_equal(fp8r_sm90_gathers(&config, &problem), cases[i].gathers);
        assert_int_equal(fp8r_sm90_copies(&config, &problem), cases[i].copies);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_stay_inside), cmocka_unit_test(pitches_may_be_long),
                                       cmocka_unit_test(copies_of_any_batch), cmocka_unit_test(few_rows_are_not_copied)};
    return cmocka_run_group_tests_name("rows of b by eights", tests, NULL, NULL);
}
