/* A family's curves: time against M, both logarithmic, a line a backend with intervals, and the machine's limits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_CURVE_H
#define TOOL_REPORT_CURVE_H

#include "report/markup.h"
#include "tune/analysis.h"

/* What no kernel passes here: reading the weights once at read_gbs, and the best rate of arithmetic that any sample of
 * the report reached. 0 = not known, no line. */
struct curve_limits {
    double read_gbs, best_gflops;
};

/* The best rate over all families. */
double curve_best_gflops(const struct analysis *analysis);

void curve_add(const struct analysis_family *family, const struct curve_limits *limits, struct markup *markup);

#endif
