/* Rules: what is read, what is refused and where, what holds (against the same expression compiled as C, and
 * against Python's division), what is printed, and where the answer changes along m.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rule/rule.h"
#include "tool/noise.h"

#define FIRST_RULE  "(k >= 5376 and n >= 3584) or (k >= 3584 and m >= 8192)"
#define SECOND_RULE "m >= 8192 and ((k >= 4096 and n >= 6144) or (k >= 7168 and n >= 5376))"

static struct fp8r_rule *parse(const char *text)
{
    struct fp8r_rule *rule = NULL;
    struct fp8r_tool_error error = {0};
    int rc = fp8r_rule_parse(text, &rule, &error);
    if (rc != 0) fail_msg("%s: %s", text, error.text);
    return rule;
}

static bool holds_at(const char *text, struct fp8r_rule_point point)
{
    struct fp8r_rule *rule = parse(text);
    struct fp8r_tool_error error;
    bool holds = false;
    int rc = fp8r_rule_eval(rule, &point, &holds, &error);
    if (rc != 0) fail_msg("%s: %s", text, error.text);
    fp8r_rule_destroy(rule);
    return holds;
}

/* The shapes that decided the fate of the published rules. */
static void published(void **state)
{
    (void)state;
    struct fp8r_rule_point decode = {.m = 1, .n = 4096, .k = 14336, .b = 1};
    struct fp8r_rule_point prefill = {.m = 8192, .n = 6144, .k = 4096, .b = 1};
    assert_true(holds_at(FIRST_RULE, decode)); /* what it got wrong */
    assert_false(holds_at(SECOND_RULE, decode));
    assert_true(holds_at(SECOND_RULE, prefill));
    prefill.m = 8191;
    assert_false(holds_at(SECOND_RULE, prefill));
}

/* The same text compiled and interpreted, where the two languages mean the same. */
#define AGREES(expression)                                                                                   \
    do {                                                                                                     \
        struct fp8r_rule *rule = parse(#expression);                                                         \
        struct noise source = {__LINE__};                                                                    \
        int count = 0;                                                                                       \
        for (int i = 0; i < 2000; i++) {                                                                     \
            int64_t values[4];                                                                               \
            for (int j = 0; j < 4; j++)                                                                      \
                values[j] = 1 + (int64_t)(40 * noise_uniform(&source));                                      \
            const int64_t m = values[0], n = values[1], k = values[2], b = values[3];                        \
            struct fp8r_rule_point point = {m, n, k, b};                                                     \
            bool holds;                                                                                      \
            (void)m, (void)n, (void)k, (void)b;                                                              \
            assert_int_equal(fp8r_rule_eval(rule, &point, &holds, NULL), 0);                                 \
            assert_int_equal(holds, (expression) ? 1 : 0);                                                   \
            count += holds;                                                                                  \
        }                                                                                                    \
        assert_true(count > 0 && count < 2000);                                                              \
        fp8r_rule_destroy(rule);                                                                             \
    } while (0)

static void as_compiled(void **state)
{
    (void)state;
    AGREES(m >= 20 && ((k >= 15 && n >= 20) || (k >= 30 && n >= 9)));
    AGREES(m + n * k > 300);
    AGREES(m - n - k > -20);
    AGREES(m - (n - k) > 10);
    AGREES(-m + 2 * -n < -(k + b));
    AGREES(m * n % 7 == k % 5);
    AGREES(!(m < n) || (m != k && !(b <= 10)));
    AGREES(!!(m > 20));
    AGREES((m < 10 || n < 10) && (k > 10 || b > 10));
    AGREES(m * (n + k) * b < 9000 && true);
    AGREES(m == 3 || false);
}

static void as_python(void **state)
{
    (void)state;
    static const char *const held[] = {"1 <= m <= 16",
                                       "1 < m < 4 > n",
                                       "n < m == 3 != k",
                                       "not m > 3",
                                       "not not m == 3",
                                       "not m == 4 and n == 2",
                                       "m == 4 or n == 2 and k == 5",
                                       "not (m == 3 and n == 3)",
                                       "True",
                                       "not False",
                                       "m == 3 and True",
                                       "7 // 2 == 3",
                                       "-7 // 2 == -4",
                                       "7 // -2 == -4",
                                       "-7 // -2 == 3",
                                       "7 % 3 == 1",
                                       "-7 % 3 == 2",
                                       "7 % -3 == -2",
                                       "-7 % -3 == -1",
                                       "-6 % 3 == 0",
                                       "6 // -3 == -2",
                                       "(1 - m) // 2 == -1",
                                       "-m % 2 == 1",
                                       "(-9223372036854775807 - 1) % -1 == 0",
                                       "(-9223372036854775807 - 1) // 1 < 0",
                                       "2 + 3 * 4 == 14",
                                       "2 * 3 % 4 == 2",
                                       "100 // 7 // 3 == 4",
                                       "100 - 7 - 3 == 90",
                                       "-2 * 3 == -6",
                                       "--3 == 3",
                                       "9223372036854775807 > 0",
                                       "m == 4 and 1 // 0 == 1 or n == 2",
                                       "m == 3 or 1 // 0 == 1",
                                       "1 > 2 > 1 // 0 or m == 3",
                                       "m==3&&!(n==3)||k==1",
                                       "  m\n>=\t1\r\n",
                                       "((((m)) >= (1)))",
                                       "b == 7",
                                       "!False and !(m==4)"};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        if (!holds_at(held[i], (struct fp8r_rule_point){.m = 3, .n = 2, .k = 5, .b = 7}))
            fail_msg("%s", held[i]);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *wanted;
    } cases[] = {{"", "character 1:", "found the end"},
                 {"m >", "character 4:", "a number, m, n, k, b"},
                 {"m > 1 and", "character 10:", "found the end"},
                 {"m > 1 n > 2", "character 7:", "an operator or the end, found 'n'"},
                 {"(m > 1", "character 7:", "')' or an operator, found the end"},
                 {"(m > 1))", "character 8:", "found ')'"},
                 {"m", "character 1:", "expected a comparison such as m >= 1, found a number"},
                 {"m > 1 and n + 1", "character 13:", "expected a comparison"},
                 {"not m", "character 5:", "expected a comparison"},
                 {"!m >= 3", "character 2:", "expected a comparison"},
                 {"(m > 1) + 1 > 2", "character 4:", "expected a number, found a comparison"},
                 {"m > (n > k)", "character 8:", "expected a number, found a comparison"},
                 {"-(m > 1)", "character 5:", "expected a number"},
                 {"m * True > 1", "character 5:", "expected a number"},
                 {"m > not n", "character 5:", "found 'not'"},
                 {"m = 8192", "character 3:", "'==' to compare"},
                 {"m / 2 > 1", "character 3:", "'//'"},
                 {"m > 1 & n > 2", "character 7:", "'and' or '&&'"},
                 {"m > 1 | n > 2", "character 7:", "'or' or '||'"},
                 {"~m > 1", "character 1:", "'not'"},
                 {"m ** 2 > 1", "character 4:", "found '*'"},
                 {"m <> 2", "character 4:", "found '>'"},
                 {"M >= 1", "character 1:", "expected m, n, k, b"},
                 {"size >= 1", "character 1:", "found 'size'"},
                 {"m >= 8_192", "character 6:", "found '8_'"},
                 {"m >= 8.5", "character 6:", "found '8.'"},
                 {"m >= .5", "character 6:", "whole numbers"},
                 {"m >= 0x10", "character 6:", "found '0x'"},
                 {"m >= 010", "character 6:", "does not begin with 0"},
                 {"m >= 9223372036854775808", "character 6:", "beyond 64 bits, at most 9223372036854775807"},
                 {"m >= 1; n", "character 7:", "found ';'"},
                 {"m \xe2\x89\xa5 1", "character 3:", "not ASCII"},
                 {"m >= 1 \x01", "character 8:", "found '?'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_rule *rule = NULL;
        struct fp8r_tool_error error = {0};
        assert_int_equal(fp8r_rule_parse(cases[i].text, &rule, &error), FP8R_EXIT_USAGE);
        assert_null(rule);
        if (strstr(error.text, cases[i].place) == NULL || strstr(error.text, cases[i].wanted) == NULL)
            fail_msg("'%s': %s", cases[i].text, error.text);
    }
}

/* repeat times `part` between `before` and `after`; the caller frees it. */
static char *long_text(const char *before, const char *part, int repeat, const char *after)
{
    size_t size = strlen(before) + strlen(part) * (size_t)repeat + strlen(after) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    strcpy(text, before);
    char *end = text + strlen(text);
    for (int i = 0; i < repeat; i++, end += strlen(part))
        memcpy(end, part, strlen(part));
    strcpy(end, after);
    return text;
}

static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part;
        int most;
        const char *after, *says;
    } cases[] = {{"", "(", FP8R_RULE_NESTING_MAX, "m > 1", "nested too deeply, at most 64"},
                 {"", "not ", FP8R_RULE_NESTING_MAX, "m > 1", "nested too deeply"},
                 {"", "!", FP8R_RULE_NESTING_MAX, "True", "nested too deeply"},
                 {"", "-", FP8R_RULE_NESTING_MAX, "m > 1", "nested too deeply"},
                 {"m", "+1", FP8R_RULE_HEIGHT_MAX - 2, " > 1", "at most 256"},
                 {"m > 1", " or m > 1", 7000, "", "65535"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int over = 0; over <= 1; over++) {
            bool is_group = *cases[i].part == '(';
            char *closing = long_text(cases[i].after, ")", is_group ? cases[i].most + over : 0, "");
            char *text =
                long_text(cases[i].before, cases[i].part, cases[i].most + over * (i == 5 ? 500 : 1), closing);
            struct fp8r_rule *rule = NULL;
            struct fp8r_tool_error error = {0};
            int rc = fp8r_rule_parse(text, &rule, &error);
            assert_int_equal(rc, over ? FP8R_EXIT_USAGE : FP8R_EXIT_GOOD);
            if (over && strstr(error.text, cases[i].says) == NULL) fail_msg("%s", error.text);
            fp8r_rule_destroy(rule);
            free(text);
            free(closing);
        }
    }
}

static void not_computable(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"m // (n - 2) > 1", "character 3: division by zero at m=3 n=2 k=5 b=7"},
                 {"m % 0 == 1", "character 3: division by zero"},
                 {"9223372036854775807 + m > 1", "character 21: a value beyond 64 bits at m=3"},
                 {"-9223372036854775807 - m > 1", "beyond 64 bits"},
                 {"4611686018427387904 * n > 1", "beyond 64 bits"},
                 {"(-9223372036854775807 - 1) // -1 > 1", "beyond 64 bits"},
                 {"-(-9223372036854775807 - 1) > 1", "character 1: a value beyond 64 bits"},
                 {"not 1 // 0 == 1", "division by zero"},
                 {"m == 3 and 1 // 0 == 1", "division by zero"},
                 {"1 < 2 < 1 // 0", "division by zero"}};
    struct fp8r_rule_point point = {.m = 3, .n = 2, .k = 5, .b = 7};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_rule *rule = parse(cases[i].text);
        struct fp8r_tool_error error = {0};
        bool holds = true;
        assert_int_equal(fp8r_rule_eval(rule, &point, &holds, &error), FP8R_EXIT_USAGE);
        assert_true(holds); /* not written */
        if (strstr(error.text, cases[i].says) == NULL) fail_msg("%s: %s", cases[i].text, error.text);
        fp8r_rule_destroy(rule);
    }
}

static void printed_as(const struct fp8r_rule *rule, enum fp8r_rule_dialect dialect, const char *text)
{
    char printed[512];
    size_t length = fp8r_rule_print(rule, dialect, printed, sizeof printed);
    assert_string_equal(printed, text);
    assert_int_equal(length, strlen(text));
}

static void printed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *python, *c;
    } cases[] = {
        {SECOND_RULE, SECOND_RULE, "m >= 8192 && ((k >= 4096 && n >= 6144) || (k >= 7168 && n >= 5376))"},
        {"((m>1)and(n>2))and(k>3)", "(m > 1 and n > 2) and k > 3", "m > 1 && n > 2 && k > 3"},
        {"m>1 or(n>2 or k>3)", "m > 1 or (n > 2 or k > 3)", "m > 1 || (n > 2 || k > 3)"},
        {"1<=m<=16", "1 <= m <= 16", "1 <= m && m <= 16"},
        {"1<=m<=16 and n>1", "1 <= m <= 16 and n > 1", "1 <= m && m <= 16 && n > 1"},
        {"1<=m<=16 or n>1", "1 <= m <= 16 or n > 1", "(1 <= m && m <= 16) || n > 1"},
        {"not 1<=m<=n+1<9", "not 1 <= m <= n + 1 < 9", "!(1 <= m && m <= n + 1 && n + 1 < 9)"},
        {"!(m>1)", "not m > 1", "!(m > 1)"},
        {"!!(m>1)", "not not m > 1", "!!(m > 1)"},
        {"not(m>1 or n>1)and true", "not (m > 1 or n > 1) and True", "!(m > 1 || n > 1) && true"},
        {"False", "False", "false"},
        {"(m+1)*2-(3-n)>-k", "(m + 1) * 2 - (3 - n) > -k", "(m + 1) * 2 - (3 - n) > -k"},
        {"m-(-(-1))>--2", "m - --1 > --2", "m - -(-1) > -(-2)"},
        {"-(m*n)<-m*n", "-(m * n) < -m * n", "-(m * n) < -m * n"},
        {"m//64*64==m%(n//2)", "m // 64 * 64 == m % (n // 2)", "m / 64 * 64 == m % (n / 2)"},
        {"(m-n)//64>-m%3", "(m - n) // 64 > -m % 3", "fp8r_floor_div(m - n, 64) > fp8r_floor_mod(-m, 3)"},
        {"m>4294967296", "m > 4294967296", "m > INT64_C(4294967296)"},
        {"m*n*k>=65536*65536", "m * n * k >= 65536 * 65536", "m * n * k >= INT64_C(65536) * INT64_C(65536)"},
        {"m>(2+3)*n", "m > (2 + 3) * n", "m > (INT64_C(2) + INT64_C(3)) * n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_rule *rule = parse(cases[i].text), *again = parse(cases[i].python);
        printed_as(rule, FP8R_RULE_PYTHON, cases[i].python);
        printed_as(rule, FP8R_RULE_C, cases[i].c);
        assert_true(fp8r_rule_equal(rule, again));
        assert_true((fp8r_rule_c_helpers(rule) != NULL) == (strstr(cases[i].c, "fp8r_floor") != NULL));
        fp8r_rule_destroy(rule);
        fp8r_rule_destroy(again);
    }
}

static void printed_short(void **state)
{
    (void)state;
    struct fp8r_rule *rule = parse("m >= 8192");
    char text[8] = "@@@@@@@";
    assert_int_equal(fp8r_rule_print(rule, FP8R_RULE_C, NULL, 0), 9);
    assert_int_equal(fp8r_rule_print(rule, FP8R_RULE_C, text, 5), 9);
    assert_string_equal(text, "m >=");
    assert_int_equal(text[5], '@');
    fp8r_rule_destroy(rule);
}

static void printed_function(void **state)
{
    (void)state;
    struct fp8r_rule *rule = parse("m >= 8192 and k > 1");
    char text[256];
    fp8r_rule_print_function(rule, FP8R_RULE_C, "takes_sm90", text, sizeof text);
    assert_string_equal(text, "bool takes_sm90(int64_t m, int64_t n, int64_t k, int64_t b)\n{\n    (void)n;\n"
                              "    (void)b;\n    return m >= 8192 && k > 1;\n}\n");
    fp8r_rule_print_function(rule, FP8R_RULE_PYTHON, "takes_sm90", text, sizeof text);
    assert_string_equal(text, "def takes_sm90(m, n, k, b=1):\n    return m >= 8192 and k > 1\n");
    fp8r_rule_destroy(rule);
}

static void different(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "m > 1",     "m >= 1",    "n > 1",     "m > 2",           "1 < m",          "not m > 1", "m > 1 < 1",
        "m > 1 > 1", "m > 1 + 1", "m > 1 - 1", "m > 1 and n > 1", "m > 1 or n > 1", "True",      "False"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        for (size_t j = 0; j < sizeof rules / sizeof *rules; j++) {
            struct fp8r_rule *a = parse(rules[i]), *b = parse(rules[j]);
            assert_int_equal(fp8r_rule_equal(a, b), i == j);
            fp8r_rule_destroy(a);
            fp8r_rule_destroy(b);
        }
    }
}

/* Against asking at every m. */
static void borders_check(const char *text, int64_t low, int64_t high)
{
    struct fp8r_rule *rule = parse(text);
    struct fp8r_rule_point point = {.n = 6144, .k = 4096, .b = 2};
    struct fp8r_rule_borders borders;
    struct fp8r_tool_error error;
    bool before, holds;
    size_t found = 0;
    if (fp8r_rule_borders_find(rule, &point, low, high, &borders, &error) != 0)
        fail_msg("%s: %s", text, error.text);
    point.m = low;
    assert_int_equal(fp8r_rule_eval(rule, &point, &before, NULL), 0);
    assert_int_equal(borders.holds_first, before);
    for (point.m = low + 1; point.m <= high; point.m++) {
        assert_int_equal(fp8r_rule_eval(rule, &point, &holds, NULL), 0);
        if (holds == before) continue;
        if (found == borders.count || borders.items[found] != point.m)
            fail_msg("%s: not found at %d", text, (int)point.m);
        found++;
        before = holds;
    }
    assert_int_equal(found, borders.count);
    fp8r_rule_borders_fini(&borders);
    fp8r_rule_destroy(rule);
}

static void borders(void **state)
{
    (void)state;
    static const char *const rules[] = {FIRST_RULE,
                                        SECOND_RULE,
                                        "True",
                                        "m > 0",
                                        "m >= 20000",
                                        "m == 77",
                                        "m != 77",
                                        "16 <= m < 512 or m > 4096",
                                        "m * n > 1000000",
                                        "m * m > 90000",
                                        "1000000 // m < 300",
                                        "-1000000 // m > -300",
                                        "(m + 63) // 64 <= 100",
                                        "-m * k < -99999",
                                        "3 * m - 100 > m + 1",
                                        "m - k > 0 and n - 2 * m > 0",
                                        "n // 7 > m",
                                        "m % 64 == 0",
                                        "m - m == 0",
                                        "0 * m == 0",
                                        "m * (3 - m) < -100",
                                        "m // -3 == -10",
                                        "not (m > 5 and not m > 9)",
                                        "m > 100 and 100 // (m - 100) > 3",
                                        "m * (m + k) > 99999999",
                                        "k % 7 < m",
                                        "m // (0 - 3) < -20",
                                        "(m - 50) * (m - 50) < 100",
                                        "b * m >= 33"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        borders_check(rules[i], 1, 16384);
        borders_check(rules[i], 1, 1);
        borders_check(rules[i], 77, 80);
    }
    borders_check("m > 0", 0, 3);
}

static void borders_far(void **state)
{
    (void)state;
    struct fp8r_rule *rule = parse("m >= 1099511627776 and m != 4398046511104");
    struct fp8r_rule *uneven = parse("m % 64 == 0"), *fails = parse("10 // (m - 5) > 2");
    struct fp8r_rule_point point = {.n = 1, .k = 1, .b = 1};
    struct fp8r_rule_borders borders = {0};
    struct fp8r_tool_error error;
    assert_int_equal(fp8r_rule_borders_find(rule, &point, 1, INT64_MAX, &borders, NULL), 0);
    assert_int_equal(borders.count, 3);
    assert_int_equal(borders.items[0], 1099511627776);
    assert_int_equal(borders.items[1], 4398046511104);
    assert_int_equal(borders.items[2], 4398046511105);
    fp8r_rule_borders_fini(&borders);
    assert_int_equal(fp8r_rule_borders_find(uneven, &point, 1, INT64_MAX, &borders, &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "at most 1048576"));
    assert_int_equal(fp8r_rule_borders_find(rule, &point, 2, 1, &borders, &error), FP8R_EXIT_USAGE);
    assert_int_equal(fp8r_rule_borders_find(rule, &point, -1, 1, &borders, &error), FP8R_EXIT_USAGE);
    assert_int_equal(fp8r_rule_borders_find(fails, &point, 1, 9, &borders, &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "division by zero at m=5"));
    assert_null(borders.items);
    fp8r_rule_destroy(rule);
    fp8r_rule_destroy(uneven);
    fp8r_rule_destroy(fails);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published), cmocka_unit_test(as_compiled),   cmocka_unit_test(as_python),
        cmocka_unit_test(refused),   cmocka_unit_test(limits),        cmocka_unit_test(not_computable),
        cmocka_unit_test(printed),   cmocka_unit_test(printed_short), cmocka_unit_test(printed_function),
        cmocka_unit_test(different), cmocka_unit_test(borders),       cmocka_unit_test(borders_far)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
