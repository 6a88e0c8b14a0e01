/* Allocation failure at every allocation of every public call: the n-th is refused, for every n. The call answers
 * OUT_OF_MEMORY (or does without what it could not get, and is right), nothing is left behind (the leak check of an
 * address-sanitised run sees to that), and the same call works afterwards.
 *
 * Linked with --wrap for malloc, calloc, realloc, posix_memalign, strdup and realpath.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/context.h"
#include "route/route_file.h"
#include "support/fake.h"
#include "support/rows.h"

/* Counts down to the refusal; negative: none is due. */
static _Atomic long allocations_left = -1;
static _Atomic long refusals;

static bool refuses(void)
{
    if (atomic_load(&allocations_left) < 0 || atomic_fetch_sub(&allocations_left, 1) != 0)
        return false;
    atomic_fetch_add(&refusals, 1);
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
int __real_posix_memalign(void **memory, size_t align, size_t bytes);
char *__real_strdup(const char *text);
char *__real_realpath(const char *path, char *resolved);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t align, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_realpath(const char *path, char *resolved);

void *__wrap_malloc(size_t bytes)
{
    return refuses() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return refuses() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return refuses() ? NULL : __real_realloc(memory, bytes);
}

int __wrap_posix_memalign(void **memory, size_t align, size_t bytes)
{
    return refuses() ? ENOMEM : __real_posix_memalign(memory, align, bytes);
}

char *__wrap_strdup(const char *text)
{
    return refuses() ? NULL : __real_strdup(text);
}

char *__wrap_realpath(const char *path, char *resolved)
{
    return refuses() ? NULL : __real_realpath(path, resolved);
}

/* ---- What is called ---- */

static char routes_path[] = "/tmp/fp8r-test-refused-XXXXXX";
static fp8r_context *shared;
static struct sample sample;
static struct fake fake;

static fp8r_status make_context(fp8r_context **context)
{
    static fp8r_backend of_fake;
    static const fp8r_backend *const backends[] = {&of_fake};
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 2, .routes = routes_path,
                                          .backends = backends, .backend_count = 1};
    of_fake = fake_backend(&fake, "fake", 1);
    return fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, context);
}

static fp8r_status create_a_context(void)
{
    fp8r_context *context = NULL;
    fp8r_status status = make_context(&context);
    if (status != FP8R_OK)
        assert_null(context);
    fp8r_context_destroy(context);
    return status;
}

static fp8r_status create_a_plan(void)
{
    fp8r_plan *plan = NULL;
    fp8r_status status = fp8r_plan_create(shared, &sample.matmul, NULL, &plan);
    if (status != FP8R_OK)
        assert_null(plan);
    fp8r_plan_destroy(plan);
    return status;
}

static fp8r_status create_a_plan_of_cpu(void)
{
    fp8r_plan *plan = NULL;
    fp8r_status status = fp8r_plan_create(shared, &sample.matmul, "cpu", &plan);
    fp8r_plan_destroy(plan);
    return status;
}

static fp8r_status explain(void)
{
    fp8r_explanation *explanation = NULL;
    fp8r_status status = fp8r_explain(shared, &sample.matmul, &explanation);
    if (status != FP8R_OK)
        assert_null(explanation);
    fp8r_explanation_destroy(explanation);
    return status;
}

static bool is_right(void)
{
    char line[160];
    long left = atomic_exchange(&allocations_left, -1); /* judging allocates, too */
    bool right = sample_judge(&sample, sample.matmul.a.rows, line, sizeof line);
    atomic_store(&allocations_left, left);
    return right;
}

/* A family that the context has not met: a fresh context each time, made without refusals. */
static fp8r_status multiply(void)
{
    fp8r_context *context = NULL;
    long left = atomic_exchange(&allocations_left, -1);
    assert_int_equal(make_context(&context), FP8R_OK);
    sample_clear(&sample);
    atomic_store(&allocations_left, left);
    fp8r_status status = fp8r_scaled_mm(context, &sample.matmul, NULL);
    if (status == FP8R_OK)
        assert_true(is_right());
    left = atomic_exchange(&allocations_left, -1);
    sample_clear(&sample);
    assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK); /* the same context goes on */
    assert_true(is_right());
    fp8r_context_destroy(context);
    atomic_store(&allocations_left, left);
    return status;
}

static fp8r_status quantize(void)
{
    static float in[64 * 33], scale[64];
    static uint8_t out[64 * 33];
    const fp8r_matrix m_in = {in, FP8R_DTYPE_FP32, 0, 1, 64, 33, 0, 33, 1}, m_out = {out, FP8R_DTYPE_E4M3, 0, 1, 64, 33, 0, 33, 1};
    const fp8r_matrix m_scale = {scale, FP8R_DTYPE_FP32, 0, 1, 64, 1, 0, 1, 1};
    return fp8r_quantize(shared, &m_in, &m_out, &m_scale, FP8R_SCALING_COMPUTE, NULL);
}

/* Refuses the n-th allocation, for n = 0, 1, ... until the call gets by without reaching it. */
static void refuse_each(const char *what, fp8r_status (*call)(void), long at_least)
{
    long n = 0, without = 0;
    for (;; n++) {
        long before = atomic_load(&refusals);
        atomic_store(&allocations_left, n);
        fp8r_status status = call();
        atomic_store(&allocations_left, -1);
        bool refused = atomic_load(&refusals) != before;
        if (!refused) {
            assert_int_equal(status, FP8R_OK);
            break;
        }
        without += status == FP8R_OK;
        if (status != FP8R_OK && (status != FP8R_ERROR_OUT_OF_MEMORY || !strstr(fp8r_last_error(), "out of memory")))
            fail_msg("%s, allocation %ld: %s, \"%s\"", what, n, fp8r_status_name(status), fp8r_last_error());
        assert_int_equal(call(), FP8R_OK);
    }
    print_message("%s: %ld allocations, %ld of them dispensable\n", what, n, without);
    assert_true(n >= at_least);
}

static void contexts_survive(void **state)
{
    (void)state;
    refuse_each("context_create", create_a_context, 8);
}

static void plans_survive(void **state)
{
    (void)state;
    refuse_each("plan_create", create_a_plan, 2);
    refuse_each("plan_create cpu", create_a_plan_of_cpu, 2);
}

static void explanations_survive(void **state)
{
    (void)state;
    refuse_each("explain", explain, 4);
}

static void products_survive(void **state)
{
    static const char *const texts[] = {"5x24x40:bias", "40x96x80:a=bf16", "3x17x33:ta:tb:fp32"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        sample_fini(&sample);
        assert_true(sample_init(&sample, texts[i], SAMPLE_EXACT, 3));
        refuse_each(texts[i], multiply, 3);
    }
}

static void quantising_survives(void **state)
{
    (void)state;
    refuse_each("quantize", quantize, 0);
}

static int setup(void **state)
{
    struct fp8r_identity identity;
    char facts[FP8R_IDENTITY_BYTES];
    (void)state;
    int descriptor = mkstemp(routes_path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    shared = plain_context(2);
    fp8r_identity_init(&shared->device, &shared->registry, &identity);
    fp8r_identity_format(&identity, facts);
    fp8r_context_destroy(shared);
    fprintf(file, "fp8route-routes 1\ndevice cpu\nidentity %s\nprotocol full mode=eager operands=cold\n"
                  "entry Mx24x40:bias\n  m=1..8 backend=reference config=double rev=1 median_us=1 verdict=clear\nend entries=1\n", facts);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(make_context(&shared), FP8R_OK);
    assert_true(sample_init(&sample, "50x24x40:bias", SAMPLE_EXACT, 3));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sample_fini(&sample);
    fp8r_context_destroy(shared);
    return unlink(routes_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_survive),   cmocka_unit_test(plans_survive),       cmocka_unit_test(explanations_survive),
        cmocka_unit_test(products_survive),   cmocka_unit_test(quantising_survives),
    };
    return cmocka_run_group_tests_name("refused allocations", tests, setup, teardown);
}
