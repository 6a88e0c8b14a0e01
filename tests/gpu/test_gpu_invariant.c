/* Batch-invariant mode (field report H1): a row's bits are the same whatever M is and wherever the row stands, for M from 1 to
 * 300 and at random up to 20,000, by the routes and by every row that promises it. Results are compared whole, on the device.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gpu_sample.h"
#include "gpu_whole.h"

enum { ROWS = 20000, EVERY = 300, RANDOM = 40, STEP = 64 /* rows keep the alignment that was planned */ };

static fp8r_context *context;
static long runs;

struct subject {
    struct gpu_whole whole;
    const char *text, *backend;
    fp8r_plan *plan;
    void *part; /* out of fewer rows */
};

/* Rows start .. start + m - 1 alone, against the same rows of the whole. */
static void check_rows(struct subject *it, int64_t start, int64_t m)
{
    const int64_t row_bytes = (int64_t)it->whole.out_bytes / ROWS, bytes = m * row_bytes;
    gpu_check("cudaMemsetAsync", cudaMemsetAsync(it->part, 0xFF, (size_t)bytes, it->whole.stream));
    gpu_whole_run(&it->whole, it->plan, start, m, it->part);
    gpu_check("compare", gpu_bits_compare(it->part, (const char *)it->whole.matmul.out.data + start * row_bytes, bytes,
                                          it->whole.difference, it->whole.stream));
    const struct gpu_difference found = gpu_whole_difference(&it->whole);
    if (found.count > 0)
        fail_msg("%s on %s: rows %lld to %lld alone (%s) differ in %llu bytes from those of %d rows (%s), first in row %lld",
                 it->text, it->backend ? it->backend : "the routes", (long long)start, (long long)(start + m - 1),
                 fp8r_plan_backend(it->plan, m), found.count, (int)ROWS, fp8r_plan_backend(it->plan, ROWS),
                 (long long)start + (long long)found.first / row_bytes);
    runs++;
}

static bool check_backend(struct subject *it, const char *backend)
{
    uint64_t random = 1;
    it->backend = backend;
    it->plan = gpu_whole_plan(&it->whole, context, backend);
    if (!it->plan) return false;
    gpu_whole_poison(&it->whole, it->whole.matmul.out.data);
    gpu_whole_run(&it->whole, it->plan, 0, ROWS, it->whole.matmul.out.data);
    for (int64_t m = 1; m <= EVERY; m++)
        check_rows(it, 0, m);
    for (int i = 0; i < RANDOM; i++) {
        const int64_t m = 1 + (int64_t)(sample_random(&random) % ROWS);
        check_rows(it, (int64_t)(sample_random(&random) % (uint64_t)(ROWS - m + 1)) / STEP * STEP, m);
    }
    fp8r_plan_destroy(it->plan);
    return true;
}

static void check(const char *text)
{
    struct subject it = {.text = text};
    gpu_whole_init(&it.whole, text, true, 5);
    gpu_check("cudaMalloc", cudaMalloc(&it.part, it.whole.out_bytes));
    assert_true(check_backend(&it, NULL));
    const int promised = check_backend(&it, "sm90") + check_backend(&it, "cuda");
    assert_true(promised > 0);
    gpu_check("cudaFree", cudaFree(it.part));
    gpu_whole_fini(&it.whole);
}

static void deep_and_narrow(void **state)
{
    (void)state;
    check("20000x512x4096:invariant");
}

static void shallow_and_wide(void **state)
{
    (void)state;
    check("20000x2048x512:invariant:static");
}

static void promoted(void **state)
{
    (void)state;
    check("20000x256x2048:invariant:precise:fp32");
}

static void ragged(void **state)
{
    (void)state;
    check("20000x328x1280:invariant:fp16");
}

/* Unrestricted routes need not keep a row's bits, and here they do not: what the mode is for, and what these tests would see. */
static void the_comparison_sees_a_difference(void **state)
{
    struct gpu_whole whole;
    (void)state;
    gpu_whole_init(&whole, "64x512x4096", true, 5);
    fp8r_plan *plan = gpu_whole_plan(&whole, context, NULL);
    gpu_whole_run(&whole, plan, 0, 64, whole.matmul.out.data);
    gpu_check("cudaMemsetAsync", cudaMemsetAsync((char *)whole.matmul.out.data + 1000, 0x55, 1, whole.stream));
    void *again;
    gpu_check("cudaMalloc", cudaMalloc(&again, whole.out_bytes));
    gpu_whole_run(&whole, plan, 0, 64, again);
    gpu_check("compare", gpu_bits_compare(again, whole.matmul.out.data, (int64_t)whole.out_bytes, whole.difference,
                                          whole.stream));
    const struct gpu_difference found = gpu_whole_difference(&whole);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.first / 8, 125); /* counted in words where both are aligned */
    gpu_check("cudaFree", cudaFree(again));
    fp8r_plan_destroy(plan);
    gpu_whole_fini(&whole);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_comparison_sees_a_difference), cmocka_unit_test(deep_and_narrow),
        cmocka_unit_test(shallow_and_wide), cmocka_unit_test(promoted), cmocka_unit_test(ragged)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    (void)gpu_facts();
    context = gpu_routed_context();
    const int failed = cmocka_run_group_tests_name("batch-invariant mode on a GPU", tests, NULL, NULL);
    fp8r_context_destroy(context);
    printf("%ld results\n", runs);
    return failed;
}
