/* The reading speed is a limit: it is that of an undisturbed moment, also while other work runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/read_speed.h"

enum { BYTES = 512 << 20, LOADS = 3 };

static atomic_bool is_over;

/* Reads memory of its own, so that it takes a processor and bandwidth. */
static void *load(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_over))
        (void)fp8r_read_speed_gbs(BYTES / 8, 1);
    return NULL;
}

static void load_does_not_lower_the_limit(void **state)
{
    (void)state;
    pthread_t threads[LOADS];
    double alone = fp8r_read_speed_gbs(BYTES, 1);
    for (int i = 0; i < LOADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load, NULL), 0);
    double loaded = fp8r_read_speed_gbs(BYTES, 1);
    atomic_store(&is_over, true);
    for (int i = 0; i < LOADS; i++)
        pthread_join(threads[i], NULL);
    print_message("%.1f GB/s alone, %.1f GB/s beside other work\n", alone, loaded);
    assert_true(alone > 0);
    assert_true(loaded >= 0.6 * alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(load_does_not_lower_the_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
