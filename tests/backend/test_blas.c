/* The blas backend beside what every backend is tested for: sizes beyond its blocks, bits that do not depend on threads,
 * containment of NaN, workspace, and life after fork.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <unistd.h>

#include "backend/blas/blas_tiling.h"
#include "backend/blas_product.h"
#include "support/child.h"
#include "support/slow.h"

/* Every memory order, type, scale and bias, and each block size exceeded. */
static const char *const cases[] = {
    "1x1x1", "3x5x7:fp32", "1x300x777:bias", "17x65x513:fp16:bias=fp32", "33x257x1025:fp32:ta:tb", "5x64x100:tb:a=e5m2",
    "64x70x33:ta:sa=tensor:sb=row", "9x31x4097:fp32:tensor", "1030x66x40:a=e5m2:fp32", "2x4100x19:bias:tensor",
    "7x130x600:a=bf16", "40x50x5000:a=fp16:fp32:bias=fp16", "3*5x7x11:sa=batch:sb=row", "50*1x33x65:fp32:sa=tensor:sb=batch",
    "5*300x70x30:bias", "21x40x50:lda=64:ldb=80:ldo=77:fp32", "13x29x37:precise:static:bias=bf16:fp16",
    "6*9x17x130:a=bf16:ta:tb",
};

static void computes_right_values(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    for (int threads = 1; threads <= 5; threads += 2) {
        fp8r_context *context = plain_context(threads);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            assert_true(computes(context, cases[i], 0));
            assert_true(computes(context, cases[i], 1500)); /* planned for more rows than are run */
        }
        fp8r_context_destroy(context);
    }
}

/* The bits are those of one thread, whatever the library does with pieces of other shapes. */
static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    static const char *const texts[] = {"300x512x600:fp32", "33x257x1025:fp32:ta", "1100x70x90:fp32", "9*40x130x600:fp32"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sample sample;
        assert_true(sample_init(&sample, texts[i], SAMPLE_RANDOM, 7));
        size_t bytes = sample.blocks[SAMPLE_OUT].used_bytes;
        void *first = malloc(bytes);
        assert_non_null(first);
        for (int threads = 1; threads <= 32; threads *= 4) {
            fp8r_context *context = plain_context(threads);
            assert_true(run_planned(context, &sample, 0));
            if (threads == 1)
                memcpy(first, sample.matmul.out.data, bytes);
            assert_memory_equal(first, sample.matmul.out.data, bytes);
            fp8r_context_destroy(context);
        }
        free(first);
        sample_fini(&sample);
    }
}

static void workspace_never_shrinks_with_m(void **state)
{
    (void)state;
    static const char *const texts[] = {"3x5x7", "700*3x40x50", "1x9000x9000", "7*1x4097x513"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fp8r_matmul mm;
        assert_int_equal(fp8r_matmul_parse(texts[i], &mm), FP8R_OK);
        fp8r_problem problem = {.batch = mm.a.batch, .n = mm.b.cols, .k = mm.a.cols};
        int64_t before = 0;
        for (problem.m = 1; problem.m < 3000; problem.m++) {
            struct fp8r_blas_tiling tiling;
            fp8r_blas_tiling_init(&tiling, &problem, 4);
            assert_true(tiling.bytes >= before);
            before = tiling.bytes;
        }
    }
}

/* Sizes that no int holds are cut into blocks of sizes that one does, in a workspace of any machine. */
static void huge_problems_have_small_blocks(void **state)
{
    (void)state;
    fp8r_problem problem = {.batch = INT64_MAX / 4, .m = INT64_MAX / 4, .n = INT64_MAX / 4, .k = INT64_MAX / 4};
    struct fp8r_blas_tiling tiling;
    fp8r_blas_tiling_init(&tiling, &problem, 64);
    assert_true(tiling.bytes > 0 && tiling.bytes < (int64_t)1 << 30);
    assert_true(tiling.rows <= FP8R_BLAS_ROWS && tiling.cols <= FP8R_BLAS_COLS && tiling.depth <= FP8R_BLAS_DEPTH);
}

/* Element of a matrix of one batch item and more than one row and column. */
static int64_t place(const fp8r_matrix *x, int64_t row, int64_t col)
{
    return (x->rows > 1 ? row * x->row_stride : 0) + col * x->col_stride;
}

/* A NaN (or Inf) meets zeros only: 0 * NaN and 0 * Inf are NaN, in exactly that row of a and that column of b. */
static void contains_nan(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    static const struct {
        const char *text;
        uint8_t code;
    } lines[] = {{"21x300x600:fp32", 0x7F}, {"21x300x600", 0xFF}, {"21x300x600:a=e5m2:fp16", 0x7C}, {"1x65x5000:tb", 0x7F},
                 {"21x300x600:ta:a=e5m2:fp32", 0xFF}};
    fp8r_context *context = plain_context(3);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct sample sample;
        assert_true(sample_init(&sample, lines[i].text, SAMPLE_EXACT, 9));
        const fp8r_matmul *mm = &sample.matmul;
        uint8_t *a = mm->a.data, *b = mm->b.data;
        int64_t row = mm->a.rows / 2, col = mm->b.cols - 7, k = mm->a.cols / 2;
        for (int64_t c = 0; c < mm->b.cols; c++)
            b[place(&mm->b, k, c)] = 0;
        for (int64_t r = 0; r < mm->a.rows; r++)
            a[place(&mm->a, r, 1)] = 0;
        a[place(&mm->a, row, k)] = lines[i].code;
        b[place(&mm->b, 1, col)] = 0x7F;
        assert_true(run_planned(context, &sample, 0));
        for (int64_t r = 0; r < mm->a.rows; r++)
            for (int64_t c = 0; c < mm->b.cols; c++)
                if (isnan(slow_load(mm->out.data, place(&mm->out, r, c), mm->out.dtype)) != (r == row || c == col))
                    fail_msg("%s: NaN astray at row %lld, column %lld", lines[i].text, (long long)r, (long long)c);
        sample_fini(&sample);
    }
    fp8r_context_destroy(context);
}

static void refuses_batch_invariance(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    fp8r_context *context = plain_context(1);
    fp8r_matmul mm;
    fp8r_plan *plan;
    assert_int_equal(fp8r_matmul_parse("4x5x6:invariant", &mm), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &mm, "blas", &plan), FP8R_ERROR_UNSUPPORTED);
    assert_non_null(strstr(fp8r_last_error(), "independent of M"));
    fp8r_context_destroy(context);
}

/* Both the pool's threads and the library's are gone in the child; neither may be waited for. */
static void runs_after_fork(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    fp8r_context *context = plain_context(2);
    assert_true(computes(context, "70x300x700", 0));
    int before = library_threads();
    pid_t child = child_begin(60);
    assert_true(child >= 0);
    if (child == 0) {
        _exit(computes(context, "70x300x700", 0) && library_threads() == before ? 0 : 1);
    }
    assert_int_equal(child_end(child), 0);
    assert_true(computes(context, "70x300x700", 0));
    fp8r_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_right_values),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(workspace_never_shrinks_with_m),
        cmocka_unit_test(huge_problems_have_small_blocks),
        cmocka_unit_test(contains_nan),
        cmocka_unit_test(refuses_batch_invariance),
        cmocka_unit_test(runs_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
