/* Order statistics.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fp8r_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

double fp8r_quantile(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count) return sorted[count - 1];
    double weight = at - (double)below;
    return sorted[below] + weight * (sorted[below + 1] - sorted[below]);
}

double fp8r_median(const double *sorted, size_t count)
{
    return fp8r_quantile(sorted, count, 0.5);
}

/* P(a binomial of count halves is k); from logarithms, so that 2^-count may be tiny. */
static double binomial_at(size_t count, size_t at)
{
    double n = (double)count, k = (double)at;
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
}

/* The interval from the rank-th smallest to the rank-th largest misses with 2 P(B < rank). */
struct fp8r_interval fp8r_median_interval(const double *sorted, size_t count, double coverage)
{
    size_t rank = 1;
    double below = binomial_at(count, 0); /* P(B < rank) */
    while (rank + 1 <= (count + 1) / 2) {
        double next = below + binomial_at(count, rank);
        if (1 - 2 * next < coverage) break;
        below = next;
        rank++;
    }
    return (struct fp8r_interval){
        .low = sorted[rank - 1], .high = sorted[count - rank], .coverage = fmax(0, 1 - 2 * below)};
}

struct fp8r_ratio fp8r_paired_ratio(const double *numerators, const double *denominators, size_t count,
                                    double coverage, double *ratios)
{
    for (size_t i = 0; i < count; i++)
        ratios[i] = numerators[i] / denominators[i];
    fp8r_sort(ratios, count);
    return (struct fp8r_ratio){fp8r_median(ratios, count), fp8r_median_interval(ratios, count, coverage)};
}
