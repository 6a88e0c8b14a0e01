/* Traces without memory: the n-th allocation fails, for every n. Linked with --wrap for the allocation functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"
#include "tune/trace_read.h"
#include "support/refusal.h"

/* Enough problems and families that everything that grows does. */
static const char *write_trace(void)
{
    const char *path = scratch_path("trace.jsonl");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 80; i++)
        (void)fprintf(file, "{\"problem\": \"%dx%dx64\", \"count\": 1, \"captured\": false, \"process\": 1, \"context\": 1}\n",
                      1 + i % 20, 16 * (1 + i / 4));
    assert_int_equal(fclose(file), 0);
    return path;
}

static void every_allocation(void **state)
{
    (void)state;
    const char *path = write_trace();
    int code = FP8R_EXIT_INTERNAL;
    for (long n = 0; code != FP8R_EXIT_GOOD; n++) {
        struct fp8r_traced traced = {0};
        struct fp8r_tune_families families = {0};
        struct fp8r_tool_error error = {0};
        assert_in_range(n, 0, 2000);
        allocations_left = n;
        code = fp8r_trace_read(&traced, &path, 1, &error);
        if (code == FP8R_EXIT_GOOD) code = fp8r_families_add_traced(&families, &traced, 3, &error);
        bool refused = allocations_left < 0;
        allocations_left = -1;
        if (code != (refused ? FP8R_EXIT_INTERNAL : FP8R_EXIT_GOOD))
            fail_msg("allocation %ld: exit code %d: %s", n, code, error.text);
        if (refused) assert_non_null(strstr(error.text, "memory"));
        if (n == 0) assert_true(refused); /* otherwise this tests nothing */
        if (!refused) assert_int_equal(families.count, 20);
        fp8r_families_fini(&families);
        fp8r_traced_fini(&traced);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
