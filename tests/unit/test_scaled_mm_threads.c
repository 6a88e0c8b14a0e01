/* The routed call under threads: one context, many callers, families planned and replaced while others run; the cache
 * stays bounded however many problems it meets.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plan.h"
#include "support/fake.h"
#include "support/rows.h"

enum { CALLERS = 6 };

static fp8r_context *context;

struct caller {
    int number;
    char fault[200];
    int (*work)(struct caller *);
};

static void *call(void *argument)
{
    struct caller *caller = argument;
    (void)caller->work(caller);
    return NULL;
}

static void all_call(int (*work)(struct caller *))
{
    struct caller callers[CALLERS] = {0};
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i].number = i;
        callers[i].work = work;
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLERS; i++)
        if (callers[i].fault[0])
            fail_msg("caller %d: %s", i, callers[i].fault);
}

static bool run_once(struct caller *caller, struct sample *sample)
{
    sample_clear(sample);
    if (fp8r_scaled_mm(context, &sample->matmul, NULL) != FP8R_OK) {
        snprintf(caller->fault, sizeof caller->fault, "%s", fp8r_last_error());
        return false;
    }
    return sample_judge(sample, sample->matmul.a.rows, caller->fault, sizeof caller->fault);
}

/* Every caller meets the same families, in another order, with growing M (so plans are replaced under the others). */
static int mixed_families(struct caller *caller)
{
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 12; i++) {
            struct sample sample;
            char text[64];
            int which = (i * 5 + caller->number * 7) % 12;
            snprintf(text, sizeof text, "%dx%dx%d%s", round == 3 ? 1100 + which : 1 + round * 9, 8 + which, 16 + which,
                     which % 3 == 0 ? ":a=bf16" : which % 3 == 1 ? ":bias:fp32" : "");
            bool good = sample_init(&sample, text, SAMPLE_EXACT, (uint64_t)caller->number) && run_once(caller, &sample);
            sample_fini(&sample);
            if (!good)
                return 1;
        }
    return 0;
}

static void callers_share_a_context(void **state)
{
    (void)state;
    context = plain_context(3);
    all_call(mixed_families);
    assert_true(context->cache.families >= 12);
    fp8r_context_destroy(context);
}

/* Field report F7: workspace is never shared by runs that overlap in time. */
static int workspace_of_its_own(struct caller *caller)
{
    struct sample sample;
    char text[64];
    snprintf(text, sizeof text, "16x24x512:a=bf16");
    bool good = sample_init(&sample, text, SAMPLE_EXACT, (uint64_t)caller->number * 77 + 1);
    for (int i = 0; good && i < 60; i++)
        good = run_once(caller, &sample);
    sample_fini(&sample);
    return !good;
}

static void f7_workspaces_are_not_shared(void **state)
{
    (void)state;
    context = plain_context(2);
    all_call(workspace_of_its_own);
    fp8r_context_destroy(context);
}

static fp8r_plan *shared_plan;

static int run_the_plan(struct caller *caller)
{
    struct sample sample;
    bool good = sample_init(&sample, "16x24x512:a=bf16", SAMPLE_EXACT, (uint64_t)caller->number + 5);
    size_t bytes = fp8r_plan_workspace(shared_plan);
    void *space = NULL;
    good = good && posix_memalign(&space, 256, bytes + 1) == 0;
    for (int64_t m = 16; good && m > 0; m -= 3) {
        fp8r_pointers pointers = sample_pointers(&sample, m);
        sample_clear(&sample);
        good = fp8r_plan_run(shared_plan, &pointers, space, bytes, NULL) == FP8R_OK &&
               sample_judge(&sample, m, caller->fault, sizeof caller->fault);
    }
    free(space);
    sample_fini(&sample);
    return !good;
}

static void one_plan_serves_many_threads(void **state)
{
    fp8r_matmul matmul;
    (void)state;
    context = plain_context(2);
    assert_int_equal(fp8r_matmul_parse("16x24x512:a=bf16", &matmul), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &matmul, NULL, &shared_plan), FP8R_OK);
    all_call(run_the_plan);
    fp8r_plan_destroy(shared_plan);
    fp8r_context_destroy(context);
}

/* last_error belongs to its thread. */
static int fail_in_its_own_way(struct caller *caller)
{
    char text[32], word[32];
    snprintf(text, sizeof text, "%dx4x4:wrong", caller->number + 10);
    snprintf(word, sizeof word, "\"%dx4x4", caller->number + 10);
    for (int i = 0; i < 200; i++) {
        fp8r_matmul matmul;
        if (fp8r_matmul_parse(text, &matmul) != FP8R_ERROR_INVALID_ARGUMENT || !strstr(fp8r_last_error(), word)) {
            snprintf(caller->fault, sizeof caller->fault, "its error became \"%.100s\"", fp8r_last_error());
            return 1;
        }
    }
    return 0;
}

static void errors_belong_to_their_thread(void **state)
{
    (void)state;
    all_call(fail_in_its_own_way);
}

/* Plans that are still alive, and those that were ever made. */
static struct fake fake;

static fp8r_context *context_of_fake(void)
{
    static fp8r_backend of_fake;
    static const fp8r_backend *const backends[] = {&of_fake};
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1, .backends = backends, .backend_count = 1,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    fp8r_context *made = NULL;
    memset(&fake, 0, sizeof fake);
    of_fake = fake_backend(&fake, "fake", 1000);
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &made), FP8R_OK);
    return made;
}

static fp8r_matmul product_of(int64_t m, int64_t n)
{
    static uint8_t a[1000000], b[1 << 16];
    static uint16_t out[1000000];
    fp8r_matmul matmul = {.struct_size = sizeof matmul};
    matmul.a = (fp8r_matrix){a, FP8R_DTYPE_E4M3, 0, 1, m, 1, 0, 1, 1};
    matmul.b = (fp8r_matrix){b, FP8R_DTYPE_E4M3, 0, 1, 1, n, 0, 1, 1};
    matmul.out = (fp8r_matrix){out, FP8R_DTYPE_BF16, 0, 1, m, n, 0, n, 1};
    return matmul;
}

/* Field report G6: a million different M make a handful of plans. */
static void g6_a_million_rows_make_few_plans(void **state)
{
    (void)state;
    context = context_of_fake();
    for (int64_t m = 1; m <= 1000000; m++) {
        fp8r_matmul matmul = product_of(m, 1);
        if (fp8r_scaled_mm(context, &matmul, NULL) != FP8R_OK)
            fail_msg("M=%lld: %s", (long long)m, fp8r_last_error());
    }
    assert_int_equal(fake.runs, 1000000);
    assert_int_equal(context->cache.families, 1);
    assert_in_range(fake.prepared, 1, 16);
    fp8r_context_destroy(context);
    assert_int_equal(fake.prepared, fake.destroyed);
}

/* More families than the cache holds: those beyond are planned for the call and freed with it. */
static void the_cache_is_bounded(void **state)
{
    enum { FAMILIES = FP8R_CACHE_FAMILIES + 500 };
    (void)state;
    context = context_of_fake();
    for (int round = 0; round < 2; round++)
        for (int64_t n = 1; n <= FAMILIES; n++) {
            fp8r_matmul matmul = product_of(1, n);
            if (fp8r_scaled_mm(context, &matmul, NULL) != FP8R_OK)
                fail_msg("N=%lld: %s", (long long)n, fp8r_last_error());
        }
    assert_int_equal(context->cache.families, FP8R_CACHE_FAMILIES);
    assert_int_equal(fake.prepared, FAMILIES + 500);
    assert_int_equal(fake.prepared - fake.destroyed, FP8R_CACHE_FAMILIES);
    fp8r_context_destroy(context);
    assert_int_equal(fake.prepared, fake.destroyed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_share_a_context),
        cmocka_unit_test(f7_workspaces_are_not_shared),
        cmocka_unit_test(one_plan_serves_many_threads),
        cmocka_unit_test(errors_belong_to_their_thread),
        cmocka_unit_test(g6_a_million_rows_make_few_plans),
        cmocka_unit_test(the_cache_is_bounded),
    };
    return cmocka_run_group_tests_name("scaled_mm threads", tests, NULL, NULL);
}
