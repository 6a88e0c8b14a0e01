/* The gate and compare without memory: the n-th allocation fails, for every n. Linked with --wrap for
 * the allocation functions. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/refusal.h"
#include "tune/compare.h"
#include "tune/gate.h"

static fp8r_context *context;
static struct fp8r_measure_device device;

static int open_context(void **state)
{
    (void)state;
    const fp8r_context_options options = {
        .struct_size = sizeof options, .threads = 1, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    if (fp8r_context_create((fp8r_device){0}, &options, &context) != FP8R_OK) return 1;
    fp8r_measure_cpu_init(fp8r_context_device(context), &device);
    device.cache_bytes = 4096; /* two sets of operands are enough here */
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    fp8r_context_destroy(context);
    return 0;
}

/* Runs it with the n-th allocation refused, for every n, until there is no n-th one. */
static void refuse_each(int (*run)(struct fp8r_tool_error *error))
{
    struct fp8r_tool_error error;
    long refused = 0;
    assert_int_equal(run(&error), FP8R_EXIT_GOOD);
    for (bool is_through = false; !is_through; refused++) {
        error = (struct fp8r_tool_error){0};
        allocations_left = refused;
        int code = run(&error);
        is_through = allocations_left >= 0;
        allocations_left = -1;
        if (code == FP8R_EXIT_GOOD) continue;
        if (code != FP8R_EXIT_INTERNAL) fail_msg("allocation %ld: code %d, %s", refused, code, error.text);
        assert_true(error.text[0] != '\0');
    }
    assert_true(refused > 3);
}

/* ---- compare ---- */

static int compare_once(struct fp8r_tool_error *error)
{
    struct compare compare = {.context = context,
                              .device = &device,
                              .a = "reference",
                              .b = "reference",
                              .margin = 0.5,
                              .wants_bits = true,
                              .wants_time = true};
    struct compare_case it;
    fp8r_matmul matmul;
    int code = fp8r_matmul_parse("2x4x4", &matmul) == FP8R_OK ? FP8R_EXIT_GOOD : FP8R_EXIT_INTERNAL;
    if (code == FP8R_EXIT_GOOD) code = compare_run(&compare, &matmul, &it, error);
    if (code == FP8R_EXIT_GOOD) assert_int_equal(it.bits.different, 0);
    compare_fini(&compare);
    return code;
}

static void compare_refuses(void **state)
{
    (void)state;
    refuse_each(compare_once);
}

/* ---- gate ---- */

static void ignore_progress(void *user, const struct fp8r_progress *progress)
{
    (void)user, (void)progress;
}

static void ignore_note(void *user, const char *line)
{
    (void)user, (void)line;
}

static struct fp8r_segment segment = {.m_first = 1,
                                      .m_last = 1,
                                      .backend = "reference",
                                      .config = "double",
                                      .median_us = 1,
                                      .runner_up = "cpu:portable_skinny"};
static struct fp8r_entry entry = {.key = {.batch = 1,
                                          .n = 4,
                                          .k = 16,
                                          .dtype_a = FP8R_DTYPE_E4M3,
                                          .dtype_b = FP8R_DTYPE_E4M3,
                                          .dtype_out = FP8R_DTYPE_FP32,
                                          .scale_a = FP8R_SCALE_ROW,
                                          .scale_b = FP8R_SCALE_ROW,
                                          .align_bytes = 16},
                                  .segment_count = 1,
                                  .segments = &segment};

static int gate_once(struct fp8r_tool_error *error)
{
    const struct fp8r_route_file file = {.table = {.entries = &entry, .count = 1}},
                                 header = {.is_cold = true};
    const struct fp8r_table_report report = {.fits = true};
    struct record record;
    struct gate_routes routes;
    int code = record_open(&record, NULL, "", &header, 0, 0.02, error);
    if (code != FP8R_EXIT_GOOD) return code;
    struct gate gate = {.context = context,
                        .device = &device,
                        .record = &record,
                        .margin = 0.5,
                        .progress = ignore_progress,
                        .note = ignore_note};
    const struct fp8r_tune_families families = {0};
    const struct gate_wanted wanted = {.families = &families, .shard = 1, .shards = 1, .share = 1};
    code = gate_routes_init(&file, &report, &wanted, 0, &routes, error);
    if (code == FP8R_EXIT_GOOD) {
        code = gate_measure(&gate, &routes, error);
        if (code == FP8R_EXIT_GOOD && allocations_left < 0)
            assert_int_not_equal(routes.items[0].verdict, GATE_LEFT);
        gate_routes_fini(&routes);
    }
    (void)record_close(&record, NULL);
    return code;
}

static void gate_refuses(void **state)
{
    (void)state;
    refuse_each(gate_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(compare_refuses), cmocka_unit_test(gate_refuses)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
