/* Allocation failure while measuring: the n-th allocation of an operation fails, for every n. Each time the
 * answer is "out of memory" (or a smaller rotation), and nothing is left behind (the leak check of an
 * address-sanitised run sees to that).
 *
 * Linked with --wrap for malloc, calloc, realloc and aligned_alloc.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/contest.h"
#include "tune/entrants.h"
#include "tune/families.h"
#include "tune/quick_routes.h"
#include "support/refusal.h"

static fp8r_context *context;
/* Everything that a protocol does with one problem. */
static int race_once(struct fp8r_tool_error *error)
{
    struct fp8r_measure_device device;
    struct fp8r_inputs inputs = {0};
    struct fp8r_rotation rotation = {0};
    struct fp8r_points entrants = {0};
    struct fp8r_contest contest = {0};
    fp8r_matmul shape;
    fp8r_measure_cpu_init(fp8r_context_device(context), &device);
    device.cache_bytes = 4096;
    assert_int_equal(fp8r_matmul_parse("3x16x24:bias", &shape), FP8R_OK);
    int code = fp8r_entrants_list(context, &entrants.entrants, &entrants.entrant_count, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_inputs_create(&shape, 1, FP8R_GUARD_BYTES, &inputs, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_rotation_load(&rotation, &device, &inputs, 4, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_contest_open(&contest, context, &entrants, NULL, &shape, &device, &rotation, &inputs, 1, error);
    for (int i = 0; code == FP8R_EXIT_GOOD && i < contest.count; i++) {
        if (contest.racers[i].standing != FP8R_STANDING_READY) continue;
        code = fp8r_contest_verify(&contest, i, &fp8r_verify_defaults, error);
        if (code == FP8R_EXIT_GOOD) code = fp8r_contest_enter(&contest, i, 1e9, error);
    }
    if (code == FP8R_EXIT_GOOD) code = fp8r_sampler_round(&contest.sampler, error);
    fp8r_contest_close(&contest);
    fp8r_rotation_fini(&rotation);
    fp8r_inputs_destroy(&inputs);
    fp8r_points_fini(&entrants);
    return code;
}

static int sampled_verification(struct fp8r_tool_error *error)
{
    struct fp8r_verify_options options = fp8r_verify_defaults;
    struct fp8r_verifier *verifier = NULL;
    struct fp8r_inputs inputs = {0};
    fp8r_matmul shape;
    options.whole_limit = 10;
    assert_int_equal(fp8r_matmul_parse("300x200x8:a=bf16", &shape), FP8R_OK);
    int code = fp8r_inputs_create(&shape, 1, FP8R_GUARD_PAGES, &inputs, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_verifier_create(&inputs.matmul, &options, &verifier, error);
    fp8r_verifier_destroy(verifier);
    fp8r_inputs_destroy(&inputs);
    return code;
}

static void ignore(void *user, const char *line)
{
    (void)user, (void)line;
}

/* From a case list to a written file. */
static int write_routes(struct fp8r_tool_error *error)
{
    static const char list[] = "/tmp/fp8route-memory-test.txt", out[] = "/tmp/fp8route-memory-test.routes";
    struct fp8r_tune_families families = {0};
    struct fp8r_quick_routes routes = {0};
    struct fp8r_entrant entrant = {"cpu", "skinny", "r1", "cpu:skinny"};
    double time = 5;
    struct fp8r_point point = {3, 0, 0, true, 1, 1, &time, 0};
    struct fp8r_points points = {&entrant, 1, &point, 1, 1};
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    assert_true(fputs("3x16x24\n5x8x8\nMx32x32\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    int code = fp8r_families_read(&families, list, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_families_set_ms(&families, NULL, 0, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_quick_routes_open(&routes, context, &families, out, error);
    for (size_t i = 0; i < families.count && code == FP8R_EXIT_GOOD; i++)
        code = fp8r_quick_routes_add(&routes, &families.items[i], &points, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_quick_routes_write(&routes, true, ignore, NULL, error);
    fp8r_quick_routes_close(&routes);
    fp8r_families_fini(&families);
    unlink(list);
    unlink(out);
    return code;
}

/* An operation may get by without what was refused; it has seen every refusal when none is met any more. */
static void fail_each_allocation(int (*operation)(struct fp8r_tool_error *), long at_least)
{
    long n = 0;
    for (bool was_refused = true; was_refused; n++) {
        struct fp8r_tool_error error = {0};
        allocations_left = n;
        int code = operation(&error);
        was_refused = allocations_left < 0;
        allocations_left = -1;
        if (code != FP8R_EXIT_GOOD && (code != FP8R_EXIT_INTERNAL || !strstr(error.text, "out of memory")))
            fail_msg("allocation %ld: exit code %d, '%s'", n, code, error.text);
        if (!was_refused) assert_int_equal(code, FP8R_EXIT_GOOD);
    }
    assert_true(n >= at_least);
}

static void racing_survives_refused_memory(void **state)
{
    (void)state;
    fail_each_allocation(race_once, 30);
}

static void verification_survives_refused_memory(void **state)
{
    (void)state;
    fail_each_allocation(sampled_verification, 8);
}

static void routes_survive_refused_memory(void **state)
{
    (void)state;
    fail_each_allocation(write_routes, 15);
}

int main(void)
{
    fp8r_context_options options = {
        .struct_size = sizeof options, .threads = 1, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(racing_survives_refused_memory),
        cmocka_unit_test(verification_survives_refused_memory),
        cmocka_unit_test(routes_survive_refused_memory),
    };
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context) != FP8R_OK) return 1;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    fp8r_context_destroy(context);
    return failures;
}
