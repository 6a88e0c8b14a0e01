/* A rule from a stranger: what parses prints, reads back as the same rule and gives the same answers; its
 * borders are those found by asking at every m. SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rule/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fp8r_rule_point points[] = {
    {1, 1, 1, 1}, {1, 4096, 14336, 1}, {8192, 6144, 4096, 1}, {3, 2, 5, 7}, {INT64_MAX, 2, INT64_MAX, 1}};

/* As text of one dialect; the caller frees it. */
static char *text_of(const struct fp8r_rule *rule, enum fp8r_rule_dialect dialect)
{
    size_t length = fp8r_rule_print(rule, dialect, NULL, 0);
    char *text = malloc(length + 1);
    if (text == NULL || fp8r_rule_print(rule, dialect, text, length + 1) != length || strlen(text) != length)
        abort();
    return text;
}

static void answers_compare(const struct fp8r_rule *a, const struct fp8r_rule *b)
{
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        bool x = false, y = false;
        int rc = fp8r_rule_eval(a, &points[i], &x, NULL);
        if (fp8r_rule_eval(b, &points[i], &y, NULL) != rc || x != y) abort();
    }
}

/* Printed, read back: the same tree, the same text again. C reads back where it has no call and no /. */
static void text_check(const struct fp8r_rule *rule)
{
    struct fp8r_rule *again = NULL;
    char *text = text_of(rule, FP8R_RULE_PYTHON), *c = text_of(rule, FP8R_RULE_C), *repeated;
    if (strlen(text) <= FP8R_RULE_TEXT_MAX) {
        if (fp8r_rule_parse(text, &again, NULL) != FP8R_EXIT_GOOD || !fp8r_rule_equal(rule, again)) abort();
        repeated = text_of(again, FP8R_RULE_PYTHON);
        if (strcmp(text, repeated) != 0) abort();
        answers_compare(rule, again);
        free(repeated);
        fp8r_rule_destroy(again);
    }
    again = NULL;
    if (fp8r_rule_parse(c, &again, NULL) == FP8R_EXIT_GOOD) answers_compare(rule, again);
    fp8r_rule_destroy(again);
    free(text);
    free(c);
}

static void borders_check(const struct fp8r_rule *rule, struct fp8r_rule_point point, int64_t low,
                          int64_t high)
{
    struct fp8r_rule_borders borders = {0};
    bool before, holds;
    size_t found = 0;
    int rc = fp8r_rule_borders_find(rule, &point, low, high, &borders, NULL);
    point.m = low;
    if (fp8r_rule_eval(rule, &point, &before, NULL) != FP8R_EXIT_GOOD) {
        if (rc == FP8R_EXIT_GOOD) abort();
        return;
    }
    bool first = before;
    for (point.m = low + 1; point.m <= high; point.m++, before = holds) {
        if (fp8r_rule_eval(rule, &point, &holds, NULL) != FP8R_EXIT_GOOD)
            goto done; /* unknown there: no claim */
        if (holds == before) continue;
        if (rc == FP8R_EXIT_GOOD && (found >= borders.count || borders.items[found] != point.m)) abort();
        found++;
    }
    if (rc != FP8R_EXIT_GOOD || found != borders.count || borders.holds_first != first) abort();
done:
    fp8r_rule_borders_fini(&borders);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp8r_rule *rule = NULL;
    struct fp8r_tool_error error = {0};
    char *text = malloc(size + 1);
    if (text == NULL) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    int rc = fp8r_rule_parse(text, &rule, &error);
    free(text);
    if (rc != FP8R_EXIT_GOOD) {
        if (rc != FP8R_EXIT_USAGE || error.text[0] == '\0' || rule != NULL) abort();
        return 0;
    }
    text_check(rule);
    borders_check(rule, (struct fp8r_rule_point){.n = 3, .k = 5, .b = 1}, 0, 40);
    borders_check(rule, (struct fp8r_rule_point){.n = 6144, .k = 4096, .b = 1}, 8180, 8200);
    fp8r_rule_destroy(rule);
    return 0;
}
