/* Building, comparing, merging and exporting without memory: the n-th allocation fails, for every n. Linked with --wrap
 * for the allocation functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample_maker.h"
#include "scratch.h"
#include "tune/route_build.h"
#include "tune/route_source.h"
#include "tune/route_diff.h"
#include "tune/route_merge.h"
#include "support/refusal.h"

/* The same operation with its 1st, 2nd, ... allocation refused, until it needs no more. */
static void with_every_refusal(int (*operation)(struct fp8r_tool_error *error))
{
    int code = FP8R_EXIT_INTERNAL;
    for (long n = 0; code != FP8R_EXIT_GOOD; n++) {
        struct fp8r_tool_error error = {0};
        assert_in_range(n, 0, 2000);
        allocations_left = n;
        code = operation(&error);
        bool refused = allocations_left < 0;
        allocations_left = -1;
        if (code != (refused ? FP8R_EXIT_INTERNAL : FP8R_EXIT_GOOD))
            fail_msg("allocation %ld: exit code %d: %s", n, code, error.text);
        if (refused) assert_non_null(strstr(error.text, "memory"));
        if (n == 0) assert_true(refused); /* otherwise this tests nothing */
    }
}

/* Two runs in files whose names and ids go opposite ways, and 40 cases, so that everything that grows does. */
static void write_samples(void)
{
    assert_int_equal(mkdir(scratch_path("d"), 0755), 0);
    for (int i = 0; i < 2; i++) {
        FILE *file = maker_open(scratch_path(i ? "d/b.jsonl" : "d/a.jsonl"));
        maker_run(file, i ? "1" : "2", &(struct maker_machine){2, "", i ? "old" : "new", NULL}, 0.02);
        for (int j = 0; j < 40; j++) {
            char problem[64];
            (void)snprintf(problem, sizeof problem, "%dx%dx128", 1 + j % 5, 16 * (1 + j / 5));
            maker_case(file, j, problem, 0);
            for (int round = 0; round < 9; round++)
                for (int k = 0; k < 3; k++) maker_sample(file, j, k, "grid", round, 10 + k);
            maker_done(file, j, 0);
        }
        (void)fclose(file);
    }
}

static int build_routes(struct fp8r_tool_error *error)
{
    struct samples samples = {0};
    struct fp8r_route_file routes;
    struct fp8r_build_summary summary;
    int machine = 0, code = samples_read_path(&samples, scratch_path("d"), error);
    if (code == 0) code = fp8r_build_choose(&samples, 0, &machine, error);
    if (code == 0) code = fp8r_build_routes(&samples, machine, &routes, &summary, error);
    if (code == 0) fp8r_route_file_fini(&routes);
    samples_fini(&samples);
    return code;
}

/* Two files with families in common and others. */
static void parse(int which, struct fp8r_route_file *file)
{
    static const char head[] = "fp8route-routes 1\ndevice cpu\nidentity features=none threads=2 llc_bytes=1\n"
                               "fact name \"x\"\nprotocol full mode=eager operands=cold\n";
    char text[8192];
    int used = snprintf(text, sizeof text, "%s", head);
    for (int i = 0; i < 20; i++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "entry Mx%dx64\nm=1..8 backend=cpu config=%c rev=1 median_us=1 verdict=clear\n"
                         "m=9..%d backend=blas config=s rev=1 median_us=2 gain=1..1 verdict=tie\n",
                         16 * (1 + i + 10 * which), 'a' + which, 64 + which);
    (void)snprintf(text + used, sizeof text - (size_t)used, "end entries=20\n");
    assert_int_equal(fp8r_route_file_parse("test", text, strlen(text), file), FP8R_OK);
}

static int compare(struct fp8r_tool_error *error)
{
    struct fp8r_route_file files[2];
    struct fp8r_table_diff diff;
    long left = allocations_left;
    allocations_left = -1; /* reading is tested elsewhere */
    for (int i = 0; i < 2; i++) parse(i, &files[i]);
    allocations_left = left;
    int code = fp8r_table_compare(&files[0].table, &files[1].table, &diff, error);
    if (code == 0) fp8r_table_diff_fini(&diff);
    for (int i = 0; i < 2; i++) fp8r_route_file_fini(&files[i]);
    return code;
}

static int merge(struct fp8r_tool_error *error)
{
    static const char *const names[] = {"a", "b"};
    struct fp8r_route_file files[2], merged;
    struct fp8r_merge_summary summary;
    long left = allocations_left;
    allocations_left = -1;
    for (int i = 0; i < 2; i++) parse(i, &files[i]);
    allocations_left = left;
    int code = fp8r_routes_merge(files, names, 2, &merged, &summary, error);
    if (code == 0) fp8r_route_file_fini(&merged);
    for (int i = 0; i < 2; i++) fp8r_route_file_fini(&files[i]);
    return code;
}

static int export(struct fp8r_tool_error *error)
{
    struct fp8r_route_file file;
    char *text = NULL;
    long left = allocations_left;
    allocations_left = -1;
    parse(0, &file);
    allocations_left = left;
    int code = fp8r_route_source(&file, FP8R_LANGUAGE_C, "f", &text, error);
    free(text);
    fp8r_route_file_fini(&file);
    return code;
}

static void building(void **state)
{
    (void)state;
    write_samples();
    with_every_refusal(build_routes);
}

static void comparing(void **state)
{
    (void)state;
    with_every_refusal(compare);
}

static void merging(void **state)
{
    (void)state;
    with_every_refusal(merge);
}

static void exporting(void **state)
{
    (void)state;
    with_every_refusal(export);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(building), cmocka_unit_test(comparing), cmocka_unit_test(merging),
                                       cmocka_unit_test(exporting)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
