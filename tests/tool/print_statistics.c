/* What the statistics say, as JSON lines, for check_statistics.py to hold against SciPy: samples from a
 * seeded generator, medians, quantiles, intervals, the sequential constants and decisions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure/sequential.h"
#include "measure/statistics.h"
#include "tool/noise.h"

static void list_print(const char *name, const double *values, size_t count)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%.17g", i > 0 ? ", " : "", values[i]);
    printf("]");
}

static void sample_print(size_t count, struct noise *source)
{
    static const double coverages[] = {0.5, 0.9, 0.95, 0.99, 0.9999};
    double values[1000];
    for (size_t i = 0; i < count; i++)
        values[i] = exp(0.1 * noise_normal(source));
    printf("{\"kind\": \"sample\", ");
    list_print("values", values, count);
    fp8r_sort(values, count);
    printf(", \"median\": %.17g, \"q10\": %.17g, \"q99\": %.17g, \"intervals\": [",
           fp8r_median(values, count), fp8r_quantile(values, count, 0.10),
           fp8r_quantile(values, count, 0.99));
    for (size_t i = 0; i < sizeof coverages / sizeof *coverages; i++) {
        struct fp8r_interval interval = fp8r_median_interval(values, count, coverages[i]);
        printf("%s[%g, %.17g, %.17g, %.17g]", i > 0 ? ", " : "", coverages[i], interval.low, interval.high,
               interval.coverage);
    }
    printf("]}\n");
}

static void constants_print(const struct fp8r_sequential *sequential)
{
    printf("{\"kind\": \"constants\", \"error\": %.17g, \"candidates\": %d, \"looks\": [",
           sequential->options.error, sequential->options.candidates);
    for (int i = 0; i < sequential->look_count; i++)
        printf("%s[%d, %d, %.17g]", i > 0 ? ", " : "", sequential->looks[i], sequential->critical[i],
               sequential->spent[i]);
    printf("]}\n");
}

/* Pairs with an autoregression of rho and, where coarse, a clock of one tick per 50 us. */
static void decision_print(const struct fp8r_sequential *sequential, double rho, bool is_coarse,
                           struct noise *source)
{
    double bases[120], others[120], walk = noise_normal(source);
    struct fp8r_pair pairs[120];
    struct fp8r_paired_result result;
    for (int i = 0; i < 120; i++) {
        walk = noise_follow(source, walk, rho);
        bases[i] = 1000 * exp(0.05 * walk + 0.018);
        others[i] = 1000;
        if (is_coarse) bases[i] = 50 * floor(bases[i] / 50);
        pairs[i] = (struct fp8r_pair){bases[i], others[i]};
    }
    if (fp8r_sequential_decide(sequential, pairs, 120, &result, NULL) != FP8R_EXIT_GOOD) exit(1);
    printf("{\"kind\": \"decision\", ");
    list_print("base", bases, 120);
    printf(", ");
    list_print("other", others, 120);
    printf(", \"pairs\": %d, \"critical\": ", result.pairs);
    for (int i = 0; i < sequential->look_count; i++) {
        if (sequential->looks[i] == result.pairs) printf("%d", sequential->critical[i]);
    }
    printf(", \"ratio\": %.17g, \"inflation\": %.17g, \"low\": %.17g, \"high\": ", result.ratio,
           result.inflation, result.low);
    printf(isfinite(result.high) ? "%.17g}\n" : "null}\n", result.high);
}

int main(void)
{
    static const size_t counts[] = {1, 2, 3, 5, 6, 7, 10, 29, 30, 61, 120, 1000};
    static const int looks[] = {30, 45, 60, 90, 120};
    struct noise source = {2026};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        sample_print(counts[i], &source);
    for (int kind = 0; kind < 2; kind++) {
        for (int candidates = 1; candidates <= 64; candidates *= 4) {
            for (size_t i = 0; i < 5; i++) {
                struct fp8r_sequential_options options =
                    fp8r_sequential_defaults(kind == 0 ? FP8R_SEQUENTIAL_TUNE : FP8R_SEQUENTIAL_GATE);
                struct fp8r_sequential sequential;
                options.candidates = candidates;
                options.pairs_max = looks[i];
                if (fp8r_sequential_init(&sequential, &options, NULL) != FP8R_EXIT_GOOD) return 1;
                constants_print(&sequential);
                for (int j = 0; j < 8; j++)
                    decision_print(&sequential, 0.25 * (j % 4), j >= 4, &source);
            }
        }
    }
    return 0;
}
