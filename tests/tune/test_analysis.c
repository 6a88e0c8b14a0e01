/* From samples to routes: verdicts, borders and segments on times whose truth is known, and the same answer in any order.
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

#include "measure/random.h"
#include "tune/analysis.h"

enum { ROUNDS = 60 };

static struct fp8r_tool_error failure;
static int32_t machine_kind; /* of the machine that the samples are of */
static struct sample_candidate candidates[3] = {
    {.name = "cpu:one", .rev = "1"}, {.name = "cpu:two", .rev = "1"}, {.name = "blas:sgemm", .rev = "2"}};

/* Times of one problem: the means, and noise of this share around them. */
struct truth {
    int64_t m;
    double us[3];
    double noise;
    bool is_noisy;
    int fallback;
    int64_t default_last;
};

static void write_case(struct sample_writer *writer, const struct truth *truth, struct fp8r_random *random)
{
    struct sample_case it = {.weight = 1, .candidates = candidates, .count = 3, .fallback = truth->fallback,
                             .default_last = truth->default_last};
    int number;
    snprintf(it.problem, sizeof it.problem, "%lldx256x512", (long long)truth->m);
    assert_int_equal(sample_writer_case(writer, &it, &number, &failure), FP8R_EXIT_GOOD);
    for (int phase = SAMPLE_GRID; phase <= SAMPLE_CONFIRM; phase += SAMPLE_CONFIRM - SAMPLE_GRID)
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < 3; i++) {
                double us = truth->us[i] * (1 + truth->noise * (2 * fp8r_random_unit(random) - 1));
                struct sample sample = {.us = us, .round = round, .phase = (int16_t)phase};
                assert_int_equal(sample_writer_sample(writer, number, i, &sample, &failure), FP8R_EXIT_GOOD);
            }
    assert_int_equal(sample_writer_done(writer, number, truth->is_noisy, &failure), FP8R_EXIT_GOOD);
}

/* The route file of these truths, written in the order given; free it. */
static char *routes_of(const struct truth *truths, const int *order, int count)
{
    char path[] = "/tmp/fp8route-analysis-XXXXXX", *text = NULL;
    struct fp8r_route_file header = {.identity = {.kind = machine_kind, .threads = 2, .last_level_bytes = 1 << 20},
                                     .is_cold = true}, file;
    if (machine_kind == FP8R_DEVICE_CUDA)
        header.identity = (struct fp8r_identity){.kind = machine_kind, .arch = 90, .sm_count = 132, .bandwidth_class = 5000};
    struct samples samples = {0};
    struct analysis analysis;
    struct sample_writer *writer;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_int_equal(sample_writer_open(path, &header, 1, 0.02, &writer, NULL, &failure), FP8R_EXIT_GOOD);
    for (int i = 0; i < count; i++) {
        struct fp8r_random random = {(uint64_t)truths[order[i]].m};
        write_case(writer, &truths[order[i]], &random);
    }
    assert_int_equal(sample_writer_close(writer, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(analysis_init(&samples, 0, &analysis, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(analysis_routes(&samples, 0, &analysis, &file, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(fp8r_route_file_format(&file, &text), FP8R_OK);
    fp8r_route_file_fini(&file);
    analysis_fini(&analysis);
    samples_fini(&samples);
    unlink(path);
    return text;
}

static const struct truth truths[] = {
    {1, {100, 150, 400}, 0.02, false, 0, 0},  /* the default, clearly */
    {4, {100, 101, 400}, 0.02, false, 0, 0},  /* the default, within the noise of another */
    {16, {150, 100, 400}, 0.02, false, 0, 0}, /* another, clearly */
    {64, {300, 200, 400}, 0.02, false, 0, 0}, /* the same */
    {256, {900, 700, 400}, 0.02, false, 0, 0},
    {1024, {900, 700, 400}, 0.02, true, 0, 0}, /* marked noisy: the default stays whatever the times */
};
enum { TRUTHS = sizeof truths / sizeof *truths };

static void segments_say_what_is_true(void **state)
{
    (void)state;
    static const int order[TRUTHS] = {0, 1, 2, 3, 4, 5};
    static const char *const expected[] = {
        "m=1..2 backend=cpu config=one",     "verdict=clear",
        "m=3..8 backend=cpu config=one",     "verdict=tie",
        "m=9..128 backend=cpu config=two",   "verdict=clear",
        "m=129..512 backend=blas config=sgemm", "verdict=clear",
        "m=513..1024 backend=cpu config=one", "verdict=tie",
    };
    char *text = routes_of(truths, order, TRUTHS);
    const char *at = text;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        at = strstr(at, expected[i]);
        if (!at)
            print_error("missing behind the ones before: %s\n%s", expected[i], text);
        assert_non_null(at);
    }
    free(text);
}

/* cpu:two wins at all three, but is the default at the middle one; blas:sgemm is measured everywhere. */
static void the_default_has_a_segment_of_its_own(void **state)
{
    (void)state;
    static const struct truth changing[] = {
        {1, {150, 100, 400}, 0.02, false, 0, 0}, {4, {150, 100, 400}, 0.02, false, 1, 0}, {16, {150, 100, 400}, 0.02, false, 0, 0}};
    static const int order[] = {0, 1, 2};
    char *text = routes_of(changing, order, 3), *at = text;
    static const char *const ranges[] = {"m=1..2 ", "m=3..8 ", "m=9..16 "};
    for (int i = 0; i < 3; i++) {
        at = strstr(at, ranges[i]);
        assert_non_null(at);
        char *end = strchr(at, '\n');
        assert_non_null(end);
        *end = '\0';
        assert_non_null(strstr(at, "config=two"));
        assert_non_null(strstr(at, "runner_up=cpu:one"));
        assert_non_null(strstr(at, "verdict=clear"));
        assert_int_equal(strstr(at, "gain=1..1 ") != NULL, i == 1);
        at = end + 1;
    }
    free(text);
}

/* Ties at both, of another default each: the rows between keep theirs, as far as the samples say which it is. */
static void ties_end_where_the_default_changes(void **state)
{
    (void)state;
    static const int order[] = {0, 1};
    struct truth ties[] = {{16, {100, 101, 400}, 0.02, false, 0, 24}, {26, {101, 100, 400}, 0.02, false, 1, 1 << 24}};
    static const struct {
        int32_t kind;
        int64_t default_last;
        const char *first, *second;
    } cases[] = {{FP8R_DEVICE_CPU, 24, "m=16..24 ", "m=25..26 "},
                 {FP8R_DEVICE_CPU, 0, "m=16..20 ", "m=21..26 "},
                 {FP8R_DEVICE_CUDA, 24, "m=16..16 ", "m=17..26 "},
                 {FP8R_DEVICE_CUDA, 0, "m=16..16 ", "m=17..26 "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine_kind = cases[i].kind;
        ties[0].default_last = cases[i].default_last;
        char *text = routes_of(ties, order, 2);
        machine_kind = FP8R_DEVICE_CPU;
        if (!strstr(text, cases[i].first) || !strstr(text, cases[i].second))
            fail_msg("not %s and %s:\n%s", cases[i].first, cases[i].second, text);
        free(text);
    }
}

/* A GPU's kernels work in whole tiles: what was measured holds for fewer rows, not for more. The file says where it was
 * measured, and how the best other backend stands to the choice. */
static void a_gpu_has_steps(void **state)
{
    (void)state;
    static const int order[TRUTHS] = {0, 1, 2, 3, 4, 5};
    static const char *const expected[] = {
        "m=1..1 at=1 backend=cpu config=one",       "rival=blas:sgemm rival_us=4", " rival_gain=3.9", "gain=1..1 verdict=clear",
        "m=2..4 at=4 backend=cpu config=one",       "verdict=tie",
        "m=5..64 at=16,64 backend=cpu config=two",  "rival=blas:sgemm", " rival_gain=1.9", "..2.0", "verdict=clear",
        /* the last one is noisy, but every time of it is shorter than all of the default's */
        "m=65..1024 at=256,1024 backend=blas config=sgemm", "runner_up=cpu:two", "rival=cpu:two", " rival_gain=1.7",
        "verdict=clear",
    };
    machine_kind = FP8R_DEVICE_CUDA;
    char *text = routes_of(truths, order, TRUTHS);
    machine_kind = FP8R_DEVICE_CPU;
    const char *at = text;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        at = strstr(at, expected[i]);
        if (!at)
            fail_msg("missing behind the ones before: %s\n%s", expected[i], text);
    }
    free(text);
}

static void order_does_not_matter(void **state)
{
    (void)state;
    static const int orders[3][TRUTHS] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 0, 5, 1, 4, 3}};
    char *first = routes_of(truths, orders[0], TRUTHS);
    for (int i = 1; i < 3; i++) {
        char *other = routes_of(truths, orders[i], TRUTHS);
        assert_string_equal(first, other);
        free(other);
    }
    free(first);
}

/* 1.5 % is real but not worth a change; 40 % of spread says nothing. */
static void small_gains_and_noise_change_nothing(void **state)
{
    (void)state;
    static const int order[1] = {0};
    static const struct truth small = {8, {101.5, 100, 400}, 0.01, false, 0, 0}, loud = {8, {104, 100, 400}, 0.4, false, 0, 0};
    const struct truth *both[2] = {&small, &loud};
    for (int i = 0; i < 2; i++) {
        char *text = routes_of(both[i], order, 1);
        assert_non_null(strstr(text, "config=one"));
        assert_non_null(strstr(text, "verdict=tie"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_say_what_is_true),
        cmocka_unit_test(the_default_has_a_segment_of_its_own),
        cmocka_unit_test(ties_end_where_the_default_changes),
        cmocka_unit_test(a_gpu_has_steps),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(small_gains_and_noise_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
