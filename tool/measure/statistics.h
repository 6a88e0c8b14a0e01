/* Robust statistics of samples: medians, quantiles, and intervals that assume nothing of the distribution.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_STATISTICS_H
#define FP8R_STATISTICS_H

#include <stddef.h>

/* Sorts ascending. No value may be NaN. */
void fp8r_sort(double *values, size_t count);

/* Of sorted values, count >= 1: linear between neighbours; share from 0 to 1. */
double fp8r_quantile(const double *sorted, size_t count, double share);
double fp8r_median(const double *sorted, size_t count);

/* An interval that holds the true median with probability `coverage` at least. */
struct fp8r_interval {
    double low, high;
    double coverage; /* what it really has: less than asked for where there are too few samples, then [min,
                        max] */
};

/* The narrowest pair of order statistics around the middle, by the exact binomial distribution. count >= 1.
 */
struct fp8r_interval fp8r_median_interval(const double *sorted, size_t count, double coverage);

/* Of the ratios numerators[i] / denominators[i], count >= 1, which go to `ratios` (sorted). */
struct fp8r_ratio {
    double median;
    struct fp8r_interval interval;
};
struct fp8r_ratio fp8r_paired_ratio(const double *numerators, const double *denominators, size_t count,
                                    double coverage, double *ratios);

#endif
