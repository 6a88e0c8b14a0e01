/* A fork while another thread plans: the child must be able to plan, and so must a child of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "support/child.h"
#include "support/fake.h"

static _Atomic bool is_preparing, may_prepare;

/* Prepares when it may, so that the cache's lock is held as long as the test likes. */
static fp8r_status prepare_late(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                                const fp8r_problem *problem, int config, void **state)
{
    (void)user, (void)services, (void)device, (void)problem, (void)config, (void)state;
    atomic_store(&is_preparing, true);
    while (!atomic_load(&may_prepare))
        sched_yield();
    return FP8R_OK;
}

/* One product with n columns: another n is another family, which has to be planned. */
static fp8r_status multiply(fp8r_context *context, int64_t n)
{
    static const unsigned char a[16], b[64 * 16];
    float out[64] = {0};
    fp8r_matmul matmul = {.struct_size = sizeof matmul,
                          .a = {(void *)(uintptr_t)a, FP8R_DTYPE_E4M3, 0, 1, 1, 16, 16, 16, 1},
                          .b = {(void *)(uintptr_t)b, FP8R_DTYPE_E4M3, 0, 1, 16, n, 16 * n, 1, 16},
                          .out = {out, FP8R_DTYPE_FP32, 0, 1, 1, n, n, n, 1}};
    return fp8r_scaled_mm(context, &matmul, NULL);
}

static void *plan_in_a_thread(void *context)
{
    return multiply(context, 8) == FP8R_OK ? NULL : context;
}

/* 0 where the child multiplies; a child that waits for ever is ended by its alarm. */
static int in_child(fp8r_context *context, int depth)
{
    pid_t child = child_begin(20);
    if (child == 0) {
        atomic_store(&may_prepare, true);
        int bad = multiply(context, 16 + depth) != FP8R_OK || (depth > 0 && in_child(context, depth - 1) != 0);
        fp8r_context_destroy(context);
        _exit(bad);
    }
    return child_end(child);
}

static void a_child_plans_though_its_parent_was_planning(void **state)
{
    struct fake fake = {.mark = 1.0f};
    fp8r_backend backend = fake_backend(&fake, "late", 99);
    const fp8r_backend *list[] = {&backend};
    fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES,
                                    .threads = 1, .backends = list, .backend_count = 1};
    fp8r_context *context;
    pthread_t thread;
    void *failed;
    (void)state;
    backend.prepare = prepare_late;
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    assert_int_equal(pthread_create(&thread, NULL, plan_in_a_thread, context), 0);
    while (!atomic_load(&is_preparing))
        sched_yield();
    assert_int_equal(in_child(context, 1), 0);
    atomic_store(&may_prepare, true);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(multiply(context, 8), FP8R_OK);
    fp8r_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_plans_though_its_parent_was_planning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
