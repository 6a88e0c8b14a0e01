/* The cost of dispatch, in instructions: a decision for a known problem, a plan's run and a routed call on the null
 * backend. Counted by stepping through a child, so that the numbers are the same on a busy machine.
 *
 * The limits are about 1.4 times what was counted when they were set (gcc 12, -O2: 331, 539 and 1591): an allocation, a
 * lookup by text or a second validation would pass them at once. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/plan.h"
#include "support/null_backend.h"

static fp8r_context *context;
static fp8r_plan *plan;
static fp8r_matmul matmul;
static struct fp8r_product product;
static fp8r_pointers pointers;

static void decide(void)
{
    struct fp8r_plan *found;
    bool owned;
    if (fp8r_cache_find(context, &product.problem, false, &found, &owned) != FP8R_OK || !fp8r_plan_segment_at(found, matmul.a.rows))
        _exit(9);
}

static void run_plan(void)
{
    if (fp8r_plan_run(plan, &pointers, NULL, 0, NULL) != FP8R_OK)
        _exit(9);
}

static void run_routed(void)
{
    if (fp8r_scaled_mm(context, &matmul, NULL) != FP8R_OK)
        _exit(9);
}

/* The child stops itself before and behind the call; between the two stops it is stepped. -1 where that is not allowed. */
static long count(void (*call)(void))
{
    pid_t child = fork();
    int status;
    long steps = 0;
    if (child == 0) {
        call(); /* once before: what the C library does on a first call */
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(8);
        raise(SIGSTOP);
        call();
        raise(SIGSTOP);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1;
    do {
        steps++;
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child)
            return -1;
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && steps < 1000000);
    ptrace(PTRACE_KILL, child, NULL, NULL);
    waitpid(child, &status, 0);
    return steps;
}

/* What the two raises themselves take. */
static void nothing(void)
{
}

static void check(void (*call)(void), long limit, const char *name)
{
    long empty = count(nothing), steps = count(call);
    if (empty < 0 || steps < 0) {
        print_message("%s: skipped, this machine does not let a child be stepped\n", name);
        skip();
    }
    print_message("%s: %ld instructions (limit %ld)\n", name, steps - empty, limit);
    assert_true(steps - empty > 0 && steps - empty <= limit);
}

static void decision(void **state)
{
    (void)state;
    check(decide, 460, "a decision for a known problem");
}

static void plan_run(void **state)
{
    (void)state;
    check(run_plan, 750, "a plan's run on the null backend");
}

static void routed_call(void **state)
{
    (void)state;
    check(run_routed, 2230, "a routed call on the null backend");
}

static int set_up(void **state)
{
    const fp8r_backend *backends[] = {&null_backend};
    fp8r_context_options options = {.struct_size = sizeof options,
                                    .threads = 1,
                                    .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES,
                                    .backends = backends,
                                    .backend_count = 1};
    (void)state;
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context) != FP8R_OK ||
        fp8r_matmul_parse("3x64x128:bias", &matmul) != FP8R_OK)
        return -1;
    null_operands(&matmul);
    pointers = (fp8r_pointers){sizeof pointers, 3, matmul.a.data, matmul.b.data, matmul.out.data,
                               matmul.scale_a.data, matmul.scale_b.data, matmul.bias.data};
    return fp8r_product_init(&matmul, FP8R_DATA_USED, &product) == FP8R_OK &&
                   fp8r_plan_create(context, &matmul, NULL, &plan) == FP8R_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fp8r_plan_destroy(plan);
    fp8r_context_destroy(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decision),
        cmocka_unit_test(plan_run),
        cmocka_unit_test(routed_call),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
