/* Where there is no CUDA driver, or one too old, or no CUDA in this build: a context on a GPU is refused in one clear line,
 * nothing is left pending, and everything on the CPU works. Skipped where a GPU can be used.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "device/cuda.h"
#include "support/sample.h"

static bool expects_old_driver;

static void a_gpu_is_refused_in_one_line(void **state)
{
    fp8r_context *context = NULL;
    int count;
    (void)state;
    if (fp8r_cuda_count(&count) == FP8R_OK) skip();
    for (int index = 0; index < 2; index++) {
        assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, index}, NULL, &context),
                         FP8R_ERROR_UNSUPPORTED);
        const char *line = fp8r_last_error();
        print_message("%s\n", line);
        assert_memory_equal(line, "device.kind is CUDA, but ", 25);
        assert_true(strstr(line, "no CUDA code") || strstr(line, "no CUDA driver could be loaded") ||
                    strstr(line, "finds no GPU") || strstr(line, "the driver offers CUDA"));
        if (expects_old_driver) {
            assert_non_null(strstr(line, "offers CUDA 12.4"));
            assert_non_null(strstr(line, "needs CUDA 13."));
        }
    }
    assert_null(context);
}

static void the_cpu_works_all_the_same(void **state)
{
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    fp8r_context *context = NULL, *none = NULL;
    struct sample sample;
    char line[160];
    (void)state;
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, NULL, &none) == FP8R_OK) fp8r_context_destroy(none);
    assert_true(sample_init(&sample, "5x24x64:bias", SAMPLE_EXACT, 1));
    assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
    if (!sample_judge(&sample, 5, line, sizeof line)) fail_msg("%s", line);
    sample_fini(&sample);
    fp8r_context_destroy(context);
}

static void kinds_of_device_are_checked(void **state)
{
    fp8r_context *context = NULL;
    (void)state;
    assert_int_equal(fp8r_context_create((fp8r_device){7, 0}, NULL, &context), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 1}, NULL, &context),
                     FP8R_ERROR_INVALID_ARGUMENT);
    assert_null(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_refused_in_one_line),
        cmocka_unit_test(the_cpu_works_all_the_same),
        cmocka_unit_test(kinds_of_device_are_checked),
    };
    expects_old_driver = argc > 1 && strcmp(argv[1], "old") == 0;
    return cmocka_run_group_tests_name("no driver", tests, NULL, NULL);
}
