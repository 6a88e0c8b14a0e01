/* Judging where a product's data is, once its problem has been judged: in most calls by one look at all pointers; only
 * where that finds something is it asked what.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "problem/problem.h"

#define INVALID(...) fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

/* Aligned at least as planned. An absent operand's alignment is 0, so that no pointer but NULL is. */
static bool is_as_planned(const fp8r_operand *operand, const void *pointer)
{
    return ((uintptr_t)pointer & ((uintptr_t)operand->align_bytes - 1)) == 0;
}

/* Present where they are read or written at all. */
static fp8r_status check_presence(const fp8r_problem *problem, const fp8r_pointers *pointers)
{
    bool multiplies = problem->k > 0;
    const struct {
        const char *name;
        const void *pointer;
        bool needed;
    } operands[] = {
        {"a", pointers->a, multiplies},
        {"b", pointers->b, multiplies},
        {"out", pointers->out, true},
        {"scale_a", pointers->scale_a, multiplies && problem->scale_a.dtype != FP8R_DTYPE_NONE},
        {"scale_b", pointers->scale_b, multiplies && problem->scale_b.dtype != FP8R_DTYPE_NONE},
        {"bias", pointers->bias, problem->bias.dtype != FP8R_DTYPE_NONE},
    };
    for (int i = 0; i < 6; i++)
        if (operands[i].needed && !operands[i].pointer)
            return INVALID("%s's data pointer is NULL", operands[i].name);
    return FP8R_OK;
}

/* Which input, if any, shares bytes with out. */
static fp8r_status check_overlap(const fp8r_problem *problem, int64_t m, const fp8r_pointers *pointers)
{
    const int64_t out_extents[3] = {problem->batch, m, problem->n};
    const struct {
        const char *name;
        const void *pointer;
        const fp8r_operand *operand;
        int64_t extents[3];
    } inputs[] = {
        {"a", pointers->a, &problem->a, {problem->batch, m, problem->k}},
        {"b", pointers->b, &problem->b, {problem->batch, problem->k, problem->n}},
        {"scale_a", pointers->scale_a, &problem->scale_a, {problem->batch, m, 1}},
        {"scale_b", pointers->scale_b, &problem->scale_b, {problem->batch, 1, problem->n}},
        {"bias", pointers->bias, &problem->bias, {problem->batch, 1, problem->n}},
    };
    for (int i = 0; i < 5; i++)
        if (inputs[i].pointer && inputs[i].operand->dtype != FP8R_DTYPE_NONE &&
            fp8r_overlap_certain(pointers->out, &problem->out, inputs[i].pointer, inputs[i].operand, out_extents,
                                 inputs[i].extents))
            return INVALID("out overlaps %s in memory: out must not share bytes with an input", inputs[i].name);
    return FP8R_OK;
}

fp8r_status fp8r_data_check(const fp8r_problem *problem, int64_t m, const fp8r_pointers *pointers)
{
    FP8R_TRY(check_presence(problem, pointers));
    return check_overlap(problem, m, pointers);
}

/* Not as planned: which one, and how. */
FP8R_COLD static fp8r_status refuse_pointer(const fp8r_problem *planned, const fp8r_pointers *pointers)
{
    const struct {
        const char *name;
        const void *pointer;
        const fp8r_operand *operand;
    } operands[] = {{"a", pointers->a, &planned->a},
                    {"b", pointers->b, &planned->b},
                    {"out", pointers->out, &planned->out},
                    {"scale_a", pointers->scale_a, &planned->scale_a},
                    {"scale_b", pointers->scale_b, &planned->scale_b},
                    {"bias", pointers->bias, &planned->bias}};
    int i = 0;
    while (i < 5 && is_as_planned(operands[i].operand, operands[i].pointer))
        i++;
    if (operands[i].operand->dtype == FP8R_DTYPE_NONE)
        return INVALID("pointers.%s is given, but the plan has no %s", operands[i].name, operands[i].name);
    return INVALID("pointers.%s is aligned to %d bytes: the plan was made for %d", operands[i].name,
                   (int)fp8r_pointer_align(operands[i].pointer), (int)operands[i].operand->align_bytes);
}

/* Is an input that the plan has missing, or does it reach into out? */
static bool is_suspect(const struct fp8r_reach *out, const void *data, const fp8r_operand *operand, int64_t batch,
                       int64_t rows, int64_t cols)
{
    if (!data)
        return operand->dtype != FP8R_DTYPE_NONE;
    const struct fp8r_reach reach = fp8r_reach_of(data, operand, (const int64_t[3]){batch, rows, cols});
    return fp8r_reach_meets(out, &reach);
}

fp8r_status fp8r_pointers_check(const fp8r_problem *planned, int64_t m_max, const fp8r_pointers *pointers)
{
    if (!pointers)
        return INVALID("pointers is NULL");
    if (pointers->struct_size < sizeof *pointers)
        return INVALID("pointers.struct_size is %zu: set it to sizeof(fp8r_pointers), %zu", pointers->struct_size,
                       sizeof *pointers);
    const int64_t batch = planned->batch, m = pointers->m, n = planned->n, k = planned->k;
    if (m < 0 || m > m_max)
        return INVALID("pointers.m is %lld: this plan runs 0 to %lld rows", (long long)m, (long long)m_max);
    if (m == 0 || fp8r_problem_is_empty(planned))
        return FP8R_OK;
    if (!is_as_planned(&planned->a, pointers->a) || !is_as_planned(&planned->b, pointers->b) ||
        !is_as_planned(&planned->out, pointers->out) || !is_as_planned(&planned->scale_a, pointers->scale_a) ||
        !is_as_planned(&planned->scale_b, pointers->scale_b) || !is_as_planned(&planned->bias, pointers->bias))
        return refuse_pointer(planned, pointers);
    const struct fp8r_reach out = fp8r_reach_of(pointers->out, &planned->out, (const int64_t[3]){batch, m, n});
    if (!pointers->out || is_suspect(&out, pointers->a, &planned->a, batch, m, k) ||
        is_suspect(&out, pointers->b, &planned->b, batch, k, n) ||
        is_suspect(&out, pointers->scale_a, &planned->scale_a, batch, m, 1) ||
        is_suspect(&out, pointers->scale_b, &planned->scale_b, batch, 1, n) ||
        is_suspect(&out, pointers->bias, &planned->bias, batch, 1, n))
        return fp8r_data_check(planned, m, pointers);
    return FP8R_OK;
}
