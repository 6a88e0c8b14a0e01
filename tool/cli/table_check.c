/* fp8route table check: what is wrong with a route file, seen from here.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/output.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/text_table.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/segment_text.h"

static bool is_good(const struct fp8r_table_report *report)
{
    return report->fits && report->miss_count == 0;
}

static int set_finding(struct fp8r_output *output, json_t *object, const struct fp8r_finding *finding,
                       struct fp8r_tool_error *error)
{
    char family[FP8R_FAMILY_BYTES] = "";
    int code = fp8r_tool_status(error, fp8r_entry_family(finding->entry, family));
    fp8r_output_set_text(output, object, "kind", fp8r_finding_name(finding->kind));
    fp8r_output_set_text(output, object, "family", family);
    fp8r_output_set(output, object, "m_first", json_integer(finding->segment->m_first));
    fp8r_output_set(output, object, "m_last", json_integer(finding->segment->m_last));
    fp8r_output_set_text(output, object, "backend", finding->segment->backend);
    fp8r_output_set_text(output, object, "config", finding->segment->config);
    fp8r_output_set_text(output, object, "sentence", finding->sentence);
    return code;
}

static int print_json(const struct fp8r_route_file *file, bool is_here, const struct fp8r_table_report *report,
                      struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    int code = FP8R_EXIT_GOOD;
    fp8r_output_init(&output, "table_check");
    fp8r_output_set_text(&output, output.root, "path", file->table.files[0]);
    fp8r_output_set(&output, output.root, "good", json_boolean(is_good(report)));
    fp8r_output_set(&output, output.root, "entry_count", json_integer((json_int_t)file->table.count));
    fp8r_output_set(&output, output.root, "fits", is_here ? json_boolean(report->fits) : json_null());
    fp8r_output_set_text(&output, output.root, "misfit", report->fits ? NULL : report->misfit);
    json_t *findings = fp8r_output_add_array(&output, output.root, "findings");
    for (size_t i = 0; i < report->count && code == FP8R_EXIT_GOOD; i++)
        code = set_finding(&output, fp8r_output_append_object(&output, findings), &report->findings[i], error);
    int printed = fp8r_output_print(&output, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

static int print_findings(const struct fp8r_table_report *report, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"family", "M", "route", "finding", "what"};
    struct fp8r_text_table table;
    int code = FP8R_EXIT_GOOD;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < report->count && code == FP8R_EXIT_GOOD; i++) {
        const struct fp8r_finding *finding = &report->findings[i];
        enum fp8r_style style = finding->kind == FP8R_FINDING_STALE ? FP8R_STYLE_NONE : FP8R_STYLE_BAD;
        char family[FP8R_FAMILY_BYTES] = "", rows[FP8R_SEGMENT_TEXT_BYTES];
        code = fp8r_tool_status(error, fp8r_entry_family(finding->entry, family));
        fp8r_text_table_add(&table, style, "%s", family);
        fp8r_rows_format(finding->segment->m_first, finding->segment->m_last, rows);
        fp8r_text_table_add(&table, style, "%s", rows);
        fp8r_text_table_add(&table, style, "%s:%s", finding->segment->backend, finding->segment->config);
        fp8r_text_table_add(&table, style, "%s", fp8r_finding_name(finding->kind));
        fp8r_text_table_add(&table, style, "%s", finding->sentence);
    }
    int printed = fp8r_text_table_print(&table, stdout, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

static int print_text(const struct fp8r_route_file *file, bool is_here, const struct fp8r_table_report *report,
                      struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    printf("%s: well formed, %zu entr%s\n", file->table.files[0], file->table.count,
           fp8r_plural(file->table.count, "y", "ies"));
    if (is_here)
        printf("machine: %s\n", report->fits ? "this one" : report->misfit);
    else
        printf("machine: not looked at, which --device does\n");
    if (report->count > 0) {
        printf("\n");
        code = print_findings(report, error);
        printf("\n");
    }
    size_t stale = report->count - report->miss_count;
    if (!report->fits)
        printf("none of its routes is used here\n");
    if (report->fits || report->count > 0)
        printf("%zu route%s would miss, %zu %s stale\n", report->miss_count, fp8r_s(report->miss_count), stale,
               fp8r_plural(stale, "is", "are"));
    return code;
}

int fp8r_table_print_check(const struct fp8r_route_file *file, const struct fp8r_common *common,
                           struct fp8r_tool_error *error)
{
    struct fp8r_session session;
    struct fp8r_table_report report;
    bool is_here = common->device != NULL;
    int code = fp8r_session_open(common, FP8R_NO_ROUTE_FILES, &session, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = fp8r_table_check(file, session.context, is_here, &report, error);
    if (code == FP8R_EXIT_GOOD) {
        code = common->json ? print_json(file, is_here, &report, error) : print_text(file, is_here, &report, error);
        if (code == FP8R_EXIT_GOOD && !is_good(&report))
            code = FP8R_EXIT_FAILED;
        fp8r_table_report_fini(&report);
    }
    fp8r_session_close(&session);
    return code;
}
