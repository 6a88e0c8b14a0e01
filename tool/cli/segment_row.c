/* Printing segments. SPDX-License-Identifier: Apache-2.0 */
#include "cli/segment_row.h"

#include <stdio.h>

#include "tune/segment_text.h"

void fp8r_segment_table_init(struct fp8r_text_table *table)
{
    static const char *const headings[] = {"family", ">M", "backend", ">time", "runner-up", ">its time", ">gain", "verdict"};
    fp8r_text_table_init(table, headings, sizeof headings / sizeof *headings);
}

void fp8r_segment_row(struct fp8r_text_table *table, const char *family, const struct fp8r_segment *segment)
{
    enum fp8r_style style = segment->is_clear ? FP8R_STYLE_NONE : FP8R_STYLE_DIM;
    char text[FP8R_SEGMENT_TEXT_BYTES];
    fp8r_text_table_add(table, style, "%s", family);
    fp8r_rows_format(segment->m_first, segment->m_last, text);
    fp8r_text_table_add(table, style, "%s", text);
    fp8r_text_table_add(table, style, "%s:%s", segment->backend, segment->config);
    fp8r_time_format(segment->median_us, text);
    fp8r_text_table_add(table, style, "%s", text);
    fp8r_text_table_add(table, style, "%s", segment->runner_up[0] ? segment->runner_up : "-");
    fp8r_time_format(segment->runner_up_us, text);
    fp8r_text_table_add(table, style, "%s", text);
    fp8r_gain_format(segment->gain_low, segment->gain_high, text);
    fp8r_text_table_add(table, style, "%s", text);
    fp8r_text_table_add(table, style, "%s", segment->is_clear ? "clear" : "tie");
}

int fp8r_segment_table_print(struct fp8r_text_table *table, double margin, struct fp8r_tool_error *error)
{
    int code = fp8r_text_table_print(table, stdout, error);
    if (code == FP8R_EXIT_GOOD) printf("(tie: nobody is surely faster than the default by %g %%, which stays)\n", 100 * margin);
    return code;
}

void fp8r_segment_object(struct fp8r_output *output, json_t *object, const struct fp8r_segment *segment)
{
    fp8r_output_set(output, object, "m_first", json_integer(segment->m_first));
    fp8r_output_set(output, object, "m_last", json_integer(segment->m_last));
    fp8r_output_set_text(output, object, "backend", segment->backend);
    fp8r_output_set_text(output, object, "config", segment->config);
    fp8r_output_set(output, object, "median_us", json_real(segment->median_us));
    fp8r_output_set_text(output, object, "runner_up", segment->runner_up);
    fp8r_output_set(output, object, "runner_up_us", json_real(segment->runner_up_us));
    fp8r_output_set(output, object, "gain_low", json_real(segment->gain_low));
    fp8r_output_set(output, object, "gain_high", json_real(segment->gain_high));
    fp8r_output_set_text(output, object, "verdict", segment->is_clear ? "clear" : "tie");
}
