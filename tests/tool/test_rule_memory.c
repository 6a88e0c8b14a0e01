/* Rules and fits without memory: the n-th allocation fails, for every n. Linked with --wrap for the
 * allocation functions. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rule/fit.h"
#include "rule/rule.h"
#include "support/refusal.h"

static int borders_of(const char *text, struct fp8r_tool_error *error)
{
    struct fp8r_rule *rule = NULL;
    struct fp8r_rule_borders borders = {0};
    struct fp8r_rule_point point = {.n = 1, .k = 1, .b = 1};
    int rc = fp8r_rule_parse(text, &rule, error);
    if (rc == 0) rc = fp8r_rule_borders_find(rule, &point, 1, 100, &borders, error);
    if (rc != 0) assert_null(borders.items);
    fp8r_rule_borders_fini(&borders);
    fp8r_rule_destroy(rule);
    return rc;
}

/* Two families, so that two parts are held out. */
static int fit_of(struct fp8r_tool_error *error)
{
    static const struct fp8r_fit_case cases[] = {
        {.m = 1, .n = 1, .k = 1, .weight = 1, .then_us = 1, .else_us = 2},
        {.m = 1, .n = 2, .k = 1, .weight = 1, .then_us = 2, .else_us = 1}};
    const struct fp8r_fit_options options = {.regret_max = 0, .boxes_max = 2};
    struct fp8r_fit fit = {.box_count = -1};
    struct fp8r_rule *rule = NULL;
    int rc = fp8r_fit_find(cases, 2, &options, &fit, error);
    if (rc != 0) assert_int_equal(fit.box_count, -1);
    if (rc == 0) rc = fp8r_fit_rule(&fit, &rule, error);
    fp8r_rule_destroy(rule);
    return rc;
}

static void fits(void **state)
{
    (void)state;
    struct fp8r_tool_error error = {0};
    long n = 0;
    for (int rc = -1; rc != 0; n++) {
        allocations_left = n;
        rc = fit_of(&error);
        allocations_left = -1;
        if (rc == 0) break;
        assert_int_equal(rc, FP8R_EXIT_INTERNAL);
        assert_non_null(strstr(error.text, "out of memory"));
    }
    assert_in_range(n, 10,
                    30); /* cases, tables and searches of the whole and of two parts, marks, the rule */
}

static void every_allocation(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        long allocations;
    } cases[] = {{"m >= 8 and (n > 1 or m < 50)", 2}, {"m % 8 == 0", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (long n = 0; n <= cases[i].allocations; n++) {
            struct fp8r_tool_error error = {0};
            allocations_left = n;
            int rc = borders_of(cases[i].text, &error);
            allocations_left = -1;
            assert_int_equal(rc, n < cases[i].allocations ? FP8R_EXIT_INTERNAL : FP8R_EXIT_GOOD);
            if (rc != 0) assert_non_null(strstr(error.text, "out of memory"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation), cmocka_unit_test(fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
