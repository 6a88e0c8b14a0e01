/* Collecting families.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/problem.h"
#include "tool_status.h"
#include "tune/case_list.h"

void fp8r_families_fini(struct fp8r_tune_families *families)
{
    for (size_t i = 0; i < families->count; i++) {
        free(families->items[i].ms);
        free(families->items[i].weights);
    }
    free(families->items);
    *families = (struct fp8r_tune_families){0};
}

int fp8r_families_find(const struct fp8r_tune_families *families, const struct fp8r_key *key)
{
    for (size_t i = 0; i < families->count; i++)
        if (fp8r_key_equal(&families->items[i].key, key)) return (int)i;
    return -1;
}

/* The family of that key, new or old; NULL when out of memory. */
static struct fp8r_tune_family *family_of(struct fp8r_tune_families *families, const struct fp8r_key *key)
{
    int known = fp8r_families_find(families, key);
    if (known >= 0) return &families->items[known];
    if (families->count == families->capacity) {
        size_t capacity = families->capacity ? 2 * families->capacity : 16;
        struct fp8r_tune_family *items = realloc(families->items, capacity * sizeof *items);
        if (!items) return NULL;
        families->items = items;
        families->capacity = capacity;
    }
    struct fp8r_tune_family *family = &families->items[families->count++];
    *family = (struct fp8r_tune_family){.key = *key};
    return family;
}

static int add_key(struct fp8r_tune_families *families, const struct fp8r_key *key,
                   struct fp8r_tune_family **family, struct fp8r_tool_error *error)
{
    char text[FP8R_TEXT_BYTES];
    int code = fp8r_tool_status(error, fp8r_family_format(key, text, sizeof text));
    if (code != FP8R_EXIT_GOOD) return code;
    *family = family_of(families, key);
    if (!*family) return fp8r_tool_error_memory(error, "the families");
    memcpy((*family)->text, text, sizeof text);
    return FP8R_EXIT_GOOD;
}

static int add_m(struct fp8r_tune_family *family, int64_t m, struct fp8r_tool_error *error)
{
    size_t at = 0;
    while (at < family->m_count && family->ms[at] < m)
        at++;
    if (at < family->m_count && family->ms[at] == m) return FP8R_EXIT_GOOD;
    if (family->m_count == family->m_capacity) {
        size_t capacity = family->m_capacity ? 2 * family->m_capacity : 16;
        int64_t *ms = realloc(family->ms, capacity * sizeof *ms);
        if (!ms) return fp8r_tool_error_memory(error, "the families");
        family->ms = ms;
        family->m_capacity = capacity;
    }
    memmove(family->ms + at + 1, family->ms + at, (family->m_count - at) * sizeof *family->ms);
    family->ms[at] = m;
    family->m_count++;
    return FP8R_EXIT_GOOD;
}

/* "NxK" has one x before its options; then the letter is put in, behind a batch. */
static bool complete(const char *text, char *completed, size_t size)
{
    size_t sizes = strcspn(text, ":"), batch = strcspn(text, "*"), crosses = 0;
    size_t front = batch < sizes ? batch + 1 : 0;
    for (size_t i = 0; i < sizes; i++)
        crosses += text[i] == 'x';
    int length =
        snprintf(completed, size, "%.*s%s%s", (int)front, text, crosses == 1 ? "Mx" : "", text + front);
    return length > 0 && (size_t)length < size;
}

/* Where a letter was put in, the error quotes what was written, and no position in what was not. */
static int refuse_as_written(const char *text, int code, struct fp8r_tool_error *error)
{
    char why[sizeof error->text];
    const char *position = strstr(error->text, "\", position "), *end = position ? strstr(position, ": ") : NULL;
    if (!end)
        return code;
    snprintf(why, sizeof why, "%s", end + 2);
    return fp8r_tool_error_set(error, code, "family \"%.80s\": %s", text, why);
}

int fp8r_families_add(struct fp8r_tune_families *families, const char *text, struct fp8r_tool_error *error)
{
    char completed[FP8R_TEXT_BYTES];
    struct fp8r_key key;
    struct fp8r_tune_family *family = NULL;
    if (!complete(text, completed, sizeof completed))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "the family \"%.40s...\" is too long", text);
    if (!memchr(text, 'x', strcspn(text, ":")))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "family \"%.80s\": it must be NxK, like 4096x14336, or [B*]MxNxK with the letter M", text);
    int code = fp8r_tool_status(error, fp8r_family_parse(completed, families->mode, &key));
    if (code != FP8R_EXIT_GOOD)
        return strcmp(completed, text) != 0 ? refuse_as_written(text, code, error) : code;
    if (key.batch == 0 || key.n == 0 || key.k == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "the family %.60s multiplies nothing: sizes must be at least 1", text);
    return add_key(families, &key, &family, error);
}

int fp8r_families_add_problem(struct fp8r_tune_families *families, const char *text,
                              struct fp8r_tool_error *error)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    struct fp8r_key key;
    struct fp8r_tune_family *family = NULL;
    int code = fp8r_tool_status(error, fp8r_matmul_parse(text, &matmul));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product));
    if (code != FP8R_EXIT_GOOD) return code;
    if (fp8r_problem_is_empty(&product.problem) || product.problem.k == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "%.60s multiplies nothing: sizes must be at least 1", text);
    fp8r_key_init(&product.problem, families->mode, &key);
    code = add_key(families, &key, &family, error);
    return code == FP8R_EXIT_GOOD ? add_m(family, product.problem.m, error) : code;
}

/* A line whose sizes hold the letter M, or only N and K, is a family. */
static int add_line(struct fp8r_tune_families *families, const char *line, struct fp8r_tool_error *error)
{
    size_t sizes = strcspn(line, ":"), crosses = 0;
    bool has_letter = memchr(line, 'M', sizes) != NULL;
    for (size_t i = 0; i < sizes; i++)
        crosses += line[i] == 'x';
    return has_letter || crosses == 1 ? fp8r_families_add(families, line, error)
                                      : fp8r_families_add_problem(families, line, error);
}

int fp8r_families_read(struct fp8r_tune_families *families, const char *path, struct fp8r_tool_error *error)
{
    struct fp8r_case_list list;
    struct fp8r_tool_error inner = {0};
    int code = fp8r_case_list_read(path, &list, error);
    if (code != FP8R_EXIT_GOOD) return code;
    for (size_t i = 0; i < list.count && code == FP8R_EXIT_GOOD; i++) {
        code = add_line(families, list.lines[i], &inner);
        if (code == FP8R_EXIT_USAGE) code = FP8R_EXIT_BAD_DATA;
        if (code != FP8R_EXIT_GOOD)
            fp8r_tool_error_set(error, code, "%s, line %d: %s", path, list.numbers[i], inner.text);
    }
    fp8r_case_list_fini(&list);
    return code;
}

/* The usual grid: from one token to a long prompt. */
static const int64_t default_ms[FP8R_FAMILIES_POINTS] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};

int fp8r_families_set_ms(struct fp8r_tune_families *families, const int64_t *list, size_t count,
                         struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < families->count; i++) {
        struct fp8r_tune_family *family = &families->items[i];
        const int64_t *ms = list ? list : default_ms;
        size_t m_count = list ? count : FP8R_FAMILIES_POINTS;
        if (!list && family->m_count > 0) continue;
        family->m_count = 0;
        for (size_t j = 0; j < m_count && code == FP8R_EXIT_GOOD; j++)
            code = add_m(family, ms[j], error);
    }
    return code;
}

static bool find_m(const struct fp8r_tune_family *family, int64_t m, size_t *at)
{
    for (*at = 0; *at < family->m_count; (*at)++)
        if (family->ms[*at] == m) return true;
    return false;
}

int fp8r_families_weigh(struct fp8r_tune_families *families, const struct fp8r_key *key, int64_t m, double weight,
                        struct fp8r_tool_error *error)
{
    size_t at;
    struct fp8r_tune_family *family = family_of(families, key);
    if (!family) return fp8r_tool_error_memory(error, "the families");
    if (!find_m(family, m, &at)) return FP8R_EXIT_GOOD;
    if (!family->weights) {
        family->weights = calloc(family->m_count, sizeof *family->weights);
        if (!family->weights) return fp8r_tool_error_memory(error, "the weights of families");
        for (size_t i = 0; i < family->m_count; i++)
            family->weights[i] = 1;
    }
    family->weights[at] = weight;
    return FP8R_EXIT_GOOD;
}

double fp8r_family_weight(const struct fp8r_tune_family *family, int64_t m)
{
    size_t at;
    return family->weights && find_m(family, m, &at) ? family->weights[at] : 1;
}
