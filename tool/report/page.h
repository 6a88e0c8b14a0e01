/* The report: one HTML page of one machine's samples, complete in itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_PAGE_H
#define TOOL_REPORT_PAGE_H

#include "report/markup.h"
#include "tune/analysis.h"

/* Regret on problems that the tuner never saw, as the gate measured it; counted 0 = not measured. */
struct page_regret {
    int counted;
    double mean, worst;
    char text[512]; /* seed, distribution, candidates */
};

/* Adds the whole page. Exit codes: internal. */
int page_add(const struct samples *samples, int machine, const struct analysis *analysis, const struct page_regret *regret,
             struct markup *markup, struct fp8r_tool_error *error);

#endif
