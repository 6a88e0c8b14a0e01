/* Allocation failure in the routes: the n-th allocation of an operation fails, for every n. Each time the answer is "out
 * of memory", results stay as they were, and nothing is left behind (the leak check of an address-sanitised run sees to
 * that).
 *
 * Linked with --wrap for malloc, calloc, realloc and aligned_alloc.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "route/search.h"
#include "route_sample.h"
#include "scratch.h"
#include "tune/route_check.h"
#include "support/refusal.h"

static const char sample[] = SAMPLE_TEXT;

/* The same operation with its 1st, 2nd, ... allocation refused, until it needs no more. */
static void with_every_refusal(fp8r_status (*operation)(void))
{
    fp8r_status status = FP8R_ERROR_OUT_OF_MEMORY;
    for (long n = 0; status != FP8R_OK; n++) {
        assert_in_range(n, 0, 1000);
        allocations_left = n;
        status = operation();
        bool refused = allocations_left < 0;
        allocations_left = -1;
        assert_int_equal(status, refused ? FP8R_ERROR_OUT_OF_MEMORY : FP8R_OK);
        if (n == 0)
            assert_true(refused); /* otherwise this tests nothing */
    }
}

static fp8r_status parse(void)
{
    struct fp8r_route_file file = {.fact_count = 99};
    fp8r_status status = fp8r_route_file_parse("sample", sample, sizeof sample - 1, &file);
    if (status == FP8R_OK)
        fp8r_route_file_fini(&file);
    else
        assert_int_equal(file.fact_count, 99);
    return status;
}

static fp8r_status read_file(void)
{
    struct fp8r_route_file file;
    fp8r_status status = fp8r_route_file_read(scratch_path("read.routes"), &file);
    if (status == FP8R_OK)
        fp8r_route_file_fini(&file);
    return status;
}

static struct fp8r_route_file written;

static fp8r_status format(void)
{
    char *text = NULL;
    fp8r_status status = fp8r_route_file_format(&written, &text);
    assert_int_equal(status == FP8R_OK, text != NULL);
    free(text);
    return status;
}

static fp8r_status write_file(void)
{
    fp8r_status status = fp8r_route_file_write(scratch_path("out/x.routes"), &written);
    assert_int_equal(scratch_count(scratch_path("out")) == 1, status == FP8R_OK);
    return status;
}

static fp8r_status load(void)
{
    static const struct fp8r_log quiet = {0};
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table = {.file_count = 55};
    char named[SCRATCH_BYTES], home[SCRATCH_BYTES];
    (void)snprintf(named, sizeof named, "%s", scratch_path("read.routes"));
    (void)snprintf(home, sizeof home, "%s", scratch_root);
    const struct fp8r_environment environment = {.table = named, .cache_home = home};
    fp8r_status status = fp8r_routes_load(named, false, &environment, &identity, &quiet, &table);
    if (status == FP8R_OK)
        fp8r_table_fini(&table);
    else
        assert_int_equal(table.file_count, 55);
    return status;
}

static fp8r_status load_directory(void)
{
    static const struct fp8r_log quiet = {0};
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table = {0};
    fp8r_status status = fp8r_routes_load_directory(scratch_root, &identity, &quiet, &table);
    fp8r_table_fini(&table);
    return status;
}

static fp8r_context *context;

static fp8r_status check(void)
{
    struct fp8r_table_report report;
    struct fp8r_tool_error error = {0};
    int code = fp8r_table_check(&written, context, true, &report, &error);
    if (code == FP8R_EXIT_INTERNAL) {
        assert_non_null(strstr(error.text, "memory"));
        return FP8R_ERROR_OUT_OF_MEMORY;
    }
    assert_int_equal(code, FP8R_EXIT_GOOD);
    assert_true(report.count > 0 && !report.fits);
    fp8r_table_report_fini(&report);
    return FP8R_OK;
}

static void refused_allocations_are_answers(void **state)
{
    (void)state;
    scratch_write(scratch_path("read.routes"), sample, sizeof sample - 1);
    assert_int_equal(fp8r_route_file_parse("sample", sample, sizeof sample - 1, &written), FP8R_OK);
    with_every_refusal(parse);
    with_every_refusal(read_file);
    with_every_refusal(format);
    with_every_refusal(load);
    with_every_refusal(load_directory);
    with_every_refusal(write_file);
    const fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ROUTE_FILES};
    assert_int_equal(fp8r_context_create((fp8r_device){0}, &options, &context), FP8R_OK);
    with_every_refusal(check);
    fp8r_context_destroy(context);
    fp8r_route_file_fini(&written);
}

/* A merge that cannot be done leaves both tables as they were. */
static void a_refused_merge_changes_nothing(void **state)
{
    (void)state;
    for (long n = 0; n < 2; n++) {
        struct fp8r_route_file one, other;
        assert_int_equal(sample_parse(sample, &one), FP8R_OK);
        assert_int_equal(sample_parse(sample, &other), FP8R_OK);
        allocations_left = n;
        bool merged = fp8r_table_merge(&one.table, &other.table);
        allocations_left = -1;
        assert_false(merged);
        assert_int_equal(one.table.count, 2);
        assert_int_equal(other.table.count, 2);
        assert_int_equal(other.table.entries[0].file, 0);
        assert_true(fp8r_table_merge(&one.table, &other.table));
        assert_int_equal(one.table.count, 2);
        fp8r_route_file_fini(&one);
        fp8r_route_file_fini(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_allocations_are_answers),
        cmocka_unit_test(a_refused_merge_changes_nothing),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
