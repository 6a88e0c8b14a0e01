/* Products of more than 2^31 elements in a, in b or in out, more rows and matrices than a grid's y and z hold (field reports
 * E1, E3): each row that takes one, against the portable row's fp32 result rounded once, whole, on the device. Data are small
 * integers, so that every order of addition gives the same sums. What does not fit into the device's memory is left out, by
 * name.
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

static fp8r_context *context;

/* What the portable row computes, as fp32, of the very operands of `it`. */
static float *portable_result(struct gpu_whole *it)
{
    fp8r_matmul matmul = it->matmul;
    fp8r_plan *plan = NULL;
    float *wanted = NULL;
    gpu_check("cudaMalloc", cudaMalloc((void **)&wanted, it->out_bytes * 2));
    gpu_check("cudaMemsetAsync", cudaMemsetAsync(wanted, 0xFF, it->out_bytes * 2, it->stream));
    matmul.out.dtype = FP8R_DTYPE_FP32;
    matmul.out.data = wanted;
    if (fp8r_plan_create(context, &matmul, "cuda", &plan) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    gpu_whole_run(it, plan, 0, matmul.a.rows, wanted);
    gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(it->stream));
    fp8r_plan_destroy(plan);
    return wanted;
}

static int check_backend(struct gpu_whole *it, const char *text, const char *backend, const float *wanted)
{
    fp8r_plan *plan = gpu_whole_plan(it, context, backend);
    const int64_t m = it->matmul.a.rows, count = (int64_t)it->out_bytes / 2;
    if (!plan) return 0;
    gpu_whole_poison(it, it->matmul.out.data);
    gpu_whole_run(it, plan, 0, m, it->matmul.out.data);
    gpu_check("compare",
              gpu_bits_compare_rounded(wanted, it->matmul.out.data, 1, count, it->difference, it->stream));
    const struct gpu_difference found = gpu_whole_difference(it);
    if (found.count > 0)
        fail_msg("%s on %s: %llu of %lld elements are wrong, the first is number %llu", text, fp8r_plan_backend(plan, m),
                 found.count, (long long)count, found.first);
    print_message("%s on %s: all %lld elements\n", text, fp8r_plan_backend(plan, m), (long long)count);
    fp8r_plan_destroy(plan);
    return 1;
}

static void check(const char *text, size_t needed_bytes)
{
    static const char *const backends[] = {NULL, "sm90", "cublaslt", "cuda"};
    struct gpu_whole it;
    size_t free_bytes, total_bytes;
    gpu_check("cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes < needed_bytes) {
        print_message("skipped: %s needs %zu bytes, %zu are free\n", text, needed_bytes, free_bytes);
        skip();
    }
    gpu_whole_init(&it, text, false, 11);
    float *wanted = portable_result(&it);
    int taken = 0;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        taken += check_backend(&it, text, backends[i], wanted);
    assert_true(taken >= 2);
    gpu_check("cudaFree", cudaFree(wanted));
    gpu_whole_fini(&it);
}

static void e1_large_a(void **state)
{
    (void)state;
    check("1048640x16x2064", (size_t)4 << 30);
}

static void e1_large_b(void **state)
{
    (void)state;
    check("17x1048640x2064:static", (size_t)4 << 30);
}

static void e1_large_out(void **state)
{
    (void)state;
    check("65600x32800x64", (size_t)16 << 30);
}

static void e3_many_rows(void **state)
{
    (void)state;
    check("1048577x16x32", (size_t)1 << 30);
    check("262145x32x16:tensor", (size_t)1 << 30);
}

static void e3_many_matrices(void **state)
{
    (void)state;
    check("65537*16x16x32:sa=batch:sb=batch", (size_t)1 << 30);
    check("65537*3x32x48:tensor", (size_t)1 << 30);
    check("65537*3x32x132:tensor", (size_t)2 << 30); /* rows that are copied in front */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(e1_large_a), cmocka_unit_test(e1_large_b),
                                       cmocka_unit_test(e1_large_out), cmocka_unit_test(e3_many_rows),
                                       cmocka_unit_test(e3_many_matrices)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    (void)gpu_facts();
    context = gpu_routed_context();
    const int failed = cmocka_run_group_tests_name("huge products on a GPU", tests, NULL, NULL);
    fp8r_context_destroy(context);
    return failed;
}
