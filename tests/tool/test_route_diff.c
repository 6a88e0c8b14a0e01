/* Tables held against each other: each kind of change, what counts as a contradiction, and the shares.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route_text.h"

#include <math.h>

#include "tune/route_diff.h"

#define HEAD ROUTE_HEAD("2", "", "full")

static struct fp8r_route_file old, new;
static struct fp8r_table_diff diff;

static void compare(const char *before, const char *after)
{
    struct fp8r_tool_error error = {0};
    fp8r_table_diff_fini(&diff);
    fp8r_route_file_fini(&old);
    fp8r_route_file_fini(&new);
    route_text_parse(HEAD, before, &old);
    route_text_parse(HEAD, after, &new);
    if (fp8r_table_compare(&old.table, &new.table, &diff, &error) != 0) fail_msg("%s", error.text);
}

/* The ranges in words: "1..8 same; 9..9 backend!"; '!' marks a contradiction. */
static const char *ranges(void)
{
    static char text[1024];
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < diff.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld..%lld %s%s", i ? "; " : "",
                                 (long long)diff.ranges[i].m_first, (long long)diff.ranges[i].m_last,
                                 fp8r_change_name(diff.ranges[i].change), diff.ranges[i].is_contradiction ? "!" : "");
    return text;
}

static void every_change_has_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *ranges;
    } cases[] = {
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 1 tie", "1..8 same"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 1 clear", "1..8 same"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:b 1 clear", "1..8 config"},
        {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 cpu:b 1 clear", "1..8 config!"},
        {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 blas:a 1 clear", "1..8 backend!"},
        {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 blas:a 1 tie", "1..8 backend"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..16 cpu:a 1 tie", "1..8 same; 9..16 new"},
        {"Mx64x64\n4..8 cpu:a 1 tie", "Mx64x64\n1..2 cpu:a 1 tie\n8..9 cpu:a 1 tie", "1..2 new; 4..7 gone; 8..8 same; 9..9 new"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx96x64\n1..4 cpu:a 1 tie", "1..8 gone; 1..4 new"},
        {"Mx64x64\n1..9223372036854775807 cpu:a 1 tie", "Mx64x64\n2..9223372036854775806 blas:a 1 tie",
         "1..1 gone; 2..9223372036854775806 backend; 9223372036854775807..9223372036854775807 gone"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compare(cases[i].before, cases[i].after);
        assert_string_equal(ranges(), cases[i].ranges);
    }
}

/* A border between the same two choices, here or there. Far from where it was both tables cannot be right. */
static void borders_move(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *ranges;
    } cases[] = {
        {"Mx64x64\n1..16 cpu:a 1 clear\n17..99 blas:s 1 clear", "Mx64x64\n1..22 cpu:a 1 clear\n23..99 blas:s 1 clear",
         "1..16 same; 17..22 border; 23..99 same"},
        {"Mx64x64\n1..22 cpu:a 1 clear\n23..99 blas:s 1 clear", "Mx64x64\n1..16 cpu:a 1 clear\n17..99 blas:s 1 clear",
         "1..16 same; 17..22 border; 23..99 same"},
        {"Mx64x64\n1..31 cpu:a 1 clear\n32..99 blas:s 1 clear", "Mx64x64\n1..16 cpu:a 1 clear\n17..99 blas:s 1 clear",
         "1..16 same; 17..31 border; 32..99 same"},
        {"Mx64x64\n1..32 cpu:a 1 clear\n33..99 blas:s 1 clear", "Mx64x64\n1..16 cpu:a 1 clear\n17..99 blas:s 1 clear",
         "1..16 same; 17..32 border!; 33..99 same"},
        {"Mx64x64\n1..8 cpu:a 1 clear\n9..32 cpu:a 1 tie\n33..99 blas:s 1 clear",
         "Mx64x64\n1..4 cpu:a 1 clear\n5..6 blas:s 1 tie\n7..99 blas:s 1 clear",
         "1..4 same; 5..6 border; 7..8 border!; 9..32 border; 33..99 same"},
        /* no border: one table has only one of the choices, or another one in between, or a gap */
        {"Mx64x64\n1..99 cpu:a 1 clear", "Mx64x64\n1..16 cpu:a 1 clear\n17..99 blas:s 1 clear", "1..16 same; 17..99 backend!"},
        {"Mx64x64\n1..22 cpu:a 1 clear\n23..99 blas:s 1 clear",
         "Mx64x64\n1..16 cpu:a 1 clear\n17..22 ref:x 1 clear\n23..99 blas:s 1 clear", "1..16 same; 17..22 backend!; 23..99 same"},
        {"Mx64x64\n1..16 cpu:a 1 clear\n18..99 blas:s 1 clear", "Mx64x64\n1..22 cpu:a 1 clear\n23..99 blas:s 1 clear",
         "1..16 same; 17..17 new; 18..22 backend!; 23..99 same"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compare(cases[i].before, cases[i].after);
        assert_string_equal(ranges(), cases[i].ranges);
    }
}

static void reasons_say_what_both_knew(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *why;
    } cases[] = {
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 1 tie", ""},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 1 clear", "now clear"},
        {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 cpu:a 2 tie", "no longer clear; cpu has another revision now"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 2 tie", "cpu has another revision now"},
        {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 blas:s 1 clear", "clear in both, for different choices"},
        {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 blas:s 1 tie", "was clear, now within the noise: the default stands"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 blas:s 1 clear", "was within the noise, now clear"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 blas:s 1 tie", "within the noise in both, but the default is another"},
        {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 blas:s 1 clear\nMx96x64\n1..8 cpu:a 2 tie",
         "was within the noise, now clear; cpu has another revision now"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compare(cases[i].before, cases[i].after);
        assert_string_equal(diff.ranges[0].why, cases[i].why);
    }
    compare("Mx64x64\n1..16 cpu:a 1 tie\n17..99 blas:s 1 tie", "Mx64x64\n1..22 cpu:a 1 tie\n23..99 blas:s 1 tie");
    assert_string_equal(diff.ranges[1].why, "the border moved from behind M=16 to behind M=22");
}

static void shares_count_what_both_measured(void **state)
{
    (void)state;
    compare("Mx64x64\n1..16 cpu:a 1 clear\n17..64 blas:s 1 clear\nMx96x64\n1..1024 cpu:a 1 tie",
            "Mx64x64\n1..4 cpu:a 1 clear\n5..127 blas:s 1 clear\nMx128x64\n1..1024 cpu:a 1 tie");
    assert_int_equal(diff.points, 7);         /* 1 to 64 */
    assert_int_equal(diff.points_changed, 2); /* 8, 16 */
    assert_true(fabs(diff.length - log2(65)) < 1e-12);
    assert_true(fabs(diff.length_changed - log2(17.0 / 5)) < 1e-12);
    assert_int_equal(diff.changes[FP8R_CHANGE_BORDER], 1);
    assert_int_equal(diff.changes[FP8R_CHANGE_NONE], 2);
    assert_int_equal(diff.changes[FP8R_CHANGE_NEW], 2);
    assert_int_equal(diff.changes[FP8R_CHANGE_GONE], 1);
    assert_int_equal(diff.contradictions, 1);
    compare("Mx64x64\n1..9223372036854775807 cpu:a 1 tie", "Mx64x64\n1..9223372036854775807 cpu:a 1 tie");
    assert_int_equal(diff.points, 63);
    compare("", "");
    assert_int_equal(diff.count, 0);
}

static int teardown(void **state)
{
    (void)state;
    fp8r_table_diff_fini(&diff);
    fp8r_route_file_fini(&old);
    fp8r_route_file_fini(&new);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_has_its_name),
        cmocka_unit_test(borders_move),
        cmocka_unit_test(reasons_say_what_both_knew),
        cmocka_unit_test(shares_count_what_both_measured),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
