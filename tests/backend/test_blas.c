/* The blas backend beside what every backend is tested for: which libraries it takes and why not others, what it does to
 * a library's threads, sizes beyond its blocks, containment of NaN, and life after fork.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <fp8route/backend.h>

#include "backend/blas/blas_library.h"
#include "backend/blas/blas_tiling.h"
#include "base/convert.h"
#include "base/dtype.h"
#include "base/quantize.h"
#include "base/reason.h"

/* ---- Products ---- */

struct product {
    fp8r_matmul matmul;
    size_t bytes[6];
};

static fp8r_matrix *matrix_of(struct product *product, int index)
{
    fp8r_matrix *all[] = {&product->matmul.a,       &product->matmul.b,       &product->matmul.out,
                          &product->matmul.scale_a, &product->matmul.scale_b, &product->matmul.bias};
    return all[index];
}

static int64_t place(const fp8r_matrix *x, int64_t batch, int64_t row, int64_t col)
{
    return (x->batch == 1 ? 0 : batch * x->batch_stride) + (x->rows == 1 ? 0 : row * x->row_stride) +
           (x->cols == 1 ? 0 : col * x->col_stride);
}

static void fill(fp8r_matrix *x, size_t bytes, int index, uint32_t seed)
{
    size_t count = bytes / (size_t)fp8r_dtype_bytes(x->dtype);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t draw = seed >> 8;
        if (x->dtype == FP8R_DTYPE_E4M3 || x->dtype == FP8R_DTYPE_E5M2)
            ((uint8_t *)x->data)[i] = (uint8_t)((draw & 0x80u) | draw % 0x50u);
        else if (index == 3 || index == 4)
            ((float *)x->data)[i] = ldexpf(1.0f + (float)(draw % 7) / 8, (int)(draw / 8 % 9) - 4);
        else
            fp8r_store(x->data, (int64_t)i, x->dtype, (float)(int)(draw % 2001) / 64 - 15);
    }
}

static void make(struct product *product, const char *text)
{
    assert_int_equal(fp8r_matmul_parse(text, &product->matmul), FP8R_OK);
    for (int i = 0; i < 6; i++) {
        fp8r_matrix *x = matrix_of(product, i);
        if (x->dtype == FP8R_DTYPE_NONE)
            continue;
        size_t count = (size_t)place(x, x->batch - 1, x->rows - 1, x->cols - 1) + 1;
        product->bytes[i] = count * (size_t)fp8r_dtype_bytes(x->dtype);
        x->data = malloc(product->bytes[i]);
        assert_non_null(x->data);
        if (i == 2)
            memset(x->data, 0xFF, product->bytes[i]); /* NaN in every type */
        else
            fill(x, product->bytes[i], i, (uint32_t)(i + 1) * 77u);
    }
}

static void drop(struct product *product)
{
    for (int i = 0; i < 6; i++)
        free(matrix_of(product, i)->data);
}

/* Value of a after quantising on the way, without its scale. */
static void row_of_a(const fp8r_matmul *mm, int64_t batch, int64_t row, float *values, float *scale)
{
    const fp8r_matrix *a = &mm->a;
    for (int64_t k = 0; k < a->cols; k++)
        values[k] = fp8r_load(a->data, place(a, batch, row, k), a->dtype);
    *scale = mm->scale_a.dtype ? fp8r_load(mm->scale_a.data, place(&mm->scale_a, batch, row, 0), FP8R_DTYPE_FP32) : 1.0f;
    if (!fp8r_dtype_is_half(a->dtype))
        return;
    uint8_t *codes = malloc((size_t)a->cols);
    assert_non_null(codes);
    *scale = fp8r_quantize_row(values, FP8R_DTYPE_FP32, 1, a->cols, codes);
    for (int64_t k = 0; k < a->cols; k++)
        values[k] = fp8r_from_e4m3(codes[k]);
    free(codes);
}

/* Each element against a sum in double. The bound is that of K fp32 additions in any order and of out's rounding. */
static void check_row(const fp8r_matmul *mm, int64_t batch, int64_t row, float *values)
{
    float scale_a;
    row_of_a(mm, batch, row, values, &scale_a);
    double unit = mm->out.dtype == FP8R_DTYPE_BF16 ? 0x1p-8 : mm->out.dtype == FP8R_DTYPE_FP16 ? 0x1p-11 : 0x1p-24;
    for (int64_t col = 0; col < mm->b.cols; col++) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < mm->a.cols; k++) {
            double term = (double)values[k] *
                          (double)fp8r_load(mm->b.data, place(&mm->b, batch, k, col), FP8R_DTYPE_E4M3);
            sum += term;
            size += fabs(term);
        }
        double scale = (double)scale_a;
        if (mm->scale_b.dtype)
            scale *= (double)fp8r_load(mm->scale_b.data, place(&mm->scale_b, batch, 0, col), FP8R_DTYPE_FP32);
        double want = sum * scale;
        if (mm->bias.dtype)
            want += (double)fp8r_load(mm->bias.data, place(&mm->bias, batch, 0, col), mm->bias.dtype);
        double got = (double)fp8r_load(mm->out.data, place(&mm->out, batch, row, col), mm->out.dtype);
        double bound = (double)(mm->a.cols + 4) * 0x1p-24 * size * fabs(scale) + 2 * unit * fabs(want) + 0x1p-24;
        if (!(fabs(got - want) <= bound))
            fail_msg("[%lld,%lld,%lld]: %.9g, not %.9g +- %.3g", (long long)batch, (long long)row, (long long)col, got,
                     want, bound);
    }
}

static void check(const fp8r_matmul *mm)
{
    float *values = malloc((size_t)mm->a.cols * sizeof *values);
    assert_non_null(values);
    for (int64_t batch = 0; batch < mm->out.batch; batch++)
        for (int64_t row = 0; row < mm->out.rows; row++)
            check_row(mm, batch, row, values);
    free(values);
}

static fp8r_context *context_of(int threads)
{
    fp8r_context_options options = {.struct_size = sizeof options, .threads = threads,
                                    .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    fp8r_context *context;
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    return context;
}

/* Plans for `m_plan` rows and runs the product's own. The workspace is full of NaN and ends where its guard begins. */
static void run_planned(fp8r_context *context, const fp8r_matmul *mm, int64_t m_plan)
{
    enum { GUARD_BYTES = 256 };
    fp8r_matmul planned = *mm;
    planned.a.rows = planned.out.rows = m_plan;
    if (mm->scale_a.rows == mm->a.rows)
        planned.scale_a.rows = m_plan;
    fp8r_plan *plan;
    if (fp8r_plan_create(context, &planned, "blas", &plan) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    size_t bytes = fp8r_plan_workspace(plan), all = (bytes + GUARD_BYTES + 255) / 256 * 256;
    uint8_t *space = aligned_alloc(256, all);
    assert_non_null(space);
    memset(space, 0xFF, all);
    fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = mm->a.rows, .a = mm->a.data, .b = mm->b.data,
                              .out = mm->out.data, .scale_a = mm->scale_a.data, .scale_b = mm->scale_b.data,
                              .bias = mm->bias.data};
    if (fp8r_plan_run(plan, &pointers, space, bytes, NULL) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    for (size_t i = bytes; i < all; i++)
        assert_int_equal(space[i], 0xFF);
    free(space);
    fp8r_plan_destroy(plan);
}

static bool has_library(void)
{
    fp8r_reason reason;
    return fp8r_blas_load(&reason) != NULL;
}

#define NEEDS_LIBRARY()                                                                                                \
    if (!has_library()) {                                                                                              \
        print_message("skipped: no BLAS library on this machine\n");                                                   \
        skip();                                                                                                        \
    }

/* Ragged ones, one beyond each block size, every memory order, type, scale and bias. */
static const char *const cases[] = {
    "1x1x1", "3x5x7:fp32", "1x300x777:bias", "17x65x513:fp16:bias=fp32", "33x257x1025:fp32:ta:tb", "5x64x100:tb:a=e5m2",
    "64x70x33:ta:sa=tensor:sb=row", "9x31x4097:fp32:tensor", "1030x66x40:a=e5m2:fp32", "2x4100x19:bias:tensor",
    "7x130x600:a=bf16", "40x50x5000:a=fp16:fp32:bias=fp16", "3*5x7x11:sa=batch:sb=row", "50*1x33x65:fp32:sa=tensor:sb=batch",
    "5*300x70x30:bias", "21x40x50:lda=64:ldb=80:ldo=77:fp32", "13x29x37:precise:static:bias=bf16:fp16",
    "6*9x17x130:a=bf16:ta:tb",
};

static void matches_double(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    for (int threads = 1; threads <= 5; threads += 2) {
        fp8r_context *context = context_of(threads);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct product product = {0};
            print_message("%s, %d threads\n", cases[i], threads);
            make(&product, cases[i]);
            run_planned(context, &product.matmul, product.matmul.a.rows);
            check(&product.matmul);
            memset(product.matmul.out.data, 0xFF, product.bytes[2]);
            if (product.matmul.a.batch == 1)
                run_planned(context, &product.matmul, product.matmul.a.rows + 1500);
            else
                run_planned(context, &product.matmul, product.matmul.a.rows);
            check(&product.matmul);
            drop(&product);
        }
        fp8r_context_destroy(context);
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
    /* Sizes that no int holds are cut into blocks of sizes that one does. */
    fp8r_problem problem = {.batch = INT64_MAX / 4, .m = INT64_MAX / 4, .n = INT64_MAX / 4, .k = INT64_MAX / 4};
    struct fp8r_blas_tiling tiling;
    fp8r_blas_tiling_init(&tiling, &problem, 64);
    assert_true(tiling.bytes > 0 && tiling.bytes < (int64_t)1 << 30);
}

/* NaN in one row of a and one column of b, in the type's every code for it. */
static void contains_nan(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    static const struct {
        const char *text;
        uint8_t code;
    } lines[] = {{"21x300x600:fp32", 0x7F}, {"21x300x600", 0xFF}, {"21x300x600:a=e5m2:fp16", 0x7C}, {"1x65x5000:tb", 0x7F},
                 {"21x300x600:ta:a=e5m2:fp32", 0xFF}};
    fp8r_context *context = context_of(3);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct product product = {0};
        make(&product, lines[i].text);
        const fp8r_matmul *mm = &product.matmul;
        int64_t row = mm->a.rows / 2, col = mm->b.cols - 7, k = mm->a.cols / 2;
        memset(mm->out.data, 0, product.bytes[2]);
        for (int64_t j = 0; j < mm->b.cols; j++)
            ((uint8_t *)mm->b.data)[place(&mm->b, 0, k, j)] = 0; /* 0 * NaN is NaN, and 0 * Inf too */
        ((uint8_t *)mm->a.data)[place(&mm->a, 0, row, k)] = lines[i].code;
        ((uint8_t *)mm->b.data)[place(&mm->b, 0, 1, col)] = 0x7F;
        for (int64_t r = 0; r < mm->a.rows; r++)
            ((uint8_t *)mm->a.data)[place(&mm->a, 0, r, 1)] = 0;
        run_planned(context, mm, mm->a.rows);
        for (int64_t r = 0; r < mm->a.rows; r++)
            for (int64_t c = 0; c < mm->b.cols; c++)
                if (isnan(fp8r_load(mm->out.data, place(&mm->out, 0, r, c), mm->out.dtype)) != (r == row || c == col))
                    fail_msg("%s: NaN at row %lld, column %lld went astray", lines[i].text, (long long)r, (long long)c);
        drop(&product);
    }
    fp8r_context_destroy(context);
}

static void refuses_batch_invariance(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    fp8r_context *context = context_of(1);
    fp8r_matmul mm;
    fp8r_plan *plan;
    assert_int_equal(fp8r_matmul_parse("4x5x6:invariant", &mm), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &mm, "blas", &plan), FP8R_ERROR_UNSUPPORTED);
    assert_non_null(strstr(fp8r_last_error(), "independent of M"));
    fp8r_context_destroy(context);
}

/* ---- Threads and fork ---- */

static void *run_many(void *context)
{
    for (int i = 0; i < 20; i++) {
        struct product product = {0};
        make(&product, i % 2 ? "40x300x700:fp32" : "3x700x300:bias");
        run_planned(context, &product.matmul, product.matmul.a.rows);
        check(&product.matmul);
        drop(&product);
    }
    return NULL;
}

static int library_threads(void)
{
    fp8r_reason reason;
    const struct fp8r_blas *library = fp8r_blas_load(&reason);
    return library && library->process.get ? library->process.get() : 0;
}

static void many_callers_and_threads_restored(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    int before = library_threads();
    fp8r_context *one = context_of(2), *two = context_of(3);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, i % 2 ? one : two), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(library_threads(), before);
    fp8r_context_destroy(one);
    fp8r_context_destroy(two);
}

static void runs_after_fork(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    fp8r_context *context = context_of(2);
    run_many(context);
    int before = library_threads();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* a hang ends as a failure */
        run_many(context);
        _exit(library_threads() == before ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run_many(context);
    fp8r_context_destroy(context);
}

/* ---- Libraries ---- */

static void takes_and_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        enum fp8r_blas_verdict verdict;
    } lines[] = {{"good", FP8R_BLAS_GOOD},     {"counting", FP8R_BLAS_GOOD}, {"without", FP8R_BLAS_ABSENT},
                 {"missing", FP8R_BLAS_ABSENT}, {"wide", FP8R_BLAS_WIDE},     {"wrong", FP8R_BLAS_WRONG},
                 {"deaf", FP8R_BLAS_WRONG},     {"reading", FP8R_BLAS_WRONG}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char path[512];
        struct fp8r_blas library;
        snprintf(path, sizeof path, "%s%s.so", FP8R_FAKE_BLAS, lines[i].kind);
        if (fp8r_blas_open(path, false, &library) != lines[i].verdict)
            fail_msg("%s was judged otherwise", lines[i].kind);
    }
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        int code;
        const char *words;
    } lines[] = {{"without", FP8R_REASON_LIBRARY_MISSING, "could not be loaded"},
                 {"missing", FP8R_REASON_LIBRARY_MISSING, "could not be loaded"},
                 {"wrong", FP8R_REASON_LIBRARY_BROKEN, "computed a wrong value"},
                 {"wide", FP8R_REASON_LIBRARY_BROKEN, "an LP64 build is needed"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char path[512], subject[640], sentence[800];
        struct fp8r_blas library;
        fp8r_reason reason = {0};
        snprintf(path, sizeof path, "%s%s.so", FP8R_FAKE_BLAS, lines[i].kind);
        assert_false(fp8r_blas_choose(path, &library, subject, sizeof subject, &reason));
        fp8r_reason_sentence(&reason, sentence, sizeof sentence);
        assert_int_equal(reason.code, lines[i].code);
        assert_non_null(strstr(sentence, lines[i].words));
        assert_non_null(strstr(sentence, "FP8ROUTE_BLAS"));
    }
}

static void holds_and_restores_the_count(void **state)
{
    (void)state;
    struct fp8r_blas library;
    assert_int_equal(fp8r_blas_open(FP8R_FAKE_BLAS "counting.so", false, &library), FP8R_BLAS_GOOD);
    assert_string_equal(library.name, "openblas 9.8.7");
    assert_int_equal(library.process.get(), 3);
    fp8r_blas_hold(&library);
    fp8r_blas_hold(&library);
    assert_int_equal(library.process.get(), 1);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 1);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 3);
    /* What somebody sets in between counts. */
    fp8r_blas_hold(&library);
    library.process.set(2);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 2);
}

/* A library held at the moment of a fork is put back by the child's own next product. */
static void count_survives_fork(void **state)
{
    (void)state;
    struct fp8r_blas library;
    assert_int_equal(fp8r_blas_open(FP8R_FAKE_BLAS "counting.so", false, &library), FP8R_BLAS_GOOD);
    library.process.set(4);
    fp8r_blas_hold(&library);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fp8r_blas_hold(&library);
        bool held = library.process.get() == 1;
        fp8r_blas_release(&library);
        _exit(held && library.process.get() == 4 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    fp8r_blas_release(&library);
    assert_int_equal(library.process.get(), 4);
}

static void names_its_library(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    fp8r_reason reason;
    const char *name = fp8r_blas_load(&reason)->name;
    print_message("%s\n", name);
    assert_true(strlen(name) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_and_refuses),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(holds_and_restores_the_count),
        cmocka_unit_test(count_survives_fork),
        cmocka_unit_test(names_its_library),
        cmocka_unit_test(matches_double),
        cmocka_unit_test(workspace_never_shrinks_with_m),
        cmocka_unit_test(contains_nan),
        cmocka_unit_test(refuses_batch_invariance),
        cmocka_unit_test(many_callers_and_threads_restored),
        cmocka_unit_test(runs_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
