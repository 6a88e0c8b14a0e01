/* Judging a result where it lies: what a device with memory of its own can do to compare every element of a product with
 * one that is known to be right, so that only a count comes back. Plain data and functions; who decides what is right is
 * yardstick.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_JUDGE_H
#define FP8R_JUDGE_H

#include <stddef.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element (i, r, c) of out may lie from expected - error to expected + error, both rounded to out's type, where
 * error = sum_share |expected - bias| + spread_share |scale_a scale_b| spread_a[i, r] spread_b[i, c]
 *         + value_share |expected| + least.
 * NaN belongs where expected is NaN and nowhere else, and no element may still be all ones, as it was before. */
struct fp8r_comparison {
    fp8r_matrix out, scale_a, scale_b, bias; /* data on the device */
    const float *expected;                   /* [batch, rows, cols], packed */
    const float *spread_a, *spread_b;        /* [batch, rows], [batch, cols], packed */
    double sum_share, spread_share, value_share, least;
};

/* What came of it. `first` is (i * rows + r) * cols + c of the first wrong element. */
struct fp8r_comparison_result {
    uint64_t wrong, first;
};

struct fp8r_judge {
    /* Every byte. */
    fp8r_status (*fill)(void *user, void *memory, int byte, size_t bytes);
    /* Of each line of an fp8 matrix (a row of a where of_rows, otherwise a column of b), in every batch item: the fourth
     * root of the sum of fourth powers. batch: items wanted, of which a matrix with one item has copies. */
    fp8r_status (*spread)(void *user, const fp8r_matrix *matrix, int64_t batch, int of_rows, float *to);
    /* values[i] = from[places[i]]; both arrays are the host's. */
    fp8r_status (*gather)(void *user, const float *from, const int64_t *places, size_t count, float *values);
    fp8r_status (*compare)(void *user, const struct fp8r_comparison *comparison,
                           struct fp8r_comparison_result *result);
};

#ifdef __cplusplus
}
#endif
#endif
