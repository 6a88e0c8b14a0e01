/* Segments of route files as rows of a table and as objects of JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SEGMENT_ROW_H
#define FP8R_SEGMENT_ROW_H

#include "cli/output.h"
#include "cli/text_table.h"
#include "tune/points.h"

void fp8r_segment_table_init(struct fp8r_text_table *table);
void fp8r_segment_row(struct fp8r_text_table *table, const char *family, const struct fp8r_segment *segment);
/* The table, and what a tie is: margin, a share, says by how much one must win. Frees the table as fp8r_text_table_print does. */
int fp8r_segment_table_print(struct fp8r_text_table *table, double margin, struct fp8r_tool_error *error);
void fp8r_segment_object(struct fp8r_output *output, json_t *object, const struct fp8r_segment *segment);

#endif
