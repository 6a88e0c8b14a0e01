/* The variance of a median under autocorrelation, from the ranks of the samples alone: heavy tails and single
 * outliers, which ruin a correlation of the values, leave that of the ranks alone. Deterministic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/inflation.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "measure/statistics.h"

/* A median is decided by the signs of its samples. Where neighbours at distance h have correlation r(h) the
 * signs have (2/pi) asin r(h) (Gaussian copula), so that the variance of a sum of signs is that of
 * independent ones times 1 + 2 sum_h (2/pi) asin r(h). */
static const double pi = 3.14159265358979323846;

static double sign_correlation(double correlation)
{
    return 2.0 / pi * asin(correlation);
}

/* How many of the sorted values are below `value`, or with `equal` not above it. */
static size_t values_below(const double *sorted, size_t count, double value, bool equal)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sorted[middle] < value || (equal && sorted[middle] == value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Mid-ranks: equal samples share the mean of their places, so that a coarse clock does not look like an
 * order. */
static void ranks_centre(const double *samples, size_t count, double *ranks)
{
    double sorted[FP8R_INFLATION_SAMPLES_MAX];
    memcpy(sorted, samples, count * sizeof *sorted);
    fp8r_sort(sorted, count);
    for (size_t i = 0; i < count; i++) {
        size_t first = values_below(sorted, count, samples[i], false);
        size_t past = values_below(sorted, count, samples[i], true);
        ranks[i] = 0.5 * ((double)first + (double)past - (double)count);
    }
}

/* Correlation at a distance, from Spearman's: 2 sin(pi/6 s). A sample correlation is too small by about
 * 1/count. */
static double rank_correlation(const double *ranks, size_t count, size_t distance, double variance)
{
    double sum = 0;
    for (size_t i = distance; i < count; i++)
        sum += ranks[i] * ranks[i - distance];
    double correlation = 2.0 * sin(pi / 6.0 * (sum / variance)) + 1.0 / (double)count;
    return fmax(-1.0, fmin(1.0, correlation));
}

/* What an autoregression of this coefficient costs. Beyond 0.97 a hundred samples hold no more than three. */
static double autoregression_inflation(double coefficient)
{
    double rho = fmin(coefficient, 0.97), inflation = 1;
    for (double power = rho; power > 1e-6; power *= rho)
        inflation += 2.0 * sign_correlation(power);
    return inflation;
}

/* The larger of two estimates: an autoregression through the nearest neighbours alone (steady, but blind to a
 * slow drift under white noise) and the sum of correlations up to distance sqrt(count), tapered in its outer
 * half (sees that, but is cut off and noisier). */
double fp8r_median_inflation(const double *samples, size_t count)
{
    double ranks[FP8R_INFLATION_SAMPLES_MAX], variance = 0;
    ranks_centre(samples, count, ranks);
    for (size_t i = 0; i < count; i++)
        variance += ranks[i] * ranks[i];
    if (variance == 0.0) return 1;
    size_t reach = 1;
    while ((reach + 1) * (reach + 1) <= count)
        reach++;
    double tapered = 1, nearest = rank_correlation(ranks, count, 1, variance);
    for (size_t h = 1; h <= reach && h < count; h++) {
        double weight = fmin(1.0, 2.0 * (1.0 - (double)h / (double)(reach + 1)));
        tapered += 2.0 * weight * sign_correlation(rank_correlation(ranks, count, h, variance));
    }
    return fmax(1.0, fmax(tapered, autoregression_inflation(nearest)));
}
