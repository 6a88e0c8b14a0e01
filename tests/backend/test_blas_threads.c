/* Many callers of the blas backend at once, on contexts of their own and shared; the library's number of threads is put
 * back after the last.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "backend/blas_product.h"

struct caller {
    pthread_t thread;
    fp8r_context *context;
    bool good;
};

static void *call_many(void *argument)
{
    struct caller *caller = argument;
    caller->good = true;
    for (int i = 0; i < 16; i++)
        caller->good = computes(caller->context, i % 2 ? "40x300x700:fp32" : "3x700x300:bias", 0) && caller->good;
    return NULL;
}

static void many_callers(void **state)
{
    (void)state;
    NEEDS_LIBRARY();
    int before = library_threads();
    fp8r_context *contexts[] = {plain_context(2), plain_context(3)};
    struct caller callers[4];
    for (int i = 0; i < 4; i++) {
        callers[i].context = contexts[i % 2];
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < 4; i++)
        assert_true(callers[i].good);
    assert_int_equal(library_threads(), before);
    fp8r_context_destroy(contexts[0]);
    fp8r_context_destroy(contexts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_callers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
