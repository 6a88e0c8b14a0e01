/* Field reports G, H and I1: what is chosen, what it depends on, and that bits do not depend on what they must not
 * (docs/field-reports.md).
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/context.h"
#include "device/device.h"
#include "backend/row.h"
#include "problem/problem.h"
#include "route/route_file.h"
#include "route/search.h"
#include "support/rows.h"

static char folder[] = "/tmp/fp8r-test-field-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static fp8r_status create(const char *routes, uint32_t flags, fp8r_context **context)
{
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 2, .flags = flags, .routes = routes};
    return fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, context);
}

/* A route file for this machine, as text. */
static void machine_routes(const char *body, int entries, char *text, size_t size)
{
    fp8r_context *context = plain_context(2);
    struct fp8r_identity identity;
    char facts[FP8R_IDENTITY_BYTES];
    fp8r_identity_init(&context->device, &context->registry, &identity);
    fp8r_identity_format(&identity, facts);
    fp8r_context_destroy(context);
    snprintf(text, size, "fp8route-routes 1\ndevice cpu\nidentity %s\nprotocol full mode=eager operands=cold\n%send entries=%d\n",
             facts, body, entries);
}

static void write_file(const char *path, const char *data, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void source_of(fp8r_context *context, const char *text, char label[200])
{
    fp8r_matmul matmul;
    fp8r_explanation *explanation;
    assert_int_equal(fp8r_matmul_parse(text, &matmul), FP8R_OK);
    assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *it = fp8r_explanation_candidate(explanation, i);
        if (it->verdict == FP8R_VERDICT_CHOSEN)
            snprintf(label, 200, "%s %s:%s", fp8r_explanation_source(explanation), it->backend, it->config);
    }
    fp8r_explanation_destroy(explanation);
}

#define SEGMENT(rows) "  m=" rows " backend=reference config=double rev=1 median_us=10 verdict=clear\n"

/* Measured at M = 1, 16, 64, 256: every M up to there is a hit and says so. */
static void g2_every_m_finds_its_segment(void **state)
{
    static const struct {
        const char *text, *label;
    } cases[] = {{"1x64x128", "route reference:double"},   {"5x64x128", "route reference:double"},
                 {"16x64x128", "route reference:double"},  {"100x64x128", "route reference:double"},
                 {"256x64x128", "route reference:double"}, {"300x64x128", "default "}};
    char text[2048], label[200];
    fp8r_context *context;
    (void)state;
    machine_routes("entry Mx64x128\n" SEGMENT("1..1") SEGMENT("2..16") SEGMENT("17..64") SEGMENT("65..256"), 1, text, sizeof text);
    write_file(in_folder("g2.routes"), text, strlen(text));
    assert_int_equal(create(in_folder("g2.routes"), FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES, &context), FP8R_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        source_of(context, cases[i].text, label);
        if (strncmp(label, cases[i].label, strlen(cases[i].label)) != 0)
            fail_msg("%s: %s", cases[i].text, label);
    }
    fp8r_context_destroy(context);
    assert_int_equal(unlink(in_folder("g2.routes")), 0);
}

/* One shape in all its variants, in two orders, through one context with a route for one of them. */
static void g4_variants_of_a_shape_do_not_mix(void **state)
{
    static const char *const variants[] = {"7x64x128", "7x64x128:fp16", "7x64x128:fp32", "7x64x128:tensor", "7x64x128:bias",
                                           "7x64x128:bias=fp32", "7x64x128:precise", "7x64x128:tb", "7x64x128:a=e5m2",
                                           "7x64x128:a=bf16", "7x64x128:lda=160", "7x64x128:fp32:bias=fp16"};
    enum { COUNT = sizeof variants / sizeof *variants };
    char text[2048], line[160];
    fp8r_context *context;
    (void)state;
    machine_routes("entry Mx64x128\n" SEGMENT("1..16"), 1, text, sizeof text);
    write_file(in_folder("g4.routes"), text, strlen(text));
    assert_int_equal(create(in_folder("g4.routes"), FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES, &context), FP8R_OK);
    for (int i = 0; i < 2 * COUNT; i++) {
        const char *variant = variants[i < COUNT ? i : 2 * COUNT - 1 - i];
        struct sample sample;
        assert_true(sample_init(&sample, variant, SAMPLE_EXACT, 3));
        sample_clear(&sample);
        assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
        if (!sample_judge(&sample, 7, line, sizeof line))
            fail_msg("%s: %s", variant, line);
        sample_fini(&sample);
    }
    fp8r_context_destroy(context);
    assert_int_equal(unlink(in_folder("g4.routes")), 0);
}

/* Runs with whatever lies in the user's cache: the context is made and the product right. */
static void must_still_work(const char *what)
{
    fp8r_context *context;
    struct sample sample;
    char line[160];
    if (create(NULL, 0, &context) != FP8R_OK)
        fail_msg("%s: %s", what, fp8r_last_error());
    assert_true(sample_init(&sample, "3x64x128", SAMPLE_EXACT, 1));
    sample_clear(&sample);
    assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
    if (!sample_judge(&sample, 3, line, sizeof line))
        fail_msg("%s: %s", what, line);
    sample_fini(&sample);
    fp8r_context_destroy(context);
}

static void g6_a_bad_cache_is_a_miss(void **state)
{
    char text[2048], path[256], label[200];
    struct fp8r_environment environment = {.cache_home = folder};
    struct fp8r_identity identity;
    uint64_t random = 8;
    (void)state;
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    fp8r_context *context = plain_context(2);
    fp8r_identity_init(&context->device, &context->registry, &identity);
    assert_true(fp8r_routes_user_path(&environment, &identity, path, sizeof path));
    fp8r_context_destroy(context);
    assert_int_equal(mkdir(in_folder("fp8route"), 0700), 0);
    machine_routes("entry Mx64x128\n" SEGMENT("1..16"), 1, text, sizeof text);
    assert_int_equal(setenv("FP8ROUTE_THREADS", "2", 1), 0);
    write_file(path, text, strlen(text));
    assert_int_equal(create(NULL, 0, &context), FP8R_OK);
    source_of(context, "3x64x128", label);
    assert_string_equal(label, "route reference:double"); /* whole: a hit */
    fp8r_context_destroy(context);
    for (size_t size = 0; size < strlen(text); size += 3) {
        write_file(path, text, size);
        must_still_work("a cut file");
    }
    for (int round = 0; round < 40; round++) {
        char spoiled[2048];
        size_t size = strlen(text);
        memcpy(spoiled, text, size);
        for (int i = 0; i < 4; i++)
            spoiled[sample_random(&random) % size] = (char)sample_random(&random);
        write_file(path, spoiled, size);
        must_still_work("random bytes");
    }
    write_file(path, "fp8route-routes 99\n", 19);
    must_still_work("another version");
    machine_routes("", 0, text, sizeof text);
    char *threads = strstr(text, "threads=");
    threads[8] = '7';
    write_file(path, text, strlen(text));
    must_still_work("another machine");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(in_folder("fp8route")), 0);
    must_still_work("no folder");
    assert_int_equal(setenv("XDG_CACHE_HOME", "/proc/none", 1), 0);
    must_still_work("a folder that cannot be");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    must_still_work("no HOME");
    assert_int_equal(unsetenv("FP8ROUTE_THREADS"), 0);
}

/* ---- Bits ---- */

enum { CLASSES = 64, COLUMNS = 48 };
static struct {
    char name[64];
    uint32_t bits[COLUMNS];
} classes[CLASSES];
static int class_count;

/* Row 0 of a product of m equal rows; every run of one numerics class must give the same bits. */
static void collect(fp8r_context *context, int row, int config, int64_t m, const char *where)
{
    const fp8r_backend *backend = &context->registry.rows[row].backend;
    struct sample sample;
    struct fp8r_product product;
    fp8r_reason reason;
    fp8r_plan *plan = NULL;
    char text[64], spec[130];
    snprintf(text, sizeof text, "%dx%dx777:fp32:invariant", (int)m, (int)COLUMNS);
    assert_true(sample_init(&sample, text, SAMPLE_RANDOM, 99));
    for (int64_t r = 1; r < m; r++) /* the first line of random numbers differs with m: make it the same */
        memset((char *)sample.matmul.a.data + r * 777, 0x40, 777);
    for (int k = 0; k < 777; k++)
        ((uint8_t *)sample.matmul.a.data)[k] = (uint8_t)(k * 37 % 0x7F);
    for (int k = 0; k < 777 * COLUMNS; k++)
        ((uint8_t *)sample.matmul.b.data)[k] = (uint8_t)(0x20 + k * 11 % 0x30 + (k % 3 == 0 ? 0x80 : 0));
    for (int64_t r = 0; r < m; r++)
        ((float *)sample.matmul.scale_a.data)[r] = 0.37f;
    for (int col = 0; col < COLUMNS; col++)
        ((float *)sample.matmul.scale_b.data)[col] = 0.01f * (float)(col + 1);
    assert_true(sample_solve(&sample));
    assert_int_equal(fp8r_product_init(&sample.matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
    if (fp8r_row_eligible(&context->registry, &context->device, &product.problem, row, config, &reason)) {
        const char *class = fp8r_row_numerics(&context->registry.rows[row], &context->device, &product.problem, config);
        snprintf(spec, sizeof spec, "%s:%s", backend->name, backend->configs[config]);
        assert_int_equal(fp8r_plan_create(context, &sample.matmul, spec, &plan), FP8R_OK);
        fp8r_pointers pointers = sample_pointers(&sample, m);
        void *space;
        size_t bytes = fp8r_plan_workspace(plan);
        assert_int_equal(posix_memalign(&space, 256, bytes + 1), 0);
        assert_int_equal(fp8r_plan_run(plan, &pointers, space, bytes, NULL), FP8R_OK);
        if (!sample_judge(&sample, m, text, sizeof text))
            fail_msg("%s, M=%d: %s", spec, (int)m, text);
        int at = 0;
        while (at < class_count && strcmp(classes[at].name, class) != 0)
            at++;
        if (at == class_count) {
            assert_true(class_count < CLASSES);
            snprintf(classes[class_count].name, sizeof classes[0].name, "%s", class);
            memcpy(classes[class_count++].bits, sample.matmul.out.data, sizeof classes[0].bits);
        }
        if (memcmp(classes[at].bits, sample.matmul.out.data, sizeof classes[0].bits) != 0)
            fail_msg("%s (%s), M=%d: other bits than its class %s has elsewhere", spec, where, (int)m, class);
        free(space);
        fp8r_plan_destroy(plan);
    }
    sample_fini(&sample);
}

static void collect_all(fp8r_context *context, const char *where)
{
    static const int64_t ms[] = {1, 2, 16, 31, 32, 33, 64, 128, 257};
    for (int row = 0; row < context->registry.count; row++)
        for (int config = 0; context->registry.rows[row].fits && context->registry.rows[row].backend.configs[config]; config++)
            for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
                collect(context, row, config, ms[i], where);
}

/* Equal class, equal bits: whatever M, configuration, processor features and thread count (also field report H3). */
static void h1_a_class_has_one_result(void **state)
{
    static const int threads[] = {1, 2, 3, 7};
    (void)state;
    class_count = 0;
    for (int t = 0; t < 4; t++) {
        struct rows rows;
        char where[128];
        rows_init(&rows, threads[t]);
        for (int i = 0; i < rows.count; i++) {
            snprintf(where, sizeof where, "%d threads, %s", threads[t], rows.features[i]);
            if (t == 0 || i == 0)
                collect_all(rows.contexts[i], where);
        }
        rows_fini(&rows);
    }
    assert_true(class_count >= 2);
    for (int i = 0; i < class_count; i++)
        print_message("class %s\n", classes[i].name);
}

/* The routed call in invariant mode: row 0 has the same bits for every M, under every set of features. */
static void h1_routed_rows_do_not_depend_on_m(void **state)
{
    static const int64_t ms[] = {1, 2, 16, 31, 32, 33, 64, 128, 257};
    struct rows rows;
    (void)state;
    rows_init(&rows, 2);
    for (int which = 0; which < rows.count; which++) {
        uint16_t first[64];
        for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
            struct sample sample;
            char text[64];
            snprintf(text, sizeof text, "%dx64x300:invariant:tensor", (int)ms[i]);
            assert_true(sample_init(&sample, text, SAMPLE_RANDOM, 4));
            for (int k = 0; k < 300; k++)
                ((uint8_t *)sample.matmul.a.data)[k] = (uint8_t)(k * 29 % 0x7F);
            for (int k = 0; k < 300 * 64; k++)
                ((uint8_t *)sample.matmul.b.data)[k] = (uint8_t)(k * 7 % 0x7F);
            *(float *)sample.matmul.scale_a.data = 0.3f;
            *(float *)sample.matmul.scale_b.data = 0.7f;
            assert_int_equal(fp8r_scaled_mm(rows.contexts[which], &sample.matmul, NULL), FP8R_OK);
            if (i == 0)
                memcpy(first, sample.matmul.out.data, sizeof first);
            if (memcmp(first, sample.matmul.out.data, sizeof first) != 0)
                fail_msg("%s: row 0 has other bits than with M=1 (%s)", text, rows.features[which]);
            sample_fini(&sample);
        }
    }
    rows_fini(&rows);
}

/* Any thread count stays within the bound that the arithmetic gives. */
static void h3_thread_counts_stay_within_the_bound(void **state)
{
    static const int threads[] = {1, 2, 3, 4, 5, 8, 13};
    (void)state;
    for (int t = 0; t < 7; t++) {
        struct rows rows;
        rows_init(&rows, threads[t]);
        for (int i = 1; i < rows.count; i++)
            fp8r_context_destroy(rows.contexts[i]);
        rows.count = 1;
        rows_check(&rows, "3x130x500");
        rows_check(&rows, "50x130x500:fp32:bias");
        rows_check(&rows, "2*9x33x70:a=bf16");
        rows_fini(&rows);
    }
}

/* What the rows themselves pick for M = 1..300, under every set of features. */
static void note_picks(const struct rows *rows, bool picked[FP8R_ROWS_MAX][32])
{
    static const char *const families[] = {"x4096x4096", "x64x64", "x4096x4096:tb", "x100x333:a=e5m2", "x64x300:a=bf16"};
    for (int which = 0; which < rows->count; which++)
        for (int m = 1; m <= 300; m++)
            for (size_t family = 0; family < sizeof families / sizeof *families; family++) {
                const fp8r_context *context = rows->contexts[which];
                fp8r_matmul matmul;
                struct fp8r_product product;
                fp8r_reason reason;
                char text[64];
                snprintf(text, sizeof text, "%d%s", m, families[family]);
                assert_int_equal(fp8r_matmul_parse(text, &matmul), FP8R_OK);
                assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
                for (int row = 0; row < context->registry.count; row++) {
                    const fp8r_backend *it = &context->registry.rows[row].backend;
                    if (context->registry.rows[row].fits &&
                        it->supports(it->user, &context->device, &product.problem, FP8R_CONFIG_ANY, &reason))
                        picked[row][it->pick(it->user, &context->device, &product.problem)] = true;
                }
            }
}

/* A configuration that no model picks is there for the tuner: a route to it must decide. */
static bool is_routable(const char *backend, const char *config)
{
    char body[256], text[2048], label[200] = "", wanted[200];
    fp8r_context *context;
    snprintf(body, sizeof body, "entry Mx64x128\n  m=1..16 backend=%s config=%s rev=1 median_us=10 verdict=clear\n", backend, config);
    machine_routes(body, 1, text, sizeof text);
    write_file(in_folder("i1.routes"), text, strlen(text));
    assert_int_equal(create(in_folder("i1.routes"), FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES, &context), FP8R_OK);
    source_of(context, "3x64x128", label);
    fp8r_context_destroy(context);
    assert_int_equal(unlink(in_folder("i1.routes")), 0);
    snprintf(wanted, sizeof wanted, "route %s:%s", backend, config);
    return strcmp(label, wanted) == 0;
}

/* Does this machine have what the configuration needs? */
static bool can_run(const fp8r_context *context, const fp8r_backend *it, int config)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    fp8r_reason reason;
    assert_int_equal(fp8r_matmul_parse("3x64x128", &matmul), FP8R_OK);
    assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
    return it->supports(it->user, &context->device, &product.problem, config, &reason);
}

/* No dead branch: every configuration that this machine can run is picked somewhere, or can be routed to. */
static void i1_every_configuration_is_reached(void **state)
{
    static bool picked[FP8R_ROWS_MAX][32];
    struct rows rows;
    int picks = 0;
    (void)state;
    rows_init(&rows, 2);
    note_picks(&rows, picked);
    const struct fp8r_registry *registry = &rows.contexts[0]->registry;
    for (int row = 0; row < registry->count; row++)
        for (int config = 0; registry->rows[row].fits && registry->rows[row].backend.configs[config]; config++) {
            const fp8r_backend *it = &registry->rows[row].backend;
            picks += picked[row][config];
            if (!picked[row][config] && can_run(rows.contexts[0], it, config) && !is_routable(it->name, it->configs[config]))
                fail_msg("nothing reaches %s:%s", it->name, it->configs[config]);
        }
    assert_true(picks >= 2); /* even of the portable kernels alone: one of cpu's, the reference */
    rows_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(g2_every_m_finds_its_segment),
        cmocka_unit_test(g4_variants_of_a_shape_do_not_mix),
        cmocka_unit_test(g6_a_bad_cache_is_a_miss),
        cmocka_unit_test(h1_a_class_has_one_result),
        cmocka_unit_test(h1_routed_rows_do_not_depend_on_m),
        cmocka_unit_test(h3_thread_counts_stay_within_the_bound),
        cmocka_unit_test(i1_every_configuration_is_reached),
    };
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests_name("field reports G, H, I", tests, NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
