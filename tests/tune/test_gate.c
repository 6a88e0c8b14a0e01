/* The gate without a clock: which routes it takes and in which order, what verdicts add up to, and how often
 * it would be wrong on real noise. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/random.h"
#include "tune/gate_routes.h"
#include "tune/samples.h"

enum { ENTRIES = 8, SEGMENTS = 3, ROUTES = ENTRIES * SEGMENTS };

static struct fp8r_tool_error failure;
static struct fp8r_segment segments[ENTRIES][SEGMENTS];
static struct fp8r_entry entries[ENTRIES];
static struct fp8r_finding findings[ROUTES];

/* ---- A file ---- */

static struct fp8r_route_file make_file(void)
{
    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = (struct fp8r_entry){.key = {.batch = 1,
                                                 .n = 512 + i,
                                                 .k = 1024,
                                                 .dtype_a = FP8R_DTYPE_E4M3,
                                                 .dtype_b = FP8R_DTYPE_E4M3,
                                                 .dtype_out = FP8R_DTYPE_BF16,
                                                 .scale_a = FP8R_SCALE_ROW,
                                                 .scale_b = FP8R_SCALE_ROW,
                                                 .align_bytes = 16},
                                         .segment_count = SEGMENTS,
                                         .segments = segments[i]};
        static const int64_t firsts[SEGMENTS] = {1, 2, 17}, lasts[SEGMENTS] = {1, 16, 256};
        for (int j = 0; j < SEGMENTS; j++) {
            segments[i][j] = (struct fp8r_segment){
                .m_first = firsts[j], .m_last = lasts[j], .backend = "cpu", .config = "one"};
        }
    }
    return (struct fp8r_route_file){.table = {.entries = entries, .count = ENTRIES}};
}

static struct gate_routes list(const struct fp8r_route_file *file, size_t finding_count, double share,
                               uint64_t seed)
{
    struct fp8r_table_report report = {.fits = true, .findings = findings, .count = finding_count};
    const struct fp8r_tune_families all = {0};
    const struct gate_wanted wanted = {.families = &all, .shard = 1, .shards = 1, .share = share};
    struct gate_routes routes;
    assert_int_equal(gate_routes_init(file, &report, &wanted, seed, &routes, &failure), FP8R_EXIT_GOOD);
    return routes;
}

static void takes_borders_and_middle(void **state)
{
    (void)state;
    static const int64_t wanted[SEGMENTS][GATE_POINTS] = {{1}, {2, 5, 16}, {17, 65, 256}};
    struct fp8r_route_file file = make_file();
    struct gate_routes routes = list(&file, 0, 1, 3);
    assert_int_equal(routes.count, ROUTES);
    assert_int_equal(routes.all, ROUTES);
    for (size_t i = 0; i < routes.count; i++) {
        const struct gate_route *route = &routes.items[i];
        long segment = route->segment - route->entry->segments;
        assert_int_equal(route->point_count, segment == 0 ? 1 : GATE_POINTS);
        for (int j = 0; j < route->point_count; j++)
            assert_int_equal(route->points[j].m, wanted[segment][j]);
        assert_string_equal(route->label, "cpu:one");
        assert_int_equal(route->verdict, GATE_LEFT);
    }
    gate_routes_fini(&routes);
}

/* A file that says where it was measured is measured there again. */
static void takes_the_rows_that_were_measured(void **state)
{
    (void)state;
    static const int64_t wanted[SEGMENTS][GATE_POINTS] = {{1}, {2, 16}, {24, 128, 192}};
    struct fp8r_route_file file = make_file();
    for (int i = 0; i < ENTRIES; i++) {
        segments[i][0].at = (struct fp8r_rows_list){{1}, 1};
        segments[i][1].at = (struct fp8r_rows_list){{2, 16}, 2};
        segments[i][2].at = (struct fp8r_rows_list){{24, 32, 128, 192}, 4};
    }
    struct gate_routes routes = list(&file, 0, 1, 3);
    for (size_t i = 0; i < routes.count; i++) {
        const struct gate_route *route = &routes.items[i];
        long segment = route->segment - route->entry->segments;
        assert_int_equal(route->point_count, segment + 1);
        for (int j = 0; j < route->point_count; j++)
            assert_int_equal(route->points[j].m, wanted[segment][j]);
    }
    gate_routes_fini(&routes);
}

/* Routes of an entry follow each other, and another seed takes the entries in another order. */
static void keeps_entries_together(void **state)
{
    (void)state;
    struct fp8r_route_file file = make_file();
    const struct fp8r_entry *first[4];
    int distinct = 1;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct gate_routes routes = list(&file, 0, 1, seed);
        for (size_t i = 0; i < routes.count; i++) {
            assert_ptr_equal(routes.items[i].entry, routes.items[i / SEGMENTS * SEGMENTS].entry);
            assert_ptr_equal(routes.items[i].segment, &routes.items[i].entry->segments[i % SEGMENTS]);
        }
        first[seed] = routes.items[0].entry;
        distinct += seed > 0 && first[seed] != first[0];
        gate_routes_fini(&routes);
    }
    assert_true(distinct > 1);
}

static void draws_a_share_by_the_seed(void **state)
{
    (void)state;
    struct fp8r_route_file file = make_file();
    struct gate_routes one = list(&file, 0, 0.2, 5), same = list(&file, 0, 0.2, 5),
                       other = list(&file, 0, 0.2, 6);
    assert_int_equal(one.count, 5); /* of 24, rounded up */
    assert_int_equal(one.all, ROUTES);
    bool differs = false;
    for (size_t i = 0; i < one.count; i++) {
        assert_ptr_equal(one.items[i].segment, same.items[i].segment);
        differs |= one.items[i].segment != other.items[i].segment;
    }
    assert_true(differs);
    gate_routes_fini(&one);
    gate_routes_fini(&same);
    gate_routes_fini(&other);
    one = list(&file, 0, 0, 5);
    assert_int_equal(one.count, 1);
    gate_routes_fini(&one);
}

/* Every entry is one shard's, and of families that are named no other entry's routes are listed. */
static void divides_entries(void **state)
{
    (void)state;
    struct fp8r_route_file file = make_file();
    struct fp8r_table_report report = {.fits = true};
    struct fp8r_tune_family named = {.key = entries[3].key};
    const struct fp8r_tune_families all = {0}, one = {.items = &named, .count = 1};
    struct gate_routes routes;
    int seen[ENTRIES] = {0};
    for (int shard = 1; shard <= 3; shard++) {
        const struct gate_wanted wanted = {.families = &all, .shard = shard, .shards = 3, .share = 1};
        assert_int_equal(gate_routes_init(&file, &report, &wanted, 1, &routes, &failure), FP8R_EXIT_GOOD);
        assert_int_equal(routes.all, ROUTES);
        for (size_t i = 0; i < routes.count; i++)
            seen[routes.items[i].entry - entries]++;
        gate_routes_fini(&routes);
    }
    for (int i = 0; i < ENTRIES; i++)
        assert_int_equal(seen[i], SEGMENTS);
    struct gate_wanted wanted = {.families = &one, .shard = 1, .shards = 1, .share = 1};
    assert_int_equal(gate_routes_init(&file, &report, &wanted, 1, &routes, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(routes.count, SEGMENTS);
    assert_ptr_equal(routes.items[0].entry, &entries[3]);
    gate_routes_fini(&routes);
    named.key.n = 7;
    assert_int_equal(gate_routes_init(&file, &report, &wanted, 1, &routes, &failure), FP8R_EXIT_USAGE);
    assert_non_null(strstr(failure.text, "the file has no such entry"));
}

/* Three stale routes, one that misses. Any share has the stale ones first. */
static void takes_stale_routes_first(void **state)
{
    (void)state;
    struct fp8r_route_file file = make_file();
    for (int i = 0; i < 3; i++)
        findings[i] = (struct fp8r_finding){.kind = FP8R_FINDING_STALE,
                                            .entry = &entries[2 * i],
                                            .segment = &segments[2 * i][i],
                                            .sentence = "old"};
    findings[3] = (struct fp8r_finding){.kind = FP8R_FINDING_CONFIG,
                                        .entry = &entries[7],
                                        .segment = &segments[7][0],
                                        .sentence = "no such configuration"};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct gate_routes routes = list(&file, 4, 0.2, seed);
        assert_int_equal(routes.stale, 3);
        for (size_t i = 0; i < routes.count; i++)
            assert_int_equal(routes.items[i].is_stale, i < 3);
        gate_routes_fini(&routes);
    }
    struct gate_routes routes = list(&file, 4, 1, 0);
    int misses = 0;
    for (size_t i = 0; i < routes.count; i++) {
        if (routes.items[i].segment != &segments[7][0]) continue;
        assert_int_equal(routes.items[i].verdict, GATE_UNMEASURED);
        assert_string_equal(routes.items[i].why, "no such configuration");
        misses++;
    }
    assert_int_equal(misses, 1);
    gate_routes_fini(&routes);
}

/* ---- Adding up ---- */

static struct gate_comparison compared(enum fp8r_paired_verdict verdict, double ratio)
{
    return (struct gate_comparison){.result = {.verdict = verdict, .ratio = ratio}};
}

static void the_worst_decides(void **state)
{
    (void)state;
    struct gate_point point = {.m = 4, .count = 2};
    point.against[0] = compared(FP8R_PAIRED_FINE, 0.9);
    assert_int_equal(gate_point_verdict(&(struct gate_point){.count = 0}),
                     GATE_FINE); /* nobody else can run it */
    point.against[1] = compared(FP8R_PAIRED_FINE, 1.01);
    assert_int_equal(gate_point_verdict(&point), GATE_FINE);
    point.against[1] = compared(FP8R_PAIRED_GO_ON, 1.5);
    assert_int_equal(gate_point_verdict(&point), GATE_INCONCLUSIVE);
    point.against[0] = compared(FP8R_PAIRED_REGRESSION, 1.05);
    assert_int_equal(gate_point_verdict(&point), GATE_REGRESSION);
    struct gate_route route = {.point_count = 2, .points = {{.m = 1, .count = 1}, point}};
    const struct gate_point *at = NULL;
    route.points[0].against[0] = compared(FP8R_PAIRED_FINE, 1.9);
    const struct gate_comparison *worst = gate_route_worst(&route, &at);
    assert_non_null(worst);
    assert_true(worst->result.ratio == 1.05); /* a regression of 5 % is worse than 50 % that nobody knows */
    assert_int_equal(at->m, 4);
    assert_null(gate_route_worst(&(struct gate_route){.point_count = 1}, &at));
}

static void codes_take_precedence(void **state)
{
    (void)state;
    static const struct {
        enum gate_verdict verdicts[3];
        int code;
    } cases[] = {{{GATE_FINE, GATE_FINE, GATE_LEFT}, FP8R_EXIT_GOOD},
                 {{GATE_LEFT, GATE_LEFT, GATE_LEFT}, FP8R_EXIT_UNMEASURED},
                 {{GATE_FINE, GATE_UNMEASURED, GATE_FINE}, FP8R_EXIT_UNMEASURED},
                 {{GATE_FINE, GATE_UNMEASURED, GATE_INCONCLUSIVE}, FP8R_EXIT_INCONCLUSIVE},
                 {{GATE_REGRESSION, GATE_UNMEASURED, GATE_INCONCLUSIVE}, FP8R_EXIT_FAILED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate_route items[3] = {0};
        for (int j = 0; j < 3; j++)
            items[j].verdict = cases[i].verdicts[j];
        assert_int_equal(gate_routes_exit(&(struct gate_routes){.items = items, .count = 3, .all = 3}),
                         cases[i].code);
    }
    assert_int_equal(gate_routes_exit(&(struct gate_routes){0}), FP8R_EXIT_UNMEASURED);
}

static void the_worst_is_first(void **state)
{
    (void)state;
    struct gate_route items[4] = {{.verdict = GATE_LEFT},
                                  {.verdict = GATE_FINE},
                                  {.verdict = GATE_REGRESSION},
                                  {.verdict = GATE_REGRESSION}};
    for (int i = 0; i < 4; i++) {
        items[i].segment = &segments[0][0];
        items[i].point_count = 1;
        items[i].points[0] = (struct gate_point){.m = i, .count = 1};
        items[i].points[0].against[0] =
            compared(i < 2 ? FP8R_PAIRED_FINE : FP8R_PAIRED_REGRESSION, 1 + 0.1 * i);
    }
    qsort(items, 4, sizeof *items, gate_route_compare);
    static const int64_t order[] = {3, 2, 1, 0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(items[i].points[0].m, order[i]);
}

/* ---- Real noise ---- */

enum { RESAMPLINGS = 1000, PAIRS = 120, BLOCK = 5 };

/* All pairs of two backends that are the same, case by case. */
struct noise {
    double a_us[1024], b_us[1024];
    size_t count;
};

static void read_noise(struct noise *noise)
{
    struct samples samples = {0};
    if (samples_read(&samples, FP8R_TEST_DATA "/gate_samples.jsonl", &failure) != FP8R_EXIT_GOOD)
        fail_msg("%s", failure.text);
    noise->count = 0;
    for (size_t i = 0; i < samples.case_count; i++) {
        const struct sample_case *it = &samples.cases[i];
        int steady = sample_case_candidate(it, "steady:loops"),
            rival = sample_case_candidate(it, "rival:loops");
        assert_true(steady >= 0 && rival >= 0);
        noise->count +=
            sample_pairs(&it->candidates[steady], &it->candidates[rival], SAMPLE_GATE,
                         noise->a_us + noise->count, noise->b_us + noise->count, 1024 - noise->count);
    }
    samples_fini(&samples);
    assert_in_range(noise->count, 400, 1023);
}

/* Blocks of neighbours keep what noise has of memory; a coin says which of the two equal ones is the chosen
 * one. */
static enum fp8r_paired_verdict resample(const struct noise *noise, const struct fp8r_sequential *sequential,
                                         double loss, struct fp8r_random *random)
{
    struct fp8r_pair pairs[PAIRS];
    struct fp8r_paired_result result;
    for (size_t i = 0; i < PAIRS; i += BLOCK) {
        size_t from = (size_t)fp8r_random_below(random, (int64_t)(noise->count - BLOCK + 1));
        bool is_swapped = fp8r_random_below(random, 2) == 1;
        for (size_t j = 0; j < BLOCK; j++) {
            double a = noise->a_us[from + j], b = noise->b_us[from + j];
            pairs[i + j] = (struct fp8r_pair){.base_us = (is_swapped ? b : a) * (1 + loss),
                                              .other_us = is_swapped ? a : b};
        }
    }
    assert_int_equal(fp8r_sequential_decide(sequential, pairs, PAIRS, &result, &failure), FP8R_EXIT_GOOD);
    return result.verdict;
}

static int count_regressions(double loss)
{
    static struct noise noise;
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_GATE);
    struct fp8r_sequential sequential;
    struct fp8r_random random = {1};
    int found = 0;
    options.candidates = GATE_RIVALS;
    assert_int_equal(fp8r_sequential_init(&sequential, &options, &failure), FP8R_EXIT_GOOD);
    read_noise(&noise);
    for (int i = 0; i < RESAMPLINGS; i++)
        found += resample(&noise, &sequential, loss, &random) == FP8R_PAIRED_REGRESSION;
    print_message("a loss of %g %%: %d of %d are called a regression\n", 100 * loss, found, RESAMPLINGS);
    return found;
}

static void catches_a_loss_of_ten_percent(void **state)
{
    (void)state;
    assert_true(count_regressions(0.10) >= 0.99 * RESAMPLINGS);
}

static void flags_no_equal_backends(void **state)
{
    (void)state;
    assert_true(count_regressions(0) <= 0.01 * RESAMPLINGS);
}

/* Where the loss is the margin itself, the answer is open, and an alarm would be one by luck. */
static void seldom_flags_the_margin_itself(void **state)
{
    (void)state;
    assert_true(count_regressions(0.02) <= 0.03 * RESAMPLINGS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_borders_and_middle),
        cmocka_unit_test(takes_the_rows_that_were_measured),  cmocka_unit_test(keeps_entries_together),
        cmocka_unit_test(draws_a_share_by_the_seed), cmocka_unit_test(takes_stale_routes_first),
        cmocka_unit_test(divides_entries),
        cmocka_unit_test(the_worst_decides),         cmocka_unit_test(codes_take_precedence),
        cmocka_unit_test(the_worst_is_first),        cmocka_unit_test(catches_a_loss_of_ten_percent),
        cmocka_unit_test(flags_no_equal_backends),   cmocka_unit_test(seldom_flags_the_margin_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
