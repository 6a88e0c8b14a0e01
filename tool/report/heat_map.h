/* The heat map: a row a family, a column an M, the gain over the default as colour, borders of decisions as lines.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_HEAT_MAP_H
#define TOOL_REPORT_HEAT_MAP_H

#include "report/markup.h"
#include "tune/analysis.h"

void heat_map_add(const struct analysis *analysis, struct markup *markup);

#endif
