/* The routes that are shipped for an H200, asked about devices made by hand: what decodes goes to the skinny kernels, the
 * shape on which a published rule lost does not go to the vendor's library, every measured point gets what was measured
 * there, and another Hopper GPU gets none of it. Skipped in a build without CUDA; nothing here needs a GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "problem/grammar.h"
#include "route/decide.h"
#include "route/route_file.h"
#include "support/h200.h"
#include "support/problem_of.h"

static struct fp8r_registry registry;
static struct fp8r_route_file routes;
static struct fp8r_router router;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(fp8r_registry_init(&registry, NULL, 0), FP8R_OK);
    fp8r_registry_gate(&registry, &h200, NULL, false);
    if (fp8r_route_file_read(FP8R_ROUTES "/h200.routes", &routes) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    router = (struct fp8r_router){.registry = &registry,
                                  .device = &h200,
                                  .table = &routes.table,
                                  .mode = FP8R_MODE_GRAPH,
                                  .forced_row = -1,
                                  .forced_config = FP8R_CONFIG_ANY};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fp8r_route_file_fini(&routes);
    return 0;
}

static void skip_without_kernels(void)
{
    if (!registry.rows[fp8r_registry_find(&registry, "sm90", 4)].is_built) skip();
}

/* "route sm90:wide_128x128" */
static const char *decide(const fp8r_problem *problem)
{
    static char said[200];
    struct fp8r_candidates candidates;
    struct fp8r_decision decision;
    fp8r_decide(&router, problem, 0, false, &candidates, &decision);
    assert_true(decision.row >= 0);
    const fp8r_backend *backend = &registry.rows[decision.row].backend;
    snprintf(said, sizeof said, "%s %s:%s", fp8r_source_name(decision.source), backend->name,
             backend->configs[decision.config]);
    return said;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void decoding_goes_to_skinny_kernels(void **state)
{
    static const char *const families[] = {"4096x14336", "6144x4096", "4096x4096", "28672x4096", "28672x5376",
                                           "5376x14336", "5376x28672", "3584x5376", "14336x8192", "5120x25600"};
    (void)state;
    skip_without_kernels();
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (int m = 1; m <= 16; m++) {
            char text[64];
            snprintf(text, sizeof text, "%dx%s", m, families[i]);
            const fp8r_problem problem = problem_of(text);
            if (!begins_with(decide(&problem), "route sm90:skinny_")) fail_msg("%s: %s", text, decide(&problem));
            char measured[200];
            snprintf(measured, sizeof measured, "%s", decide(&problem));
            snprintf(text, sizeof text, "%dx%s:static", m, families[i]); /* as layers ask */
            const fp8r_problem of_layer = problem_of(text);
            assert_string_equal(decide(&of_layer), measured);
        }
}

/* The first published rule sent this to the library: k >= 5376 and n >= 3584. */
static void the_published_regression_is_not_repeated(void **state)
{
    (void)state;
    skip_without_kernels();
    const fp8r_problem problem = problem_of("1x4096x14336");
    assert_null(strstr(decide(&problem), "cublaslt"));
}

static void check_point(const struct fp8r_entry *entry, const struct fp8r_segment *segment, int64_t m)
{
    char family[FP8R_FAMILY_BYTES], expected[160];
    fp8r_matmul member;
    struct fp8r_product product;
    struct fp8r_key key;
    assert_int_equal(fp8r_entry_family(entry, family), FP8R_OK);
    assert_int_equal(fp8r_family_member(family, m, &member), FP8R_OK);
    assert_int_equal(fp8r_product_init(&member, FP8R_DATA_IGNORED, &product), FP8R_OK);
    fp8r_key_init(&product.problem, FP8R_MODE_GRAPH, &key);
    if (!fp8r_key_equal(&key, &entry->key)) return; /* one row has no pitch */
    snprintf(expected, sizeof expected, "route %s:%s", segment->backend, segment->config);
    if (strcmp(decide(&product.problem), expected) != 0)
        fail_msg("%s, M=%lld: %s, not %s", family, (long long)m, decide(&product.problem), expected);
}

/* Where a segment was measured, and at both of its ends. */
static void what_was_measured_is_chosen(void **state)
{
    (void)state;
    skip_without_kernels();
    assert_true(routes.table.count >= 21);
    for (size_t i = 0; i < routes.table.count; i++)
        for (int j = 0; j < routes.table.entries[i].segment_count; j++) {
            const struct fp8r_entry *entry = &routes.table.entries[i];
            const struct fp8r_segment *segment = &entry->segments[j];
            assert_true(segment->at.count > 0);
            for (int k = 0; k < segment->at.count; k++)
                check_point(entry, segment, segment->at.values[k]);
            check_point(entry, segment, segment->m_first);
            check_point(entry, segment, segment->m_last);
        }
}

static void fits(const fp8r_device_facts *device, const char *expected)
{
    struct fp8r_identity here;
    char line[256] = "";
    fp8r_identity_init(device, &registry, &here);
    here.library_count = 0;
    bool is_fit = fp8r_identity_fits(&routes.identity, &here, line, sizeof line);
    if (expected ? is_fit || !strstr(line, expected) : !is_fit) fail_msg("%s", line);
}

static void other_gpus_do_not_take_them(void **state)
{
    (void)state;
    fp8r_device_facts h100 = h200, pcie = h200, newer = h200;
    h100.bandwidth_gbs = 3352;
    pcie.sm_count = 114;
    newer.arch = 100;
    fits(&h200, NULL);
    fits(&h100, "bandwidth_gbs=5000, here it is 3500");
    fits(&pcie, "sm_count=132, here it is 114");
    fits(&newer, "arch=90, here it is 100");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(decoding_goes_to_skinny_kernels), TEST(the_published_regression_is_not_repeated),
                                       TEST(what_was_measured_is_chosen), TEST(other_gpus_do_not_take_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
