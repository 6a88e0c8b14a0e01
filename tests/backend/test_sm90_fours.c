/* The map of rows of b by fours: with a driver's encoder made by hand, every byte that the copy engine may read lies in
 * the operand, and a row's own bytes are where the kernel looks for them. Nothing here runs a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/sm90/fours.h"
#include "backend/sm90/limits.h"

static struct {
    int64_t base, extents[5], pitches[5];
    int boxes[5];
} seen;

static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                       const cuuint64_t *extents, const cuuint64_t *pitches, const cuuint32_t *box, const cuuint32_t *steps,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill)
{
    (void)map, (void)type, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    assert_int_equal(rank, 5);
    seen.base = (int64_t)(uintptr_t)base;
    assert_int_equal(seen.base % 16, 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(steps[i], 1);
        seen.extents[i] = (int64_t)extents[i];
        seen.boxes[i] = (int)box[i];
        seen.pitches[i] = i ? (int64_t)pitches[i - 1] : 1;
        if (i) assert_int_equal(seen.pitches[i] % 16, 0);
    }
    return CUDA_SUCCESS;
}

static int64_t address(int64_t k, int64_t eight, int64_t low, int64_t high, int64_t group)
{
    return seen.base + k + eight * seen.pitches[1] + low * seen.pitches[2] + high * seen.pitches[3] +
           group * seen.pitches[4];
}

/* b begins at `first`, of which nothing is read: an address alone. */
static void check(int64_t first, int64_t n, int64_t k, int64_t pitch, int64_t batch, int64_t batch_stride)
{
    const fp8r_operand b = {.row_stride = 1, .col_stride = pitch, .batch_stride = batch_stride, .align_bytes = 4};
    const fp8r_problem problem = {.batch = batch, .m = 1, .n = n, .k = k, .b = b};
    const int64_t end = first + (batch - 1) * batch_stride + (n - 1) * pitch + k;
    CUtensorMap map;
    void *encoder;
    CUresult (*call)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                     const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill) = encode;
    *(void **)&encoder = *(void **)&call;
    assert_true(fp8r_sm90_encode_fours(encoder, &map, &problem, (const void *)(uintptr_t)first, 64));
    assert_int_equal(seen.boxes[0] * seen.boxes[1] * seen.boxes[2] * seen.boxes[3] * seen.boxes[4], 128 * 64);
    for (int64_t item = 0; item < batch; item++) {
        for (int64_t row = 0; row < n; row++) {
            const int64_t at = first + item * batch_stride + row * pitch;
            const int64_t group = row / 32 + item * (batch_stride / (32 * pitch));
            const int64_t from = address(0, row % 32 / 4, row & 1, row >> 1 & 1, group);
            assert_true(group < seen.extents[4]);
            assert_true(from <= at && at - from <= FP8R_SM90_SHIFTED_LEAD);
            assert_int_equal((at - from) % 4, 0);
            assert_true(from >= first / 16 * 16 && from + seen.extents[0] <= end && from + seen.extents[0] >= at + k);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_stay_inside)};
    return cmocka_run_group_tests_name("rows of b by fours", tests, NULL, NULL);
}
