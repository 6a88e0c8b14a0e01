/* Rules and lists as pickers. SPDX-License-Identifier: Apache-2.0 */
#include "tune/picker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_json.h"
#include "tool_status.h"
#include "tune/case_list.h"

/* backend[:config], each part a name that fits. */
static bool is_label(const char *text)
{
    const char *colon = strchr(text, ':');
    size_t first = colon ? (size_t)(colon - text) : strlen(text), second = colon ? strlen(colon + 1) : 1;
    if (first == 0 || first >= FP8R_NAME_BYTES || second == 0 || second >= FP8R_NAME_BYTES) return false;
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F || (*at == ':' && at != colon))
            return false;
    return true;
}

static int set_label(char label[FP8R_LABEL_BYTES], const char *what, const char *text,
                     struct fp8r_tool_error *error)
{
    if (!is_label(text))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "%s is \"%.60s\": it must be backend or backend:config", what, text);
    snprintf(label, FP8R_LABEL_BYTES, "%s", text);
    return FP8R_EXIT_GOOD;
}

int fp8r_picker_init_rule(struct fp8r_picker *picker, const char *rule, const char *then_pick,
                          const char *else_pick, struct fp8r_tool_error *error)
{
    *picker = (struct fp8r_picker){0};
    int code = set_label(picker->then_pick, "--then", then_pick, error);
    if (code == FP8R_EXIT_GOOD) code = set_label(picker->else_pick, "--else", else_pick, error);
    return code == FP8R_EXIT_GOOD ? fp8r_rule_parse(rule, &picker->rule, error) : code;
}

/* ---- Lists ---- */

static int compare_picks(const void *a, const void *b)
{
    const struct fp8r_pick *one = a, *other = b;
    int by_problem = strcmp(one->problem, other->problem);
    return by_problem ? by_problem : one->line - other->line;
}

/* The problem in this program's own words, whichever order its options came in. */
static int set_problem(struct fp8r_pick *pick, const char *text, struct fp8r_tool_error *error)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    int code = fp8r_tool_status(error, fp8r_matmul_parse(text, &matmul));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_matmul_format(&matmul, pick->problem, sizeof pick->problem));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product));
    if (code == FP8R_EXIT_GOOD && (fp8r_problem_is_empty(&product.problem) || product.problem.k == 0))
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "%.60s multiplies nothing: sizes must be at least 1", text);
    return code;
}

static int read_pick(const json_t *object, struct fp8r_pick *pick, struct fp8r_tool_error *error)
{
    const json_t *problem = json_object_get(object, "problem"), *label = json_object_get(object, "pick"),
                 *weight = json_object_get(object, "weight");
    if (!json_is_string(problem) || !json_is_string(label))
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                   "{\"problem\": \"1x4096x14336\", \"pick\": \"backend:config\"} is wanted");
    pick->has_weight = json_is_number(weight);
    pick->weight = pick->has_weight ? json_number_value(weight) : 1;
    if ((weight && !pick->has_weight) || !(pick->weight >= 0 && pick->weight <= 1e18))
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "weight must be a number from 0 to 1e18");
    int code = set_problem(pick, json_string_value(problem), error);
    return code == FP8R_EXIT_GOOD ? set_label(pick->pick, "pick", json_string_value(label), error) : code;
}

static int read_line(const char *path, const char *line, struct fp8r_pick *pick,
                     struct fp8r_tool_error *error)
{
    char origin[256];
    struct fp8r_json json;
    struct fp8r_tool_error inner = {0};
    snprintf(origin, sizeof origin, "%.200s, line %d", path, pick->line);
    int code = fp8r_json_open(line, strlen(line), origin, &json, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = read_pick(json.root, pick, &inner);
    fp8r_json_close(&json);
    if (code == FP8R_EXIT_GOOD || code == FP8R_EXIT_INTERNAL)
        return code ? fp8r_tool_error_set(error, code, "%s", inner.text) : code;
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: %s", origin, inner.text);
}

static int read_picks(struct fp8r_picker *picker, const char *path, const struct fp8r_case_list *list,
                      struct fp8r_tool_error *error)
{
    picker->picks = calloc(list->count + 1, sizeof *picker->picks);
    if (!picker->picks) return fp8r_tool_error_memory(error, "the picks");
    for (size_t i = 0; i < list->count; i++) {
        struct fp8r_pick *pick = &picker->picks[picker->pick_count++];
        pick->line = list->numbers[i];
        int code = read_line(path, list->lines[i], pick, error);
        if (code != FP8R_EXIT_GOOD) return code;
    }
    qsort(picker->picks, picker->pick_count, sizeof *picker->picks, compare_picks);
    for (size_t i = 0; i + 1 < picker->pick_count; i++)
        if (strcmp(picker->picks[i].problem, picker->picks[i + 1].problem) == 0)
            return fp8r_tool_error_set(
                error, FP8R_EXIT_BAD_DATA, "%s, line %d: %s was picked for in line %d already", path,
                picker->picks[i + 1].line, picker->picks[i].problem, picker->picks[i].line);
    return FP8R_EXIT_GOOD;
}

int fp8r_picker_init_list(struct fp8r_picker *picker, const char *path, struct fp8r_tool_error *error)
{
    struct fp8r_case_list list;
    *picker = (struct fp8r_picker){0};
    int code = fp8r_case_list_read(path, &list, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = read_picks(picker, path, &list, error);
    fp8r_case_list_fini(&list);
    if (code != FP8R_EXIT_GOOD) fp8r_picker_fini(picker);
    return code;
}

void fp8r_picker_fini(struct fp8r_picker *picker)
{
    fp8r_rule_destroy(picker->rule);
    free(picker->picks);
    *picker = (struct fp8r_picker){0};
}

/* ---- Picking ---- */

struct fp8r_rule_point fp8r_picker_point(const struct fp8r_key *key, int64_t m)
{
    return (struct fp8r_rule_point){.m = m, .n = key->n, .k = key->k, .b = key->batch};
}

static int compare_problem(const void *problem, const void *pick)
{
    return strcmp(problem, ((const struct fp8r_pick *)pick)->problem);
}

const struct fp8r_pick *fp8r_picker_find(const struct fp8r_picker *picker, const char *problem)
{
    return picker->pick_count > 0
               ? bsearch(problem, picker->picks, picker->pick_count, sizeof *picker->picks, compare_problem)
               : NULL;
}

int fp8r_picker_pick(const struct fp8r_picker *picker, const char *problem, const struct fp8r_key *key,
                     int64_t m, const char **pick, struct fp8r_tool_error *error)
{
    if (!picker->rule) {
        const struct fp8r_pick *found = fp8r_picker_find(picker, problem);
        *pick = found ? found->pick : NULL;
        return FP8R_EXIT_GOOD;
    }
    bool holds = false;
    struct fp8r_rule_point point = fp8r_picker_point(key, m);
    int code = fp8r_rule_eval(picker->rule, &point, &holds, error);
    *pick = holds ? picker->then_pick : picker->else_pick;
    return code;
}
