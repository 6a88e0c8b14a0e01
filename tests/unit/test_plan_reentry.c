/* A backend that asks its own context for a product while it is asked whether it takes one: a line, not a wait without end.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/context.h"
#include "support/fake.h"
#include "support/rows.h"

static struct fake fake;
static fp8r_context *context;
static fp8r_status answer;
static char words[200];
static bool (*takes)(void *, const fp8r_device_facts *, const fp8r_problem *, int, fp8r_reason *);

static bool asks(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config, fp8r_reason *reason)
{
    struct sample sample;
    assert_true(sample_init(&sample, "3x8x16:fp32", SAMPLE_EXACT, 1));
    answer = fp8r_scaled_mm(context, &sample.matmul, NULL);
    snprintf(words, sizeof words, "%s", fp8r_last_error());
    sample_fini(&sample);
    return takes(user, device, problem, config, reason);
}

static void a_product_inside_a_decision_is_refused(void **state)
{
    (void)state;
    struct sample sample;
    fake = (struct fake){.mark = 3.0f};
    fp8r_backend backend = fake_backend(&fake, "asks", 1000);
    takes = backend.supports;
    backend.supports = asks;
    const fp8r_backend *const backends[] = {&backend};
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1, .backends = backends,
        .backend_count = 1, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    assert_true(sample_init(&sample, "3x8x16:fp32", SAMPLE_EXACT, 1));
    assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
    assert_int_equal(answer, FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(words, "asks for a product while it is asked"));
    assert_true(fake.runs == 1);
    backend.supports = takes; /* the lock is free again */
    assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
    sample_fini(&sample);
    fp8r_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_product_inside_a_decision_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
