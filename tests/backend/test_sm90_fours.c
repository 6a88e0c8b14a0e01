/* The map of rows of b by fours: every byte that the copy engine may read lies in the operand, and a row's own bytes are
 * where the kernel looks for them. The copy of a: a grid that the device takes. Nothing here runs a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "backend/sm90/copy_args.h"
#include "backend/sm90/fours.h"
#include "backend/sm90/fours_shift.h"
#include "backend/sm90/limits.h"
#include "support/sm90_driver.h"

static int64_t address(const struct fp8r_sm90_map_form *form, int64_t k, int64_t eight, int64_t low, int64_t high,
                       int64_t group)
{
    const int64_t places[] = {eight, low, high, group};
    int64_t at = (int64_t)(uintptr_t)form->data + k;
    for (int i = 0; i < 4; i++)
        at += places[i] * (int64_t)form->pitches[i];
    return at;
}

/* b begins at `first`, of which nothing is read: an address alone. */
static void check(int64_t first, int64_t n, int64_t k, int64_t pitch, int64_t batch, int64_t batch_stride)
{
    const fp8r_operand b = {.row_stride = 1, .col_stride = pitch, .batch_stride = batch_stride, .align_bytes = 4};
    const fp8r_problem problem = {.batch = batch, .m = 1, .n = n, .k = k, .b = b};
    const int64_t end = first + (batch - 1) * batch_stride + (n - 1) * pitch + k;
    const struct fp8r_sm90_map_form form = fp8r_sm90_fours_form(&problem, (const void *)(uintptr_t)first, 64);
    assert_int_equal(form.rank, 5);
    assert_int_equal((uintptr_t)form.data % 16, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(form.pitches[i] % 16, 0);
    assert_int_equal(form.box[0] * form.box[1] * form.box[2] * form.box[3] * form.box[4], 128 * 64);
    const int64_t length = (int64_t)form.extents[0];
    for (int64_t item = 0; item < batch; item++) {
        for (int64_t row = 0; row < n; row++) {
            const int64_t at = first + item * batch_stride + row * pitch;
            const int64_t group = row / 32 + item * (batch_stride / (32 * pitch));
            const int64_t from = address(&form, 0, row % 32 / 4, row & 1, row >> 1 & 1, group);
            assert_true(group < (int64_t)form.extents[4]);
            assert_true(from <= at && at - from <= FP8R_SM90_SHIFTED_LEAD);
            assert_int_equal((at - from) % 4, 0);
            assert_int_equal(at - from, fp8r_sm90_fours_shift((uint64_t)first, pitch, (int)(row % 4)));
            assert_true(from >= first / 16 * 16 && from + length <= end && from + length >= at + k);
        }
    }
}

static void maps_stay_inside(void **state)
{
    static const int64_t lengths[] = {16, 20, 1004, 1001, 3418, 3420};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int64_t gap = 0; gap < 32; gap += 4)
            for (int64_t begin = 0; begin < 16; begin += 4) {
                const int64_t pitch = (lengths[i] + 3) / 4 * 4 + gap;
                check(65536 + begin, 96, lengths[i], pitch, 1, 0);
                check(65536 + begin, 64, lengths[i], pitch, 3, 96 * pitch);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_stay_inside), cmocka_unit_test(pitches_may_be_long),
                                       cmocka_unit_test(copies_of_any_batch)};
    return cmocka_run_group_tests_name("rows of b by fours", tests, NULL, NULL);
}
