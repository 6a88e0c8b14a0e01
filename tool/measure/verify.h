/* Is a result right? Element by element against double, each within a bound of its own that follows from K
 * and the magnitudes of its terms, then from out's rounding. NaN must be where NaN belongs and nowhere else.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_VERIFY_H
#define FP8R_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fp8route/backend.h>

#include "tool_error.h"

struct fp8r_verify_options {
    uint64_t seed;           /* of the sample */
    int64_t whole_limit;     /* the whole result is checked up to this many operations (2 B M N K) */
    int64_t sample_elements; /* at least this many otherwise */
    double accumulate_unit;  /* largest relative error of one addition: 2^-24 for fp32 */
    bool has_tensor_cores;   /* sums of 8-bit products are kept to 13 bits: a bound of their own */
    int threads;             /* that work out expected values; 0 stands for 1 */
};

/* 2e9 operations, 4096 elements, fp32. */
extern const struct fp8r_verify_options fp8r_verify_defaults;

/* The same for what a device computes with. */
struct fp8r_verify_options fp8r_verify_options_of(const fp8r_device_facts *device);

/* What is expected of one element: anything from low to high, or NaN. */
struct fp8r_expectation {
    double exact, bound; /* |value - exact| <= bound follows from the interval */
    float low, high;     /* of out's type: what is really compared */
    bool is_nan;
};

struct fp8r_place {
    int64_t batch, row, col;
};

/* The expected values of one product, worked out as they are needed; those of a sample are kept for the next
 * result. The operands must live, unchanged, as long as it does. */
struct fp8r_verifier;

/* Exit codes: INTERNAL when out of memory. */
int fp8r_verifier_create(const fp8r_matmul *matmul, const struct fp8r_verify_options *options,
                         struct fp8r_verifier **verifier, struct fp8r_tool_error *error);
void fp8r_verifier_destroy(struct fp8r_verifier *verifier);

struct fp8r_verdict {
    bool is_good, is_whole;
    int64_t checked, wrong; /* elements */
    double worst_error,
        worst_bound; /* of the element that came nearest to its bound, or went furthest beyond */
    struct fp8r_place worst;
    char text[256]; /* the first wrong element in words; "" */
};

/* Checks a result: an array laid out as the product's out, in host memory. */
void fp8r_verify(struct fp8r_verifier *verifier, const void *out, struct fp8r_verdict *verdict);

/* The sample, in the order of its values; NULL: the whole result is checked. */
const struct fp8r_place *fp8r_verifier_places(const struct fp8r_verifier *verifier, size_t *count);

/* Checks the values of the sample, of a product whose out is fp32. */
void fp8r_verify_values(struct fp8r_verifier *verifier, const float *values, struct fp8r_verdict *verdict);

/* How far two results of one product may lie apart before the last rounding, when the one comes from fp32 sums of unit
 * `unit` and the other from a device's tensor cores: sum |S| + spread D + value |r|, with S the scaled sum, D the scaled
 * root of its terms' squares and r the result. */
struct fp8r_error_shares {
    double sum, spread, value;
};
struct fp8r_error_shares fp8r_error_shares_of(const fp8r_matmul *matmul, double unit);

#endif
