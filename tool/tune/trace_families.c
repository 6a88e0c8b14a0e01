/* From what was traced to what is to be tuned.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tune/trace_read.h"

static int compare_weights(double a, double b)
{
    return (a < b) - (a > b);
}

/* By family; in it the smallest and the largest m first, which bound what is measured, then the heaviest. */
struct place {
    const struct fp8r_trace_problem *problem;
    bool is_end;
};

static int compare_by_m(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int by_key = fp8r_key_compare(&x->problem->key, &y->problem->key);
    if (by_key != 0)
        return by_key;
    return x->problem->m != y->problem->m ? (x->problem->m < y->problem->m ? -1 : 1)
                                          : strcmp(x->problem->text, y->problem->text);
}

static int compare_by_rank(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->is_end != y->is_end)
        return x->is_end ? -1 : 1;
    int by_weight = compare_weights(fp8r_trace_weight(x->problem), fp8r_trace_weight(y->problem));
    return by_weight != 0 ? by_weight : compare_by_m(a, b);
}

static bool is_empty(const struct fp8r_trace_problem *problem)
{
    return problem->m == 0 || problem->key.batch == 0 || problem->key.n == 0 || problem->key.k == 0;
}

/* count problems of one family, by m. */
static int add_family(struct fp8r_tune_families *families, struct place *places, size_t count, size_t m_most,
                      struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    places[0].is_end = places[count - 1].is_end = true;
    qsort(places, count, sizeof *places, compare_by_rank);
    for (size_t i = 0; i < count && (m_most == 0 || i < m_most) && code == FP8R_EXIT_GOOD; i++)
        code = fp8r_families_add_problem(families, places[i].problem->text, error);
    return code;
}

int fp8r_families_add_traced(struct fp8r_tune_families *families, const struct fp8r_traced *traced, size_t m_most,
                             struct fp8r_tool_error *error)
{
    struct place *places = calloc(traced->count + 1, sizeof *places);
    size_t count = 0;
    int code = FP8R_EXIT_GOOD;
    if (!places)
        return fp8r_tool_error_memory(error, "the families of a trace");
    for (size_t i = 0; i < traced->count; i++)
        if (!is_empty(&traced->problems[i]))
            places[count++].problem = &traced->problems[i];
    qsort(places, count, sizeof *places, compare_by_m);
    for (size_t first = 0, next; first < count && code == FP8R_EXIT_GOOD; first = next) {
        for (next = first + 1; next < count; next++)
            if (!fp8r_key_equal(&places[first].problem->key, &places[next].problem->key))
                break;
        code = add_family(families, places + first, next - first, m_most, error);
    }
    free(places);
    return code;
}

int fp8r_families_weigh_traced(struct fp8r_tune_families *families, const struct fp8r_traced *traced,
                               struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < families->count; i++)
        for (size_t j = 0; j < families->items[i].m_count && code == FP8R_EXIT_GOOD; j++) {
            const struct fp8r_tune_family *family = &families->items[i];
            int64_t calls = fp8r_trace_calls(traced, &family->key, family->ms[j]);
            if (calls > 0)
                code = fp8r_families_weigh(families, &family->key, family->ms[j], (double)calls, error);
        }
    return code;
}
