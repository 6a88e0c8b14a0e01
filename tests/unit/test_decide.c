/* The dispatch order, a step a test: fake backends, routes written as text, a processor made by hand.
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
#include "support/fake.h"
#include "support/sample.h"

/* "high" is the default, then "low", then the reference. */
static struct fake high, low;
static struct fp8r_registry registry;
static struct fp8r_route_file routes;
static struct fp8r_router router;
static struct fp8r_candidates candidates;
static struct fp8r_decision decision;
static fp8r_device_facts device;
static const char *denied = "cpu,blas";
static bool is_capturing;

static void build(const char *body, int entries)
{
    static char text[8192];
    const fp8r_backend of_high = fake_backend(&high, "high", 2000), of_low = fake_backend(&low, "low", 1000);
    const fp8r_backend *const outside[] = {&of_high, &of_low};
    device = (fp8r_device_facts){.struct_size = sizeof device, .kind = FP8R_DEVICE_CPU, .threads = 1};
    assert_int_equal(fp8r_registry_init(&registry, outside, 2), FP8R_OK);
    fp8r_registry_gate(&registry, &device, denied, true);
    snprintf(text, sizeof text, "fp8route-routes 1\ndevice cpu\nidentity features=none threads=1 llc_bytes=1048576\n"
                                "protocol full mode=eager operands=cold\n%send entries=%d\n", body, entries);
    fp8r_route_file_fini(&routes);
    if (fp8r_route_file_parse("test", text, strlen(text), &routes) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    router = (struct fp8r_router){.registry = &registry, .device = &device, .table = &routes.table,
                                  .mode = FP8R_MODE_EAGER, .forced_row = -1, .forced_config = FP8R_CONFIG_ANY};
}

static int setup(void **state)
{
    (void)state;
    high = (struct fake){.classes = {"high1", "high2"}};
    low = (struct fake){.classes = {"low", "low"}};
    denied = "cpu,blas";
    is_capturing = false;
    build("", 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fp8r_route_file_fini(&routes);
    return 0;
}

static int row_of(const char *name)
{
    return fp8r_registry_find(&registry, name, strlen(name));
}

/* "source backend:config", e.g. "default high:one"; "ambiguous -" where nothing runs. */
static const char *decide(const char *text)
{
    static char said[200];
    fp8r_matmul matmul;
    struct fp8r_product product;
    if (fp8r_matmul_parse(text, &matmul) != FP8R_OK)
        fail_msg("%s: %s", text, fp8r_last_error());
    assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
    fp8r_decide(&router, &product.problem, 0, is_capturing, &candidates, &decision);
    assert_true(decision.m_last >= product.problem.m);
    if (decision.row < 0)
        snprintf(said, sizeof said, "%s -", fp8r_source_name(decision.source));
    else
        snprintf(said, sizeof said, "%s %s:%s", fp8r_source_name(decision.source),
                 registry.rows[decision.row].backend.name, registry.rows[decision.row].backend.configs[decision.config]);
    return said;
}

#define SEGMENT(rows, backend, config, verdict)                                                                        \
    "  m=" rows " backend=" backend " config=" config " rev=1 median_us=10 verdict=" verdict "\n"

static void the_default_is_the_first_by_priority(void **state)
{
    (void)state;
    assert_string_equal(decide("5x64x64"), "default high:one");
    high.m_max = 4;
    assert_string_equal(decide("5x64x64"), "default low:one");
    assert_int_equal(candidates.rows[row_of("high")].reason.code, FP8R_REASON_SHAPE_MAX);
    assert_string_equal(decide("4x64x64"), "default high:one");
    assert_int_equal(decision.m_last, 4);
    high.second_from = 3;
    assert_string_equal(decide("2x64x64"), "default high:one");
    assert_string_equal(decide("3x64x64"), "default high:two");
    low.m_max = 6;
    assert_string_equal(decide("7x64x64"), "reference reference:double");
    denied = "cpu,blas,reference";
    build("", 0);
    assert_string_equal(decide("7x64x64"), "none -");
}

/* Only where both have a model, and only for a clear difference. */
static void a_model_that_expects_less_goes_first(void **state)
{
    (void)state;
    low.expected_us = 10;
    assert_string_equal(decide("5x64x64"), "default high:one");
    high.expected_us = 10.2;
    assert_string_equal(decide("5x64x64"), "default high:one");
    high.expected_us = 11;
    assert_string_equal(decide("5x64x64"), "default low:one");
    low.expected_us = 0;
    assert_string_equal(decide("5x64x64"), "default high:one");
    low.expected_us = 10;
    low.m_max = 4;
    assert_string_equal(decide("5x64x64"), "default high:one");
    high.m_max = 3;
    low.m_max = 0;
    high.expected_us = 1;
    assert_string_equal(decide("5x64x64"), "default low:one");
}

static void forced_is_best_effort(void **state)
{
    (void)state;
    router.forced_row = row_of("low");
    assert_string_equal(decide("5x64x64"), "forced low:one");
    router.forced_config = 1;
    assert_string_equal(decide("5x64x64"), "forced low:two");
    low.m_max = 4;
    assert_string_equal(decide("5x64x64"), "default high:one");
    assert_true(decision.forced_refused && decision.refusal.code == FP8R_REASON_SHAPE_MAX);
    router.forced_row = row_of("reference");
    router.forced_config = FP8R_CONFIG_ANY;
    assert_string_equal(decide("5x64x64"), "forced reference:double");
}

/* While a stream captures nothing may be allocated: rows that need workspace are out, whoever names them. */
static void captures_need_no_workspace(void **state)
{
    (void)state;
    high.workspace_bytes = 4096;
    build("entry Mx64x64\n" SEGMENT("1..100", "high", "two", "clear"), 1);
    assert_string_equal(decide("5x64x64"), "route high:two");
    is_capturing = true;
    assert_string_equal(decide("5x64x64"), "default low:one");
    assert_int_equal(candidates.rows[row_of("high")].reason.code, FP8R_REASON_CAPTURE);
    assert_int_equal(candidates.rows[row_of("high")].reason.have, 4096);
    assert_int_equal(decision.miss, FP8R_MISS_REFUSED);
    router.forced_row = row_of("high");
    assert_string_equal(decide("5x64x64"), "default low:one");
    assert_true(decision.forced_refused && decision.refusal.code == FP8R_REASON_CAPTURE);
    low.workspace_bytes = 1;
    assert_string_equal(decide("5x64x64"), "reference reference:double");
    is_capturing = false;
    assert_string_equal(decide("5x64x64"), "forced high:one");
}

/* On a GPU routes of the asked way of timing come first, and those of the other way before none; a CPU has one way. */
static void routes_of_the_other_mode_are_better_than_none(void **state)
{
    (void)state;
    build("entry Mx64x64\n" SEGMENT("1..100", "low", "two", "clear"), 1);
    router.mode = FP8R_MODE_GRAPH;
    assert_string_equal(decide("5x64x64"), "default high:one");
    device.kind = FP8R_DEVICE_CUDA; /* only the router looks at it from here on */
    assert_string_equal(decide("5x64x64"), "route low:two");
    router.mode = FP8R_MODE_EAGER;
    assert_string_equal(decide("5x64x64"), "route low:two");
}

static void denied_rows_never_run(void **state)
{
    (void)state;
    denied = "cpu,blas,high";
    build("entry Mx64x64\n" SEGMENT("1..100", "high", "one", "clear"), 1);
    router.forced_row = row_of("high");
    assert_string_equal(decide("5x64x64"), "default low:one");
    assert_int_equal(candidates.rows[row_of("high")].reason.code, FP8R_REASON_DENIED);
    assert_int_equal(decision.miss, FP8R_MISS_REFUSED);
}

static void a_route_decides_within_its_rows(void **state)
{
    (void)state;
    build("entry Mx64x64\n" SEGMENT("2..8", "low", "two", "clear") SEGMENT("16..31", "high", "two", "tie"), 1);
    assert_string_equal(decide("2x64x64"), "route low:two");
    assert_int_equal(decision.m_last, 8);
    assert_string_equal(decide("8x64x64"), "route low:two");
    assert_string_equal(decide("16x64x64"), "route high:two");
    /* In front of the first segment and in the gap the default decides, up to the next segment. */
    assert_string_equal(decide("1x64x64"), "default high:one");
    assert_int_equal(decision.m_last, 1);
    assert_int_equal(decision.miss, FP8R_MISS_NO_M);
    assert_string_equal(decide("9x64x64"), "default high:one");
    assert_int_equal(decision.m_last, 15);
    /* Another type, layout or scale is another family (field report G4). */
    assert_string_equal(decide("2x64x64:fp16"), "default high:one");
    assert_string_equal(decide("2x64x64:tensor"), "default high:one");
    assert_string_equal(decide("2x64x64:precise"), "default high:one");
    assert_string_equal(decide("2x64x64:lda=80"), "default high:one");
    assert_int_equal(decision.miss, FP8R_MISS_NO_ENTRY);
}

static void a_route_that_cannot_be_followed_is_a_miss(void **state)
{
    (void)state;
    build("entry Mx64x64\n" SEGMENT("1..8", "gone", "one", "clear") SEGMENT("9..16", "low", "three", "clear")
              SEGMENT("17..32", "low", "one", "clear"), 1);
    assert_string_equal(decide("1x64x64"), "default high:one");
    assert_int_equal(decision.miss, FP8R_MISS_BACKEND);
    assert_string_equal(decide("9x64x64"), "default high:one");
    assert_int_equal(decision.miss, FP8R_MISS_CONFIG);
    low.m_max = 20;
    assert_string_equal(decide("20x64x64"), "route low:one");
    assert_int_equal(decision.m_last, 20);
    assert_string_equal(decide("21x64x64"), "default high:one");
    assert_int_equal(decision.miss, FP8R_MISS_REFUSED);
    assert_int_equal(decision.refusal.code, FP8R_REASON_SHAPE_MAX);
}

static void beyond_the_last_row_only_the_default_goes_on(void **state)
{
    (void)state;
    build("entry Mx64x64\n" SEGMENT("1..8", "low", "one", "clear") SEGMENT("9..16", "high", "one", "tie")
          "entry Mx128x64\n" SEGMENT("1..16", "low", "one", "clear"), 2);
    assert_string_equal(decide("17x64x64"), "extrapolated high:one");
    assert_string_equal(decide("100000x64x64"), "extrapolated high:one");
    assert_string_equal(decide("17x128x64"), "default high:one");
    assert_int_equal(decision.miss, FP8R_MISS_BEYOND);
    high.m_max = 16; /* now low is the default */
    assert_string_equal(decide("17x128x64"), "extrapolated low:one");
    assert_string_equal(decide("17x64x64"), "default low:one");
}

/* Multiples of 16 throughout, so that all families have one alignment class. */
static void neighbours_within_a_factor_decide(void **state)
{
    (void)state;
    build("entry Mx1600x64\n" SEGMENT("1..8", "low", "two", "clear")
          "entry Mx3600x64\n" SEGMENT("1..8", "low", "one", "clear")
          "entry Mx64x1600\n" SEGMENT("1..8", "low", "two", "clear")
          "entry Mx64x3600\n" SEGMENT("4..8", "low", "two", "clear"), 4);
    low.second_from = 3; /* the backend's own model picks the configuration */
    assert_string_equal(decide("1x2400x64"), "neighbour low:one");
    assert_string_equal(decide("3x2400x64"), "neighbour low:two");
    assert_string_equal(decide("1x2384x64"), "default high:one"); /* 3600 is more than 1.5 times away */
    assert_string_equal(decide("1x2416x64"), "default high:one"); /* 1600 is */
    assert_string_equal(decide("9x2400x64"), "default high:one"); /* not measured there */
    assert_string_equal(decide("1x4000x64"), "default high:one"); /* only one side */
    assert_string_equal(decide("1x2400x80"), "default high:one"); /* both N and K differ */
    assert_string_equal(decide("4x64x2400"), "neighbour low:two");
    assert_string_equal(decide("3x64x2400"), "default high:one");
    assert_int_equal(decision.m_last, 3);
    assert_string_equal(decide("4x64x2384"), "default high:one");
    assert_string_equal(decide("4x64x2416"), "default high:one");
    low.m_max = 2;
    assert_string_equal(decide("3x2400x64"), "default high:one"); /* not eligible here */
}

static void neighbours_must_agree_and_be_clear(void **state)
{
    (void)state;
    build("entry Mx1600x64\n" SEGMENT("1..8", "low", "one", "clear") SEGMENT("9..16", "low", "one", "tie")
              SEGMENT("17..32", "low", "one", "clear")
          "entry Mx1920x64\n" SEGMENT("1..32", "low", "one", "clear")
          "entry Mx2240x64\n" SEGMENT("1..16", "low", "one", "clear") SEGMENT("17..32", "high", "one", "clear"), 3);
    assert_string_equal(decide("1x1760x64"), "neighbour low:one");
    assert_int_equal(decision.m_last, 8);
    assert_string_equal(decide("9x1760x64"), "default high:one");
    assert_string_equal(decide("1x2080x64"), "neighbour low:one"); /* the nearest on each side */
    assert_string_equal(decide("17x2080x64"), "default high:one");
    router.forced_row = row_of("reference");
    assert_string_equal(decide("1x1760x64"), "forced reference:double");
}

static void without_leave_to_guess(void **state)
{
    (void)state;
    build("entry Mx1600x64\n" SEGMENT("1..8", "low", "one", "clear")
          "entry Mx2240x64\n" SEGMENT("1..8", "low", "one", "clear"), 2);
    router.routed_only = true;
    assert_string_equal(decide("1x1600x64"), "route low:one");
    assert_string_equal(decide("1x1920x64"), "ambiguous -");
    assert_string_equal(decide("9x1600x64"), "ambiguous -");
    high.m_max = 4;
    assert_string_equal(decide("5x1920x64"), "only low:one");
    low.m_max = 4;
    assert_string_equal(decide("5x1920x64"), "reference reference:double");
    router.forced_row = row_of("high");
    assert_string_equal(decide("1x1920x64"), "forced high:one");
}

static void one_class_serves_every_m(void **state)
{
    (void)state;
    high.classes[0] = high.classes[1] = "high";
    assert_string_equal(decide("5x64x64:invariant"), "default high:one");
    assert_int_equal(candidates.rows[row_of("low")].reason.code, FP8R_REASON_NUMERICS_CLASS);
    low.classes[0] = low.classes[1] = "high";
    assert_string_equal(decide("5x64x64:invariant"), "default high:one");
    assert_true(candidates.rows[row_of("low")].is_eligible);
    high.classes[0] = high.classes[1] = NULL; /* promises nothing: out in every step */
    build("entry Mx64x64:invariant\n" SEGMENT("1..100", "high", "one", "clear"), 1);
    router.forced_row = row_of("high");
    assert_string_equal(decide("5x64x64:invariant"), "default low:one");
    assert_int_equal(candidates.rows[row_of("high")].reason.code, FP8R_REASON_NUMERICS);
    assert_true(decision.forced_refused);
    low.m_min = 2; /* not for every M: out */
    assert_string_equal(decide("5x64x64:invariant"), "reference reference:double");
    assert_int_equal(candidates.rows[row_of("low")].reason.code, FP8R_REASON_NUMERICS);
}

static void a_forced_class_holds_the_family(void **state)
{
    (void)state;
    high.classes[0] = high.classes[1] = "high";
    build("entry Mx64x64:invariant\n" SEGMENT("1..100", "high", "one", "clear"), 1);
    router.forced_row = row_of("low");
    assert_string_equal(decide("5x64x64:invariant"), "forced low:one");
    assert_int_equal(candidates.rows[row_of("high")].reason.code, FP8R_REASON_NUMERICS_CLASS);
    router.forced_row = -1;
    assert_string_equal(decide("5x64x64:invariant"), "route high:one");
}

/* A route to another class than the default's would make bits depend on M where it ends. */
static void a_route_does_not_change_the_class(void **state)
{
    (void)state;
    high.classes[0] = high.classes[1] = "high";
    build("entry Mx64x64:invariant\n" SEGMENT("1..8", "low", "one", "clear") SEGMENT("9..16", "high", "two", "clear"), 1);
    assert_string_equal(decide("5x64x64:invariant"), "default high:one");
    assert_int_equal(decision.miss, FP8R_MISS_REFUSED);
    assert_int_equal(decision.refusal.code, FP8R_REASON_NUMERICS_CLASS);
    assert_string_equal(decide("9x64x64:invariant"), "route high:two");
    high.classes[1] = "other";
    assert_string_equal(decide("9x64x64:invariant"), "default high:one");
}

/* A configuration for few rows serves a batch-invariant family where another one of its class goes on. */
static void a_configuration_of_the_class_may_end(void **state)
{
    (void)state;
    high.classes[0] = high.classes[1] = "high";
    high.second_to = 8;
    build("entry Mx64x64:invariant\n" SEGMENT("1..16", "high", "two", "clear"), 1);
    assert_string_equal(decide("5x64x64:invariant"), "route high:two");
    assert_string_equal(decide("9x64x64:invariant"), "default high:one");
    assert_int_equal(decision.refusal.code, FP8R_REASON_SHAPE_MAX);
    high.classes[1] = "other";
    assert_string_equal(decide("5x64x64:invariant"), "default high:one");
    assert_int_equal(decision.refusal.code, FP8R_REASON_NUMERICS_CLASS);
}

/* A promise about the weights, made or not, a bias or an `a` that is quantised first lose no route; what was measured with one
 * of the latter does not serve who does without. The entry that differs least decides. */
static void simpler_products_lend_their_entry(void **state)
{
    static const char *const takers[] = {"5x64x64:static", "5x64x64:bias", "5x64x64:bias=fp32", "5x64x64:a=bf16", "5x64x64:a=fp16",
                                         "5x64x64:static:bias", "5x64x64:static:bias:a=bf16"};
    static const char *const others[] = {"5x64x64:a=e5m2", "5x64x64:fp16", "5x64x64:precise", "5x64x64:invariant", "5x64x64:tensor",
                                         "5x64x64:a=bf16:precise", "2*5x64x64:bias"};
    (void)state;
    build("entry Mx64x64\n" SEGMENT("1..100", "low", "two", "clear"), 1);
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
        if (strcmp(decide(takers[i]), "route low:two") != 0) fail_msg("%s: %s, miss %d", takers[i], decide(takers[i]), (int)decision.miss);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_string_equal(decide(others[i]), "default high:one");
    build("entry Mx64x64\n" SEGMENT("1..100", "low", "two", "clear")
          "entry Mx64x64:bias\n" SEGMENT("1..100", "high", "two", "clear"), 2);
    assert_string_equal(decide("5x64x64"), "route low:two");
    assert_string_equal(decide("5x64x64:static"), "route low:two");
    assert_string_equal(decide("5x64x64:static:bias"), "route high:two");
    assert_string_equal(decide("5x64x64:static:bias:a=fp16"), "route high:two");
    build("entry Mx64x64:static\n" SEGMENT("1..100", "low", "two", "clear")
          "entry Mx64x64:a=bf16\n" SEGMENT("1..100", "low", "two", "clear"), 2);
    assert_string_equal(decide("5x64x64"), "route low:two");
    assert_string_equal(decide("5x64x64:a=fp16"), "route low:two");
    assert_string_equal(decide("5x64x64:a=bf16:bias"), "route low:two");
    build("entry Mx64x64:a=bf16\n" SEGMENT("1..100", "low", "two", "clear")
          "entry Mx64x64:bias\n" SEGMENT("1..100", "low", "two", "clear"), 2);
    assert_string_equal(decide("5x64x64"), "default high:one");
    assert_string_equal(decide("5x64x64:a=fp16"), "default high:one");
    assert_string_equal(decide("5x64x64:static:a=bf16"), "route low:two");
}

/* m_last is a promise: for every m up to it, the same decision. Random fakes and routes, own and lent. */
static void m_last_holds(void **state)
{
    static const char *const backends[] = {"high", "low", "gone"}, *const verdicts[] = {"clear", "tie"};
    uint64_t random = 9;
    (void)state;
    for (int round = 0; round < 60; round++) {
        const char *asks = round % 2 ? ":static:bias" : "";
        char body[1024], problem[64], first[200];
        size_t used = (size_t)snprintf(body, sizeof body, "entry Mx64x64\n");
        int64_t m = 0;
        for (int i = 0; i < 4; i++) {
            int64_t from = m + 1 + (int64_t)(sample_random(&random) % 30), to = from + (int64_t)(sample_random(&random) % 30);
            used += (size_t)snprintf(body + used, sizeof body - used, "  m=%d..%d backend=%s config=one rev=1 median_us=1 verdict=%s\n",
                                     (int)from, (int)to, backends[sample_random(&random) % 3], verdicts[sample_random(&random) % 2]);
            m = to;
        }
        high.m_max = (int64_t)(sample_random(&random) % 100);
        high.m_min = (int64_t)(sample_random(&random) % 40);
        low.m_min = (int64_t)(sample_random(&random) % 20);
        low.second_from = (int64_t)(sample_random(&random) % 90);
        build(body, 1);
        for (m = 1; m < 260;) {
            snprintf(problem, sizeof problem, "%dx64x64%s", (int)m, asks);
            snprintf(first, sizeof first, "%s", decide(problem));
            int64_t last = decision.m_last < 260 ? decision.m_last : 260;
            for (; m <= last; m++) {
                snprintf(problem, sizeof problem, "%dx64x64%s", (int)m, asks);
                if (strcmp(decide(problem), first) != 0)
                    fail_msg("round %d: %s up to M=%d, but at %s: %s", round, first, (int)last, problem, decide(problem));
            }
        }
    }
}

int main(void)
{
#define DECIDE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        DECIDE_TEST(the_default_is_the_first_by_priority), DECIDE_TEST(forced_is_best_effort),
        DECIDE_TEST(a_model_that_expects_less_goes_first),
        DECIDE_TEST(denied_rows_never_run),               DECIDE_TEST(a_route_decides_within_its_rows),
        DECIDE_TEST(a_route_that_cannot_be_followed_is_a_miss),
        DECIDE_TEST(beyond_the_last_row_only_the_default_goes_on),
        DECIDE_TEST(neighbours_within_a_factor_decide),   DECIDE_TEST(neighbours_must_agree_and_be_clear),
        DECIDE_TEST(without_leave_to_guess),              DECIDE_TEST(one_class_serves_every_m),
        DECIDE_TEST(a_forced_class_holds_the_family),     DECIDE_TEST(a_route_does_not_change_the_class),
        DECIDE_TEST(a_configuration_of_the_class_may_end),
        DECIDE_TEST(m_last_holds),                        DECIDE_TEST(captures_need_no_workspace),
        DECIDE_TEST(routes_of_the_other_mode_are_better_than_none), DECIDE_TEST(simpler_products_lend_their_entry),
    };
    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
