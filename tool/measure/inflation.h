/* How much less a row of samples says than as many independent ones would: the factor by which the variance
 * of their median grows when neighbours resemble each other. Knows ranks only, neither times nor decisions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_INFLATION_H
#define FP8R_INFLATION_H

#include <stddef.h>

#define FP8R_INFLATION_SAMPLES_MAX 120

/* samples: count values in the order they were taken, 2 <= count <= FP8R_INFLATION_SAMPLES_MAX, none NaN. At
 * least 1; 1 for independent samples and for constant ones, about 2.3 for an autoregression of 0.5, 6.4 for
 * one of 0.8. */
double fp8r_median_inflation(const double *samples, size_t count);

#endif
