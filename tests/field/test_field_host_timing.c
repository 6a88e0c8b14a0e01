/* Field reports I6 and I7: what a call costs beside the product, and what the first one costs (docs/field-reports.md). The
 * bounds are many times what is measured on a quiet machine: they catch a search or an allocation on the path, not noise.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "support/fake.h"
#include "support/rows.h"

enum { FAMILIES = 1000, ROUNDS = 9 };

static double now_us(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time); /* other programs' load does not count */
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static fp8r_matmul product_of(int64_t n)
{
    static uint8_t a[16], b[16 * (FAMILIES + 1)];
    static uint16_t out[FAMILIES + 1];
    fp8r_matmul matmul = {.struct_size = sizeof matmul};
    matmul.a = (fp8r_matrix){a, FP8R_DTYPE_E4M3, 0, 1, 1, 16, 0, 16, 1};
    matmul.b = (fp8r_matrix){b, FP8R_DTYPE_E4M3, 0, 1, 16, n, 0, 1, 16};
    matmul.out = (fp8r_matrix){out, FP8R_DTYPE_BF16, 0, 1, 1, n, 0, n, 1};
    return matmul;
}

/* The best of several rounds over all families, a call: only a cost that is always there remains. */
static double best_call_us(fp8r_context *context)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();
        for (int64_t n = 1; n <= FAMILIES; n++) {
            fp8r_matmul matmul = product_of(n);
            assert_int_equal(fp8r_scaled_mm(context, &matmul, NULL), FP8R_OK);
        }
        double each = (now_us() - start) / FAMILIES;
        best = each < best ? each : best;
    }
    return best;
}

/* A thousand alternating shapes on a backend that does nothing: validation, decision and call alone. */
static void i6_a_warm_call_costs_little(void **state)
{
    static struct fake fake;
    const fp8r_backend of_fake = fake_backend(&fake, "fake", 1000);
    const fp8r_backend *const backends[] = {&of_fake};
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1, .backends = backends, .backend_count = 1,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    fp8r_context *context;
    (void)state;
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    double us = best_call_us(context);
    print_message("a warm routed call: %.3f us\n", us);
    assert_true(us < 5.0);
    assert_int_equal(fake.prepared, FAMILIES); /* each family was planned once */
    fp8r_context_destroy(context);
}

static void i7_the_first_call_is_not_far_from_the_second(void **state)
{
    (void)state;
    double start = now_us();
    fp8r_context *context = plain_context(2);
    fp8r_matmul matmul = product_of(64);
    assert_int_equal(fp8r_scaled_mm(context, &matmul, NULL), FP8R_OK);
    double first = now_us() - start;
    print_message("context and first call: %.0f us\n", first);
    assert_true(first < 300e3);
    for (int64_t m = 2; m <= 300; m++) { /* no new M compiles, plans or searches anything */
        struct sample sample;
        assert_true(sample_init(&sample, "300x24x32", SAMPLE_EXACT, 1));
        sample.matmul.a.rows = sample.matmul.out.rows = sample.matmul.scale_a.rows = m;
        start = now_us();
        assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
        assert_true(now_us() - start < 100e3);
        sample_fini(&sample);
    }
    fp8r_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i6_a_warm_call_costs_little),
        cmocka_unit_test(i7_the_first_call_is_not_far_from_the_second),
    };
    return cmocka_run_group_tests_name("field reports I", tests, NULL, NULL);
}
