/* Plans: segments, explicit backends, failures to prepare, what a run refuses. Fake backends, so that every choice shows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/context.h"
#include "problem/problem.h"
#include "route/route_file.h"
#include "support/fake.h"
#include "support/rows.h"

enum { LINES = 64 };

static struct fake high, low;
static fp8r_backend of_high, of_low;
static char path[] = "/tmp/fp8r-test-plan-XXXXXX";
static char lines[LINES][400];
static int line_count;

static void keep(void *user, int level, const char *line)
{
    (void)user, (void)level;
    if (line_count < LINES)
        snprintf(lines[line_count++], sizeof lines[0], "%s", line);
}

static int lines_with(const char *word)
{
    int count = 0;
    for (int i = 0; i < line_count; i++)
        count += strstr(lines[i], word) != NULL;
    return count;
}

/* A context whose best rows are the fakes; `routes` NULL = none. */
static fp8r_context *create(const char *routes, uint32_t flags)
{
    const fp8r_backend *const backends[] = {&of_high, &of_low};
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1, .backends = backends,
        .backend_count = 2, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES | flags, .routes = routes, .log = keep};
    fp8r_context *context = NULL;
    of_high = fake_backend(&high, "high", 2000);
    of_low = fake_backend(&low, "low", 1000);
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    return context;
}

static int setup(void **state)
{
    (void)state;
    high = (struct fake){.mark = 1.0f};
    low = (struct fake){.mark = 2.0f};
    line_count = 0;
    return 0;
}

/* Writes routes for this very machine. */
static const char *write_routes(const char *body, int entries)
{
    fp8r_context *context = create(NULL, 0);
    struct fp8r_identity identity;
    char text[FP8R_IDENTITY_BYTES];
    fp8r_identity_init(&context->device, &context->registry, &identity);
    fp8r_identity_format(&identity, text);
    fp8r_context_destroy(context);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "fp8route-routes 1\ndevice cpu\nidentity %s\nprotocol full mode=eager operands=cold\n%send entries=%d\n", text,
            body, entries);
    assert_int_equal(fclose(file), 0);
    return path;
}

static fp8r_plan *plan(fp8r_context *context, const char *text, const char *backend)
{
    fp8r_matmul matmul;
    fp8r_plan *made = NULL;
    assert_int_equal(fp8r_matmul_parse(text, &matmul), FP8R_OK);
    if (fp8r_plan_create(context, &matmul, backend, &made) != FP8R_OK)
        fail_msg("%s: %s", text, fp8r_last_error());
    return made;
}

static const char *explained(fp8r_context *context, const char *text)
{
    static char label[160];
    fp8r_matmul matmul;
    fp8r_explanation *explanation;
    assert_int_equal(fp8r_matmul_parse(text, &matmul), FP8R_OK);
    assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
    label[0] = '\0';
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *it = fp8r_explanation_candidate(explanation, i);
        assert_true(it->sentence[0] != '\0');
        if (it->verdict == FP8R_VERDICT_CHOSEN)
            snprintf(label, sizeof label, "%s:%s", it->backend, it->config);
    }
    fp8r_explanation_destroy(explanation);
    return label;
}

#define SEGMENT(rows, backend, config, verdict)                                                                        \
    "  m=" rows " backend=" backend " config=" config " rev=1 median_us=10 verdict=" verdict "\n"

/* The best of the other backends, as the route has it, stands in that backend's row. */
static void rivals_are_explained(void **state)
{
    fp8r_matmul matmul;
    fp8r_explanation *explanation;
    int seen = 0;
    (void)state;
    fp8r_context *context = create(write_routes("entry Mx64x64\n  m=1..8 at=1,8 backend=high config=two rev=1 median_us=10 "
                                                "runner_up=high:one runner_up_us=11 rival=low:two rival_us=12.5 "
                                                "rival_gain=1.2..1.25 gain=1.05..1.1 verdict=clear\n", 1), 0);
    assert_int_equal(fp8r_matmul_parse("4x64x64", &matmul), FP8R_OK);
    assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *it = fp8r_explanation_candidate(explanation, i);
        if (it->verdict == FP8R_VERDICT_CHOSEN) {
            assert_true(it->median_us == 10 && it->gain_low == 1.05 && it->gain_high == 1.1);
            seen++;
        }
        if (strcmp(it->backend, "low") != 0)
            continue;
        assert_true(it->median_us == 12.5 && it->gain_low == 1.2 && it->gain_high == 1.25);
        assert_non_null(strstr(it->sentence, "measured as two, the chosen one is 1.2 to 1.25 times as fast"));
        seen++;
    }
    assert_int_equal(seen, 2);
    fp8r_explanation_destroy(explanation);
    fp8r_context_destroy(context);
}

/* A time stands for the rows and the configuration that it was measured with: behind the last segment there is none. */
static void no_time_is_lent_beyond_what_was_measured(void **state)
{
    fp8r_matmul matmul;
    fp8r_explanation *explanation;
    (void)state;
    high.second_from = 9; /* its own model picks another configuration there */
    fp8r_context *context = create(write_routes("entry Mx64x64\n  m=1..8 backend=high config=one rev=1 median_us=10 "
                                                "runner_up=low:two runner_up_us=11 gain=1..1 verdict=clear\n", 1), 0);
    for (int64_t m = 8; m <= 9; m++) {
        char text[32];
        snprintf(text, sizeof text, "%dx64x64", (int)m);
        assert_int_equal(fp8r_matmul_parse(text, &matmul), FP8R_OK);
        assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
        const fp8r_candidate *chosen = fp8r_explanation_candidate(explanation, 0);
        const fp8r_candidate *other = fp8r_explanation_candidate(explanation, 1);
        assert_int_equal(chosen->verdict, FP8R_VERDICT_CHOSEN);
        assert_string_equal(chosen->config, m == 8 ? "one" : "two");
        assert_string_equal(fp8r_explanation_source(explanation), m == 8 ? "route" : "extrapolated");
        assert_true(chosen->median_us == (m == 8 ? 10 : 0) && other->median_us == (m == 8 ? 11 : 0));
        assert_true(chosen->gain_low == (m == 8 ? 1 : 0) && chosen->gain_high == (m == 8 ? 1 : 0));
        assert_non_null(strstr(chosen->sentence, m == 8 ? "measured fastest for M 1 to 8" : "this M was not measured"));
        assert_string_equal(other->sentence, m == 8 ? "could run it; measured as two" : "could run it");
        fp8r_explanation_destroy(explanation);
    }
    fp8r_context_destroy(context);
}

/* Which rule made a row the default is said. */
static void defaults_are_explained(void **state)
{
    static const char *const said[] = {"high:one", "first by priority, in", "low:one", "its model expects clearly less"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        fp8r_matmul matmul;
        fp8r_explanation *explanation;
        high.expected_us = 10;
        low.expected_us = i ? 9 : 11;
        fp8r_context *context = create(NULL, 0);
        assert_string_equal(explained(context, "4x64x64"), said[2 * i]);
        assert_int_equal(fp8r_matmul_parse("4x64x64", &matmul), FP8R_OK);
        assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
        assert_non_null(strstr(fp8r_explanation_candidate(explanation, (size_t)i)->sentence, said[2 * i + 1]));
        fp8r_explanation_destroy(explanation);
        fp8r_context_destroy(context);
    }
}

/* A backend's own model may have changed since: what a file names as the default need not be it any more. */
static void old_defaults_are_told_as_such(void **state)
{
    static const char *const said[] = {"within the noise of the others: what was the default stays",
                                       "fastest for M 9, where it was the default"};
    (void)state;
    fp8r_context *context = create(write_routes("entry Mx64x64\n" SEGMENT("1..8", "low", "two", "tie")
        "  m=9..9 backend=low config=two rev=1 median_us=10 gain=1..1 verdict=clear\n", 1), 0);
    for (int i = 0; i < 2; i++) {
        fp8r_matmul matmul;
        fp8r_explanation *explanation;
        assert_int_equal(fp8r_matmul_parse(i ? "9x64x64" : "8x64x64", &matmul), FP8R_OK);
        assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
        assert_non_null(strstr(fp8r_explanation_candidate(explanation, 1)->sentence, said[i]));
        fp8r_explanation_destroy(explanation);
    }
    fp8r_context_destroy(context);
}

/* The entry of another family is named as that, also where it does not decide. */
static void lent_entries_are_named(void **state)
{
    static const char *const said[][2] = {
        {"4x64x64", "fp8r-test-plan-"}, {"4x64x64:bias", "(measured as Mx64x64)"},
        {"1x64x64:static:bias", "has this family (measured as Mx64x64), but not around this M"},
        {"1x64x64", "has this family, but not around this M"},
        {"4x32x64:a=bf16", "routes this (measured as Mx32x64) to backend gone, which is not here"},
        {"4x16x64:bias", "routes this (measured as Mx16x64) to high:three, a configuration that is not here"},
        {"9x64x64:bias", "measured up to M=8 (measured as Mx64x64), where low was fastest"}};
    (void)state;
    fp8r_context *context = create(write_routes("entry Mx64x64\n" SEGMENT("2..8", "low", "two", "clear")
        "entry Mx32x64\n" SEGMENT("1..8", "gone", "two", "clear") "entry Mx16x64\n" SEGMENT("1..8", "high", "three", "clear"),
        3), 0);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        fp8r_matmul matmul;
        fp8r_explanation *explanation;
        assert_int_equal(fp8r_matmul_parse(said[i][0], &matmul), FP8R_OK);
        assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
        if (!strstr(fp8r_explanation_note(explanation), said[i][1]))
            fail_msg("%s: \"%s\" does not say \"%s\"", said[i][0], fp8r_explanation_note(explanation), said[i][1]);
        fp8r_explanation_destroy(explanation);
    }
    fp8r_context_destroy(context);
}

/* What a plan says of m, what explain says, and what the routed call really runs are the same, for every m. */
static void segments_are_the_decisions_at_every_m(void **state)
{
    enum { MOST = 3000 };
    static float out[MOST * 4];
    static uint8_t a[MOST * 16], b[64];
    (void)state;
    low.second_from = 700;
    high.m_max = 2500;
    fp8r_context *context = create(write_routes("entry Mx4x16:fp32:sa=none:sb=none\n" SEGMENT("1..7", "low", "two", "clear")
        SEGMENT("20..33", "low", "one", "clear") SEGMENT("34..600", "high", "two", "clear") SEGMENT("650..900", "low", "one", "tie"),
        1), 0);
    fp8r_plan *whole = plan(context, "3000x4x16:fp32:sa=none:sb=none", NULL);
    for (int m = 1; m <= MOST; m++) {
        char text[64];
        snprintf(text, sizeof text, "%dx4x16:fp32:sa=none:sb=none", m);
        const char *label = fp8r_plan_backend(whole, m);
        if (strcmp(label, explained(context, text)) != 0)
            fail_msg("M=%d: the plan runs %s, explain says %s", m, label, explained(context, text));
        fp8r_matmul matmul;
        assert_int_equal(fp8r_matmul_parse(text, &matmul), FP8R_OK);
        matmul.a.data = a;
        matmul.b.data = b;
        matmul.out.data = out;
        assert_int_equal(fp8r_scaled_mm(context, &matmul, NULL), FP8R_OK);
        float wanted = strncmp(label, "low", 3) == 0 ? 2.0f : 1.0f;
        assert_true(out[0] == wanted && out[m * 4 - 1] == wanted);
    }
    assert_string_equal(fp8r_plan_backend(whole, 7), "low:two");
    assert_string_equal(fp8r_plan_backend(whole, 8), "high:one");
    assert_string_equal(fp8r_plan_backend(whole, 34), "high:two");
    assert_string_equal(fp8r_plan_backend(whole, 2501), "low:two");
    assert_null(fp8r_plan_backend(whole, 0));
    assert_null(fp8r_plan_backend(whole, 3001));
    fp8r_plan_destroy(whole);
    fp8r_context_destroy(context);
    assert_int_equal(high.prepared, high.destroyed);
    assert_int_equal(low.prepared, low.destroyed);
}

static void explicit_backends_are_never_replaced(void **state)
{
    fp8r_matmul matmul;
    fp8r_plan *made = NULL;
    (void)state;
    high.m_max = 4;
    fp8r_context *context = create(NULL, 0);
    assert_int_equal(fp8r_matmul_parse("8x4x16", &matmul), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &matmul, "high", &made), FP8R_ERROR_UNSUPPORTED);
    assert_non_null(strstr(fp8r_last_error(), "M <= 4")); /* the reason, with its number */
    assert_int_equal(fp8r_plan_create(context, &matmul, "nobody", &made), FP8R_ERROR_NOT_FOUND);
    assert_int_equal(fp8r_plan_create(context, &matmul, "low:nothing", &made), FP8R_ERROR_NOT_FOUND);
    assert_int_equal(fp8r_plan_create(context, &matmul, "sm90", &made), FP8R_ERROR_UNSUPPORTED);
    assert_null(made);
    low.prepare_fails_above = 4;
    assert_int_equal(fp8r_plan_create(context, &matmul, "low", &made), FP8R_ERROR_DEVICE);
    assert_null(made);
    made = plan(context, "4x4x16", "low:two");
    assert_string_equal(fp8r_plan_backend(made, 3), "low:two");
    fp8r_plan_destroy(made);
    fp8r_plan_destroy(NULL);
    fp8r_context_destroy(context);
}

/* A backend asked for by name that takes the planned rows but not fewer runs where it can, and says why not elsewhere. */
static void explicit_backends_may_refuse_few_rows(void **state)
{
    static float out[80 * 4];
    static uint8_t a[80 * 16], b[64];
    fp8r_matmul matmul;
    fp8r_plan *none = NULL;
    (void)state;
    high.m_min = 65;
    fp8r_context *context = create(NULL, 0);
    assert_int_equal(fp8r_matmul_parse("64x4x16:fp32:sa=none:sb=none", &matmul), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &matmul, "high:two", &none), FP8R_ERROR_UNSUPPORTED);
    assert_non_null(strstr(fp8r_last_error(), "M >= 65; it is 64"));
    for (int named = 0; named < 2; named++) {
        fp8r_plan *made = plan(context, "80x4x16:fp32:sa=none:sb=none", named ? "high:two" : "high");
        const char *label = named ? "high:two" : "high:one";
        assert_null(fp8r_plan_backend(made, 64));
        assert_string_equal(fp8r_plan_backend(made, 65), label);
        assert_string_equal(fp8r_plan_backend(made, 80), label);
        fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = 64, .a = a, .b = b, .out = out};
        out[0] = 7.0f;
        assert_int_equal(fp8r_plan_run(made, &pointers, NULL, 0, NULL), FP8R_ERROR_UNSUPPORTED);
        assert_non_null(strstr(fp8r_last_error(), "backend high"));
        assert_non_null(strstr(fp8r_last_error(), "M >= 65; it is "));
        assert_true(out[0] == 7.0f);
        pointers.m = 65;
        assert_int_equal(fp8r_plan_run(made, &pointers, NULL, 0, NULL), FP8R_OK);
        assert_true(out[0] == 1.0f && out[65 * 4 - 1] == 1.0f);
        pointers.m = 0;
        assert_int_equal(fp8r_plan_run(made, &pointers, NULL, 0, NULL), FP8R_OK);
        fp8r_plan_destroy(made);
    }
    assert_int_equal(low.runs, 0);
    fp8r_context_destroy(context);
    assert_int_equal(high.prepared, high.destroyed);
}

/* Field report G1: a backend that says yes and then fails to prepare is reported once and left out, not tried each call. */
static void g1_failure_to_prepare_takes_the_next(void **state)
{
    static float out[100 * 4];
    static uint8_t a[100 * 16], b[64];
    (void)state;
    high.prepare_fails_above = 64;
    fp8r_context *context = create(NULL, 0);
    fp8r_plan *few = plan(context, "64x4x16", NULL), *many = plan(context, "65x4x16", NULL);
    assert_string_equal(fp8r_plan_backend(few, 1), "high:one");
    assert_string_equal(fp8r_plan_backend(many, 65), "low:one");
    assert_int_equal(lines_with("failed to prepare ("), 1);
    fp8r_matmul wide;
    fp8r_plan *none = NULL;
    assert_int_equal(fp8r_matmul_parse("x", &wide), FP8R_ERROR_INVALID_ARGUMENT); /* a line that must not stay */
    assert_int_equal(fp8r_matmul_parse("65x4x16:fp32:sa=none:sb=none", &wide), FP8R_OK);
    assert_true(fp8r_plan_create(context, &wide, "high", &none) != FP8R_OK);
    assert_non_null(strstr(fp8r_last_error(), "backend high failed to prepare"));
    fp8r_plan_destroy(few);
    fp8r_plan_destroy(many);
    fp8r_matmul matmul;
    assert_int_equal(fp8r_matmul_parse("100x4x16:fp32:sa=none:sb=none", &matmul), FP8R_OK);
    matmul.a.data = a;
    matmul.b.data = b;
    matmul.out.data = out;
    for (int call = 0; call < 50; call++) {
        assert_int_equal(fp8r_scaled_mm(context, &matmul, NULL), FP8R_OK);
        assert_true(out[399] == 2.0f);
    }
    assert_int_equal(high.failed, 3); /* once for each family, once by name */
    assert_int_equal(lines_with("failed to prepare ("), 1);
    fp8r_context_destroy(context);
    assert_int_equal(high.prepared, high.destroyed);
    assert_int_equal(low.prepared, low.destroyed);
}

static void nothing_left_is_unsupported(void **state)
{
    fp8r_matmul matmul;
    fp8r_plan *made = NULL;
    fp8r_explanation *explanation;
    (void)state;
    assert_int_equal(setenv("FP8ROUTE_DENY", "cpu,blas,reference,high,low", 1), 0);
    const fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ROUTE_FILES};
    fp8r_context *context;
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    assert_int_equal(unsetenv("FP8ROUTE_DENY"), 0);
    assert_int_equal(fp8r_matmul_parse("8x4x16", &matmul), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &matmul, NULL, &made), FP8R_ERROR_UNSUPPORTED);
    assert_int_equal(fp8r_explain(context, &matmul, &explanation), FP8R_OK);
    assert_string_equal(fp8r_explanation_source(explanation), "none");
    fp8r_explanation_destroy(explanation);
    fp8r_context_destroy(context);
}

static void several_without_a_route_are_ambiguous(void **state)
{
    fp8r_matmul matmul;
    fp8r_plan *made = NULL;
    (void)state;
    fp8r_context *context = create(NULL, FP8R_ROUTED_ONLY);
    assert_int_equal(fp8r_matmul_parse("8x4x16", &matmul), FP8R_OK);
    assert_int_equal(fp8r_plan_create(context, &matmul, NULL, &made), FP8R_ERROR_AMBIGUOUS);
    assert_true(strstr(fp8r_last_error(), "high") && strstr(fp8r_last_error(), "low"));
    fp8r_context_destroy(context);
}

static fp8r_status run_with(const fp8r_plan *made, fp8r_pointers pointers, void *space, size_t bytes, const char *word)
{
    fp8r_status status = fp8r_plan_run(made, &pointers, space, bytes, NULL);
    if (status != FP8R_OK && !strstr(fp8r_last_error(), word))
        fail_msg("the error \"%s\" does not name %s", fp8r_last_error(), word);
    return status;
}

/* Field report F6: a plan for aligned data is not used for less aligned data. */
static void runs_refuse_what_was_not_planned(void **state)
{
    struct sample sample;
    void *space;
    (void)state;
    high.workspace_bytes = 1000;
    fp8r_context *context = create(NULL, 0);
    assert_true(sample_init(&sample, "8x16x32:bias:fp32", SAMPLE_EXACT, 1));
    fp8r_plan *made = NULL;
    assert_int_equal(fp8r_plan_create(context, &sample.matmul, "high", &made), FP8R_OK);
    assert_int_equal(posix_memalign(&space, 256, 4096), 0);
    assert_int_equal(fp8r_plan_workspace(made), 1000);
    fp8r_pointers good = sample_pointers(&sample, 8), bad = good;
    assert_int_equal(run_with(made, good, space, 1000, ""), FP8R_OK);
    assert_int_equal(run_with(made, good, space, 999, "workspace"), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(run_with(made, good, NULL, 1000, "workspace"), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(run_with(made, good, (char *)space + 128, 1000, "workspace"), FP8R_ERROR_INVALID_ARGUMENT);
    bad.out = space; /* a workspace of its own, and nothing else's */
    assert_int_equal(run_with(made, bad, space, 1000, "workspace overlaps out"), FP8R_ERROR_INVALID_ARGUMENT);
    bad.out = (char *)space + 768; /* inside the 1000 bytes that are used */
    assert_int_equal(run_with(made, bad, space, 1000, "workspace overlaps out"), FP8R_ERROR_INVALID_ARGUMENT);
    bad.out = (char *)space + 1024; /* behind them, though within what was given */
    assert_int_equal(run_with(made, bad, space, 4096, ""), FP8R_OK);
    bad = good;
    bad.b = (char *)space + 512;
    assert_int_equal(run_with(made, bad, space, 1000, "workspace overlaps b"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.scale_b = (const float *)space;
    assert_int_equal(run_with(made, bad, space, 1000, "workspace overlaps scale_b"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.bias = (char *)space + 768;
    assert_int_equal(run_with(made, bad, space, 1000, "workspace overlaps bias"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.m = 9;
    assert_int_equal(run_with(made, bad, space, 1000, "m is 9"), FP8R_ERROR_INVALID_ARGUMENT);
    bad.m = -1;
    assert_int_equal(run_with(made, bad, space, 1000, "m is -1"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.a = (const char *)good.a + 1;
    assert_int_equal(run_with(made, bad, space, 1000, "pointers.a"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.bias = NULL;
    assert_int_equal(run_with(made, bad, space, 1000, "bias"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.out = (void *)(uintptr_t)good.a; /* certain overlap */
    assert_int_equal(run_with(made, bad, space, 1000, "out"), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.struct_size = 8;
    assert_int_equal(run_with(made, bad, space, 1000, "struct_size"), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fp8r_plan_run(NULL, &good, NULL, 0, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fp8r_plan_run(made, NULL, space, 1000, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.m = 0;
    long runs = high.runs;
    assert_int_equal(run_with(made, bad, NULL, 0, ""), FP8R_OK); /* nothing to do needs no workspace */
    assert_int_equal(high.runs, runs);
    free(space);
    fp8r_plan_destroy(made);
    sample_fini(&sample);
    fp8r_context_destroy(context);
}

/* A routed call lends what its own rows need, whatever its segment's last one does, or the segment beside it. */
static void calls_lend_what_their_rows_need(void **state)
{
    static const struct {
        const char *text;
        size_t high, low;
    } calls[] = {{"4x16x32:fp32", 0, 77}, {"5x16x32:fp32", 1000, 77}, {"9x16x32:fp32", 77, 0},
                 {"8x16x32:fp32", 1000, 77}, {"1x16x32:fp32", 0, 77}};
    struct sample sample;
    (void)state;
    high.m_max = 8;
    high.workspace_bytes = 1000;
    high.workspace_above = 4;
    fp8r_context *context = create(NULL, 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_true(sample_init(&sample, calls[i].text, SAMPLE_EXACT, 1));
        high.given_bytes = low.given_bytes = 77;
        assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
        assert_int_equal(high.given_bytes, calls[i].high);
        assert_int_equal(low.given_bytes, calls[i].low);
        sample_fini(&sample);
    }
    fp8r_context_destroy(context);
}

/* However many rows are planned, a decision is asked for a segment, not a row. */
static void huge_plans_have_few_segments(void **state)
{
    fp8r_matmul matmul;
    fp8r_plan *made = NULL;
    (void)state;
    high.m_max = 8;
    fp8r_context *context = create(NULL, 0);
    assert_int_equal(fp8r_matmul_parse("1099511627776x8x16:fp32", &matmul), FP8R_OK); /* 2^40 rows */
    assert_int_equal(fp8r_plan_create(context, &matmul, NULL, &made), FP8R_OK);
    assert_string_equal(fp8r_plan_backend(made, 8), "high:one");
    assert_string_equal(fp8r_plan_backend(made, 9), "low:one");
    assert_string_equal(fp8r_plan_backend(made, 1099511627776), "low:one");
    assert_true(low.prepared <= 2 && high.prepared <= 2);
    fp8r_plan_destroy(made);
    fp8r_context_destroy(context);
}

/* What an outside backend answers reaches the caller as a status of the list, with the number that it was. */
static void answers_outside_the_list_are_device_errors(void **state)
{
    static const int answers[][2] = {{FP8R_ERROR_IO, FP8R_ERROR_IO}, {77, FP8R_ERROR_DEVICE}, {-1, FP8R_ERROR_DEVICE}};
    struct sample sample;
    (void)state;
    fp8r_context *context = create(NULL, 0);
    assert_true(sample_init(&sample, "8x16x32:fp32", SAMPLE_EXACT, 1));
    fp8r_plan *made = NULL;
    assert_int_equal(fp8r_plan_create(context, &sample.matmul, "high", &made), FP8R_OK);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        fp8r_pointers pointers = sample_pointers(&sample, 8);
        char number[16];
        high.run_answers = answers[i][0];
        snprintf(number, sizeof number, "(%d)", answers[i][0]);
        assert_int_equal(fp8r_plan_run(made, &pointers, NULL, 0, NULL), answers[i][1]);
        assert_true(strstr(fp8r_last_error(), "high") && strstr(fp8r_last_error(), number));
    }
    fp8r_plan_destroy(made);
    sample_fini(&sample);
    fp8r_context_destroy(context);
}

static void equal_contexts_have_equal_ids(void **state)
{
    unsigned char ids[5][32];
    (void)state;
    const char *routes = write_routes("entry Mx64x64\n" SEGMENT("1..7", "low", "two", "clear"), 1);
    for (int i = 0; i < 5; i++) {
        if (i == 3)
            routes = write_routes("entry Mx64x64\n" SEGMENT("1..8", "low", "two", "clear"), 1);
        fp8r_context *context = create(i == 2 ? NULL : routes, i == 4 ? FP8R_ROUTED_ONLY : 0);
        fp8r_context_routes_id(context, ids[i]);
        fp8r_context_destroy(context);
    }
    assert_memory_equal(ids[0], ids[1], 32);
    for (int i = 2; i < 5; i++)
        for (int j = 0; j < i; j++)
            if (j != 1)
                assert_memory_not_equal(ids[i], ids[j], 32);
    const unsigned char zeros[32] = {0};
    fp8r_context_routes_id(NULL, ids[0]);
    fp8r_context_routes_id(NULL, NULL);
    assert_memory_equal(ids[0], zeros, 32);
}

int main(void)
{
#define PLAN_TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        PLAN_TEST(rivals_are_explained),
        PLAN_TEST(no_time_is_lent_beyond_what_was_measured),
        PLAN_TEST(lent_entries_are_named),
        PLAN_TEST(defaults_are_explained),
        PLAN_TEST(old_defaults_are_told_as_such),
        PLAN_TEST(segments_are_the_decisions_at_every_m),
        PLAN_TEST(explicit_backends_are_never_replaced),
        PLAN_TEST(explicit_backends_may_refuse_few_rows),
        PLAN_TEST(g1_failure_to_prepare_takes_the_next),
        PLAN_TEST(nothing_left_is_unsupported),
        PLAN_TEST(several_without_a_route_are_ambiguous),
        PLAN_TEST(runs_refuse_what_was_not_planned),
        PLAN_TEST(calls_lend_what_their_rows_need),
        PLAN_TEST(answers_outside_the_list_are_device_errors),
        PLAN_TEST(huge_plans_have_few_segments),
        PLAN_TEST(equal_contexts_have_equal_ids),
    };
    int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 1;
    (void)close(descriptor);
    int failed = cmocka_run_group_tests_name("plan", tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
