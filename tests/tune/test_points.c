/* Points into segments, families from texts, case lists.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fake.h"
#include "tune/border.h"
#include "tune/entrants.h"
#include "tune/families.h"
#include "tune/points.h"
#include "tune/segment_text.h"

static struct fp8r_entrant entrants[3] = {{"cpu", "skinny", "r1", "cpu:skinny"},
                                          {"cpu", "packed", "r1", "cpu:packed"},
                                          {"blas", "sgemm", "r2", "blas:sgemm"}};

static void borders(void **state)
{
    (void)state;
    static const struct {
        struct fp8r_border border;
        int64_t last;
    } cases[] = {
        {{.m = 1, .m_next = 2}, 1},
        {{.m = 2, .m_next = 4}, 2},
        {{.m = 8, .m_next = 16}, 11},
        {{.m = 16, .m_next = 64}, 32},
        {{.m = 7, .m_next = 8}, 7},
        {{.m = 1, .m_next = 1000000}, 1000},
        {{.m = 16, .m_next = 64, .has_steps = true}, 16},
        /* between two defaults the first goes as far as it holds */
        {{.m = 16, .m_next = 64, .stays = true}, 32},
        {{.m = 16, .m_next = 64, .stays = true, .default_last = 24}, 32}, /* a third may follow */
        {{.m = 16, .m_next = 64, .stays = true, .default_last = 60}, 60},
        {{.m = 16, .m_next = 64, .stays = true, .default_last = 80}, 63},
        {{.m = 16, .m_next = 64, .stays = true, .default_last = 24, .has_steps = true}, 16},
        /* where one of them was beaten */
        {{.m = 16, .m_next = 64, .default_last = 24}, 32},
        {{.m = 16, .m_next = 64, .default_last = 60}, 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(fp8r_border_place(&cases[i].border), cases[i].last);
}

/* Ties with another default each: neither side was beaten, so every row in between keeps its own default. */
static void ties_end_where_the_default_changes(void **state)
{
    (void)state;
    double times[2][3] = {{10, 11, 90}, {20, 19, 91}};
    struct fp8r_point list[2] = {{16, 0, 0, false, 1, 1, times[0], 24}, {26, 1, 1, false, 1, 1, times[1], 1 << 24}};
    struct fp8r_points points = {entrants, 3, list, 2, 2};
    struct fp8r_segment made[2];
    assert_int_equal(fp8r_points_segments(&points, made), 2);
    assert_int_equal(made[0].m_last, 24);
    assert_int_equal(made[1].m_first, 25);
    list[0].default_last = 0; /* not known */
    assert_int_equal(fp8r_points_segments(&points, made), 2);
    assert_int_equal(made[0].m_last, 20);
    list[0].default_last = 24;
    list[1].fallback = 0; /* one default, and its rival won at the second */
    list[1].gain_low = list[1].gain_high = 1.2;
    assert_int_equal(fp8r_points_segments(&points, made), 2);
    assert_int_equal(made[0].m_last, 20);
    list[1].fallback = 2; /* two defaults, and the rival of one won, at the second or at the first */
    assert_int_equal(fp8r_points_segments(&points, made), 2);
    assert_int_equal(made[0].m_last, 20);
    list[1] = (struct fp8r_point){26, 1, 1, false, 1, 1, times[1], 1 << 24};
    list[0].fallback = 2;
    list[0].gain_low = list[0].gain_high = 1.2;
    assert_int_equal(fp8r_points_segments(&points, made), 2);
    assert_int_equal(made[0].m_last, 20);
}

/* skinny up to 8, then packed (a tie at 16, clear beyond). */
static void segments(void **state)
{
    (void)state;
    double times[5][3] = {{10, 40, 90}, {20, 45, 91}, {80, 50, 92}, {300, 60, 93}, {900, 120, 94}};
    struct fp8r_point list[5] = {{2, 0, 1, true, 3.0, 4.0, times[0], 0},
                                 {8, 0, 1, true, 2.0, 2.5, times[1], 0},
                                 {16, 1, 1, false, 1, 1, times[2], 0},
                                 {64, 1, 1, true, 1, 1, times[3], 0},
                                 {256, 1, 1, true, 1, 1, times[4], 0}};
    struct fp8r_points points = {entrants, 3, list, 5, 5};
    struct fp8r_segment made[5];
    assert_int_equal(fp8r_points_segments(&points, made), 3);
    assert_int_equal(made[0].m_first, 2);
    assert_int_equal(made[0].m_last, 11);
    assert_string_equal(made[0].backend, "cpu");
    assert_string_equal(made[0].config, "skinny");
    assert_string_equal(made[0].rev, "r1");
    assert_string_equal(made[0].runner_up, "cpu:packed");
    assert_true(fabs(made[0].median_us - sqrt(200)) < 1e-9);
    assert_true(fabs(made[0].runner_up_us - sqrt(1800)) < 1e-9);
    assert_true(made[0].gain_low == 2.0 && made[0].gain_high == 4.0 && made[0].is_clear);
    assert_int_equal(made[1].m_first, 12);
    assert_int_equal(made[1].m_last, 32);
    assert_false(made[1].is_clear);
    assert_string_equal(made[1].runner_up, "cpu:skinny");
    assert_int_equal(made[2].m_first, 33);
    assert_int_equal(made[2].m_last, 256);
    assert_string_equal(made[2].runner_up, "blas:sgemm");
}

/* An entrant that was dropped at one point is no runner-up of the whole segment; alone means none. */
static void runners_up_were_measured(void **state)
{
    (void)state;
    double times[2][3] = {{10, 11, 90}, {20, 0, 91}};
    struct fp8r_point list[2] = {{1, 0, 0, true, 1, 1, times[0], 0}, {2, 0, 0, true, 1, 1, times[1], 0}};
    struct fp8r_points points = {entrants, 3, list, 2, 2};
    struct fp8r_segment made[2];
    assert_int_equal(fp8r_points_segments(&points, made), 1);
    assert_string_equal(made[0].runner_up, "blas:sgemm");
    points.entrant_count = 1;
    assert_int_equal(fp8r_points_segments(&points, made), 1);
    assert_string_equal(made[0].runner_up, "");
    assert_true(made[0].runner_up_us == 0);
    points.count = 0;
    assert_int_equal(fp8r_points_segments(&points, made), 0);
}

/* One choice, but the default at one M and in place of it at the next: what a route says of its gain must hold for all of
 * its M. And who was measured at no point of the one may be the runner-up of the other. */
static void the_default_has_a_segment_of_its_own(void **state)
{
    (void)state;
    double times[4][3] = {{10, 20, 30}, {20, 0, 0}, {40, 60, 0}, {80, 160, 0}};
    struct fp8r_point list[4] = {{1, 0, 1, true, 1.8, 2.2, times[0], 0},
                                 {4, 0, 0, true, 1, 1, times[1], 0},
                                 {16, 0, 1, true, 1.3, 1.6, times[2], 0},
                                 {64, 0, 1, true, 1.9, 2.1, times[3], 0}};
    struct fp8r_points points = {entrants, 3, list, 4, 4};
    struct fp8r_segment made[4];
    assert_int_equal(fp8r_points_segments(&points, made), 3);
    assert_true(made[0].gain_low == 1.8 && made[0].gain_high == 2.2);
    assert_true(made[1].gain_low == 1 && made[1].gain_high == 1);
    assert_string_equal(made[1].runner_up, ""); /* all others were far behind */
    assert_true(made[2].gain_low == 1.3 && made[2].gain_high == 2.1);
    assert_string_equal(made[2].runner_up, "cpu:packed");
    assert_true(fabs(made[2].runner_up_us - sqrt(60 * 160)) < 1e-9);
    /* measured at one of two points: its time is the segment's by the ratio at that one */
    times[2][1] = 0;
    assert_int_equal(fp8r_points_segments(&points, made), 3);
    assert_string_equal(made[2].runner_up, "cpu:packed");
    assert_true(fabs(made[2].runner_up_us - 2 * sqrt(40 * 80)) < 1e-9);
    list[1].gain_low = list[1].gain_high = 0; /* no default was raced there */
    list[2] = (struct fp8r_point){16, 0, 0, true, 1, 1, times[2], 0};
    assert_int_equal(fp8r_points_segments(&points, made), 4);
}

static void family_texts(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"4096x14336", "Mx4096x14336"},
                                           {"Mx4096x14336", "Mx4096x14336"},
                                           {"16*512x128:fp16", "16*Mx512x128:fp16"},
                                           {"16*Mx512x128:bias", "16*Mx512x128:bias"},
                                           {"64x64:tensor:ta", "Mx64x64:tensor:ta"}};
    struct fp8r_tool_error error = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct fp8r_tune_families families = {0};
        if (fp8r_families_add(&families, pairs[i][0], &error) != 0) fail_msg("%s", error.text);
        assert_int_equal(families.count, 1);
        assert_string_equal(families.items[0].text, pairs[i][1]);
        assert_int_equal(fp8r_families_add(&families, pairs[i][1], &error), 0);
        assert_int_equal(families.count, 1);
        fp8r_families_fini(&families);
    }
}

static void bad_families(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "x", "64", "8x64x64", "0x64", "64x0", "64x64:nonsense", "Mx64"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fp8r_tool_error error = {0};
        struct fp8r_tune_families families = {0};
        if (fp8r_families_add(&families, texts[i], &error) != FP8R_EXIT_USAGE)
            fail_msg("\"%s\" was taken", texts[i]);
        assert_true(error.text[0] != '\0');
        assert_int_equal(families.count, 0);
        fp8r_families_fini(&families);
    }
}

static void lists_of_m(void **state)
{
    (void)state;
    struct fp8r_tool_error error = {0};
    struct fp8r_tune_families families = {0};
    const int64_t given[] = {7, 1, 7, 3};
    assert_int_equal(fp8r_families_add_problem(&families, "5x64x64", &error), 0);
    assert_int_equal(fp8r_families_add_problem(&families, "2x64x64", &error), 0);
    assert_int_equal(fp8r_families_add(&families, "32x64", &error), 0);
    assert_int_equal(fp8r_families_set_ms(&families, NULL, 0, &error), 0);
    assert_int_equal(families.count, 2);
    assert_int_equal(families.items[0].m_count, 2);
    assert_int_equal(families.items[0].ms[0], 2);
    assert_int_equal(families.items[0].ms[1], 5);
    assert_int_equal(families.items[1].m_count, 12);
    assert_int_equal(families.items[1].ms[11], 2048);
    assert_int_equal(fp8r_families_set_ms(&families, given, 4, &error), 0);
    assert_int_equal(families.items[0].m_count, 3);
    assert_int_equal(families.items[0].ms[2], 7);
    fp8r_families_fini(&families);
}

static void write_list(char path[64], const char *text)
{
    snprintf(path, 64, "/tmp/fp8route-test-%ld.txt", (long)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void case_lists(void **state)
{
    (void)state;
    struct fp8r_tool_error error = {0};
    struct fp8r_tune_families families = {0};
    char path[64];
    write_list(path, "# a list\n\n  3x64x64   # with a comment\n32x48\r\n16*Mx8x8\n4x64x64");
    assert_int_equal(fp8r_families_read(&families, path, &error), 0);
    assert_int_equal(families.count, 3);
    assert_int_equal(families.items[0].m_count, 2);
    fp8r_families_fini(&families);
    write_list(path, "3x64x64\n\nnonsense\n");
    assert_int_equal(fp8r_families_read(&families, path, &error), FP8R_EXIT_BAD_DATA);
    assert_non_null(strstr(error.text, "line 3"));
    fp8r_families_fini(&families);
    write_list(path, "# nothing\n");
    assert_int_equal(fp8r_families_read(&families, path, &error), FP8R_EXIT_BAD_DATA);
    unlink(path);
    assert_int_equal(fp8r_families_read(&families, path, &error), FP8R_EXIT_BAD_DATA);
    fp8r_families_fini(&families);
}

/* The default that others are raced against is the library's own: a model may put a later row before the first. */
static void fallbacks_are_the_defaults(void **state)
{
    static const struct {
        double low_us;
        const char *label;
    } cases[] = {{0, "high:one"}, {11, "high:one"}, {9, "low:one"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake high = {.expected_us = 10}, low = {.expected_us = cases[i].low_us};
        const fp8r_backend of_high = fake_backend(&high, "high", 2000), of_low = fake_backend(&low, "low", 1000);
        const fp8r_backend *const outside[] = {&of_high, &of_low};
        const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1, .backends = outside,
            .backend_count = 2, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
        fp8r_context *context = NULL;
        fp8r_matmul matmul;
        struct fp8r_entrant *list = NULL;
        struct fp8r_tool_error error = {0};
        int count = 0, fallback = -1;
        assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
        assert_int_equal(fp8r_matmul_parse("4x64x64", &matmul), FP8R_OK);
        assert_int_equal(fp8r_entrants_list(context, &list, &count, &error), FP8R_EXIT_GOOD);
        assert_int_equal(fp8r_entrants_fallback(context, &matmul, list, count, &fallback, &error), FP8R_EXIT_GOOD);
        assert_in_range(fallback, 0, count - 1);
        assert_string_equal(list[fallback].label, cases[i].label);
        free(list);
        fp8r_context_destroy(context);
    }
}

/* Up to which M the default is the same, asked of a row whose pick changes there. */
static void the_default_ends_where_another_begins(void **state)
{
    static const struct {
        int64_t second_from, second_until, m, last;
    } cases[] = {{25, 0, 16, 24},  {25, 0, 24, 24}, {17, 0, 16, 16}, {500, 0, 300, 499},
                 {1000, 0, 1, 4},  {0, 0, 16, 64},  {25, 30, 16, 24}, {17, 17, 16, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake fake = {.second_from = cases[i].second_from, .second_until = cases[i].second_until};
        const fp8r_backend row = fake_backend(&fake, "high", 2000);
        const fp8r_backend *const outside[] = {&row};
        const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1, .backends = outside,
            .backend_count = 1, .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
        fp8r_context *context = NULL;
        fp8r_matmul matmul;
        struct fp8r_entrant *list = NULL;
        struct fp8r_tool_error error = {0};
        int count = 0, fallback = -1;
        int64_t last = -1;
        assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
        assert_int_equal(fp8r_entrants_list(context, &list, &count, &error), FP8R_EXIT_GOOD);
        assert_int_equal(fp8r_family_member("Mx64x64", cases[i].m, &matmul), FP8R_OK);
        assert_int_equal(fp8r_entrants_fallback(context, &matmul, list, count, &fallback, &error), FP8R_EXIT_GOOD);
        assert_int_equal(fp8r_entrants_fallback_last(context, "Mx64x64", cases[i].m, list, count, fallback, &last, &error),
                         FP8R_EXIT_GOOD);
        assert_int_equal(last, cases[i].last);
        free(list);
        fp8r_context_destroy(context);
    }
}

/* A tune and whoever reads its file say the same. */
static void times_are_those_of_the_file(void **state)
{
    (void)state;
    static const struct {
        double us;
        const char *text;
    } cases[] = {{2794.5496, "2794.6 us"}, {106633.7, "106634.0 us"}, {12.345678, "12.35 us"}, {3, "3.00 us"}, {0, "-"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[FP8R_SEGMENT_TEXT_BYTES];
        fp8r_time_format(cases[i].us, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders),
        cmocka_unit_test(segments),
        cmocka_unit_test(ties_end_where_the_default_changes),
        cmocka_unit_test(runners_up_were_measured), cmocka_unit_test(the_default_has_a_segment_of_its_own),
        cmocka_unit_test(family_texts),
        cmocka_unit_test(bad_families),
        cmocka_unit_test(lists_of_m),
        cmocka_unit_test(case_lists),
        cmocka_unit_test(fallbacks_are_the_defaults),
        cmocka_unit_test(times_are_those_of_the_file),
        cmocka_unit_test(the_default_ends_where_another_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
