/* Overlap against brute force on small layouts: sharing is never claimed of disjoint operands, and always seen where the
 * layouts are regular (dense blocks, row windows of one pitch).
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "problem/problem.h"
#include "support/sample.h"
#include "support/slow.h"

enum { ARENA = 4096 };

struct layout {
    fp8r_operand operand;
    int64_t extents[3], at_bytes;
};

static void mark(const struct layout *it, unsigned char bytes[ARENA])
{
    int size = slow_bytes(it->operand.dtype);
    memset(bytes, 0, ARENA);
    for (int64_t i = 0; i < it->extents[0]; i++)
        for (int64_t r = 0; r < it->extents[1]; r++)
            for (int64_t c = 0; c < it->extents[2]; c++)
                memset(bytes + it->at_bytes + (i * it->operand.batch_stride + r * it->operand.row_stride +
                                               c * it->operand.col_stride) * size, 1, (size_t)size);
}

static bool share(const struct layout *a, const struct layout *b)
{
    static unsigned char of_a[ARENA], of_b[ARENA];
    mark(a, of_a);
    mark(b, of_b);
    for (int i = 0; i < ARENA; i++)
        if (of_a[i] && of_b[i])
            return true;
    return false;
}

static bool claimed(const struct layout *a, const struct layout *b)
{
    static unsigned char arena[ARENA];
    return fp8r_overlap_certain(arena + a->at_bytes, &a->operand, arena + b->at_bytes, &b->operand, a->extents, b->extents);
}

static int64_t below(uint64_t *random, int64_t end)
{
    return (int64_t)(sample_random(random) % (uint64_t)end);
}

/* Any strides whose elements stay in the arena; as validation would leave them (batch of 1: stride 0). */
static struct layout any_layout(uint64_t *random)
{
    static const int32_t dtypes[] = {FP8R_DTYPE_E4M3, FP8R_DTYPE_BF16, FP8R_DTYPE_FP32};
    struct layout it = {.extents = {1 + below(random, 3), 1 + below(random, 5), 1 + below(random, 5)}};
    it.operand = (fp8r_operand){.dtype = dtypes[below(random, 3)],
                                .batch_stride = it.extents[0] == 1 ? 0 : below(random, 60),
                                .row_stride = below(random, 20),
                                .col_stride = below(random, 20)};
    it.at_bytes = 4 * below(random, 200);
    return it;
}

static void disjoint_is_never_claimed(void **state)
{
    uint64_t random = 5;
    int claims = 0, shares = 0;
    (void)state;
    for (int i = 0; i < 60000; i++) {
        struct layout a = any_layout(&random), b = any_layout(&random);
        bool really = share(&a, &b), said = claimed(&a, &b);
        if (said && !really)
            fail_msg("claimed, round %d: at %d and %d", i, (int)a.at_bytes, (int)b.at_bytes);
        claims += said;
        shares += really;
    }
    print_message("%d of %d overlaps are seen in irregular layouts\n", claims, shares);
    assert_true(claims > 0);
}

/* Rows of `cols` elements, one a pitch; dense where pitch = cols. */
static struct layout window(uint64_t *random, int64_t pitch_bytes, int32_t dtype)
{
    int64_t size = slow_bytes(dtype), pitch = pitch_bytes / size;
    struct layout it = {.extents = {1, 1 + below(random, 6), 1 + below(random, pitch)}};
    it.operand = (fp8r_operand){.dtype = dtype, .row_stride = pitch, .col_stride = 1};
    if (it.extents[1] == 1)
        it.operand.row_stride = it.extents[2];
    it.at_bytes = 4 * below(random, 120);
    return it;
}

static void windows_are_judged_exactly(void **state)
{
    static const int32_t dtypes[] = {FP8R_DTYPE_E4M3, FP8R_DTYPE_BF16, FP8R_DTYPE_FP32};
    uint64_t random = 6;
    int shares = 0;
    (void)state;
    for (int i = 0; i < 60000; i++) {
        int64_t pitch = 16 + 4 * below(&random, 12);
        struct layout a = window(&random, pitch, dtypes[below(&random, 3)]);
        struct layout b = window(&random, pitch, dtypes[below(&random, 3)]);
        if (below(&random, 3) == 0) { /* against a dense block */
            b.operand.row_stride = b.extents[2];
        }
        bool really = share(&a, &b);
        shares += really;
        if (claimed(&a, &b) != really)
            fail_msg("round %d: pitch %d, %dx%d at %d and %dx%d at %d share: %d", i, (int)pitch, (int)a.extents[1],
                     (int)a.extents[2], (int)a.at_bytes, (int)b.extents[1], (int)b.extents[2], (int)b.at_bytes, really);
    }
    assert_in_range(shares, 6000, 54000);
}

/* Whose strides reach anywhere: K = 0 has operands of many rows and no columns. */
static void nothing_shares_nothing(void **state)
{
    const struct layout out = {{.dtype = FP8R_DTYPE_BF16, .row_stride = 8, .col_stride = 1}, {1, 8, 8}, 512};
    (void)state;
    for (int empty = 0; empty < 3; empty++) {
        struct layout in = {{.dtype = FP8R_DTYPE_E4M3, .batch_stride = 300, .row_stride = 100, .col_stride = 40}, {2, 9, 5}, 520};
        in.extents[empty] = 0;
        assert_false(claimed(&out, &in));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disjoint_is_never_claimed),
        cmocka_unit_test(windows_are_judged_exactly),
        cmocka_unit_test(nothing_shares_nothing),
    };
    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
