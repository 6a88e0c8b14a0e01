/* The normalised problem: made from a user's fp8r_matmul by validation, the only code that judges user arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROBLEM_PROBLEM_H
#define FP8R_PROBLEM_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fp8route/backend.h>

/* A product: what it is, and where its data is. */
struct fp8r_product {
    fp8r_problem problem;
    fp8r_pointers pointers; /* NULL for absent operands */
};

enum fp8r_data {
    FP8R_DATA_IGNORED, /* pointers only lend their alignment; NULL = 256 bytes */
    FP8R_DATA_USED     /* pointers must be there, and out must not overlap an input */
};

/* Normalises and checks; on failure last_error names the argument, and *product is undefined.
 * The problem may be empty (batch, m, n or k of 0): see below. */
fp8r_status fp8r_product_init(const fp8r_matmul *matmul, enum fp8r_data data, struct fp8r_product *product);

/* Nothing to write at all. */
static inline bool fp8r_problem_is_empty(const fp8r_problem *problem)
{
    return problem->batch == 0 || problem->m == 0 || problem->n == 0;
}

/* A product from a problem, for code that builds families: out of date data, packed batch strides for `m` rows. */
void fp8r_problem_set_m(fp8r_problem *problem, int64_t m);

/* Largest power of two <= 256 that divides the address; 256 for NULL. */
static inline int32_t fp8r_pointer_align(const void *pointer)
{
    const uintptr_t address = (uintptr_t)pointer | 256u;
    return (int32_t)(address & (~address + 1));
}

/* First and last byte of an operand that validation has passed. */
struct fp8r_reach {
    uintptr_t first, last;
};
struct fp8r_reach fp8r_reach_of(const void *data, const fp8r_operand *operand, const int64_t extents[3]);

/* Where two reaches do not meet, the operands share no byte, whatever lies between. */
static inline bool fp8r_reach_meets(const struct fp8r_reach *a, const struct fp8r_reach *b)
{
    return (a->last >= b->first) & (b->last >= a->first);
}

/* Does any byte of out certainly belong to the input too? Extents are those of the problem. */
bool fp8r_overlap_certain(const void *out, const fp8r_operand *out_layout, const void *in,
                          const fp8r_operand *in_layout, const int64_t out_extents[3], const int64_t in_extents[3]);

/* The data of a product of m rows that is not empty: present where it is read or written, out clear of the inputs. */
fp8r_status fp8r_data_check(const fp8r_problem *problem, int64_t m, const fp8r_pointers *pointers);

/* Judges a plan's run: m within 0..m_max, pointers present and aligned as planned, out clear of the inputs. */
fp8r_status fp8r_pointers_check(const fp8r_problem *planned, int64_t m_max, const fp8r_pointers *pointers);

#endif
