/* fp8route table show: the content of a route file.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/table.h"
#include "cli/text_table.h"
#include "tool_status.h"
#include "tune/segment_text.h"

static const char *kind_name(const struct fp8r_route_file *file)
{
    return file->identity.kind == FP8R_DEVICE_CUDA ? "cuda" : "cpu";
}

static const char *protocol_name(bool is_quick)
{
    return is_quick ? "quick" : "full";
}

static const char *mode_name(const struct fp8r_route_file *file)
{
    return file->mode == FP8R_MODE_GRAPH ? "graph" : "eager";
}

static const char *operands_name(const struct fp8r_route_file *file)
{
    return file->is_cold ? "cold" : "warm";
}

static const char *verdict_name(const struct fp8r_segment *segment)
{
    return segment->is_clear ? "clear" : "tie";
}

/* ---- JSON ---- */

static void set_header(struct fp8r_output *output, const struct fp8r_route_file *file)
{
    char identity[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&file->identity, identity);
    fp8r_output_set_text(output, output->root, "path", file->table.files[0]);
    fp8r_output_set_text(output, output->root, "device", kind_name(file));
    fp8r_output_set_text(output, output->root, "identity", identity);
    json_t *libraries = fp8r_output_add_object(output, output->root, "libraries");
    for (int i = 0; i < file->identity.library_count; i++)
        fp8r_output_set_text(output, libraries, file->identity.libraries[i].backend, file->identity.libraries[i].version);
    json_t *facts = fp8r_output_add_object(output, output->root, "facts");
    for (int i = 0; i < file->fact_count; i++)
        fp8r_output_set_text(output, facts, file->facts[i].name, file->facts[i].value);
    fp8r_output_set_text(output, output->root, "protocol", protocol_name(file->is_quick));
    fp8r_output_set_text(output, output->root, "mode", mode_name(file));
    fp8r_output_set_text(output, output->root, "operands", operands_name(file));
    fp8r_output_set_text(output, output->root, "behind", file->is_behind_both ? "both" : "itself");
}

static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static void set_segment(struct fp8r_output *output, json_t *object, const struct fp8r_segment *segment)
{
    fp8r_output_set(output, object, "m_first", json_integer(segment->m_first));
    fp8r_output_set(output, object, "m_last", json_integer(segment->m_last));
    json_t *at = fp8r_output_add_array(output, object, "at");
    for (int i = 0; i < segment->at.count; i++)
        json_array_append_new(at, json_integer(segment->at.values[i]));
    fp8r_output_set_text(output, object, "backend", segment->backend);
    fp8r_output_set_text(output, object, "config", segment->config);
    fp8r_output_set_text(output, object, "rev", segment->rev);
    fp8r_output_set(output, object, "median_us", json_real(segment->median_us));
    fp8r_output_set_text(output, object, "runner_up", *segment->runner_up ? segment->runner_up : NULL);
    fp8r_output_set(output, object, "runner_up_us", number_or_null(segment->runner_up_us));
    fp8r_output_set_text(output, object, "rival", *segment->rival ? segment->rival : NULL);
    fp8r_output_set(output, object, "rival_us", number_or_null(segment->rival_us));
    fp8r_output_set(output, object, "rival_gain_low", number_or_null(segment->rival_low));
    fp8r_output_set(output, object, "rival_gain_high", number_or_null(segment->rival_high));
    fp8r_output_set(output, object, "gain_low", number_or_null(segment->gain_low));
    fp8r_output_set(output, object, "gain_high", number_or_null(segment->gain_high));
    fp8r_output_set_text(output, object, "verdict", verdict_name(segment));
}

static int show_json(const struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    int code = FP8R_EXIT_GOOD;
    fp8r_output_init(&output, "table_show");
    set_header(&output, file);
    json_t *entries = fp8r_output_add_array(&output, output.root, "entries");
    for (size_t i = 0; i < file->table.count && code == FP8R_EXIT_GOOD; i++) {
        char family[FP8R_FAMILY_BYTES] = "";
        const struct fp8r_entry *entry = &file->table.entries[i];
        json_t *object = fp8r_output_append_object(&output, entries);
        code = fp8r_tool_status(error, fp8r_entry_family(entry, family));
        fp8r_output_set_text(&output, object, "family", family);
        fp8r_output_set_text(&output, object, "protocol", protocol_name(entry->is_quick));
        json_t *segments = fp8r_output_add_array(&output, object, "segments");
        for (int j = 0; j < entry->segment_count; j++)
            set_segment(&output, fp8r_output_append_object(&output, segments), &entry->segments[j]);
    }
    int printed = fp8r_output_print(&output, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

/* ---- Text ---- */

/* What a file holds in quotes may be anything but control characters. */
static void print_header(const struct fp8r_route_file *file)
{
    char identity[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&file->identity, identity);
    printf("%s%s%s\n", fp8r_style(stdout, FP8R_STYLE_BOLD), file->table.files[0], fp8r_style(stdout, FP8R_STYLE_NONE));
    printf("  device    %s: %s\n", kind_name(file), identity);
    for (int i = 0; i < file->identity.library_count; i++)
        printf("  library   %s: %s\n", file->identity.libraries[i].backend, file->identity.libraries[i].version);
    printf("  protocol  %s, %s, operands %s%s\n", protocol_name(file->is_quick), mode_name(file), operands_name(file),
           file->is_behind_both ? ", half of the calls behind a small kernel" : "");
    for (int i = 0; i < file->fact_count; i++)
        printf("  %-9s %s\n", file->facts[i].name, file->facts[i].value);
    printf("\n");
}

static void add_time(struct fp8r_text_table *table, enum fp8r_style style, double median_us)
{
    char text[FP8R_SEGMENT_TEXT_BYTES];
    fp8r_time_format(median_us, text);
    fp8r_text_table_add(table, style, "%s", text);
}

static void add_segment(struct fp8r_text_table *table, const char *family, const struct fp8r_segment *segment)
{
    enum fp8r_style style = segment->is_clear ? FP8R_STYLE_GOOD : FP8R_STYLE_NONE;
    char text[FP8R_SEGMENT_TEXT_BYTES];
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", family);
    fp8r_rows_format(segment->m_first, segment->m_last, text);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", text);
    fp8r_text_table_add(table, style, "%s:%s", segment->backend, segment->config);
    add_time(table, style, segment->median_us);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", *segment->runner_up ? segment->runner_up : "-");
    add_time(table, FP8R_STYLE_NONE, segment->runner_up_us);
    fp8r_gain_format(segment->gain_low, segment->gain_high, text);
    fp8r_text_table_add(table, style, "%s", text);
    fp8r_text_table_add(table, style, "%s", verdict_name(segment));
}

static int show_text(const struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    static const char quick_note[] = " (quick)";
    static const char *const headings[] = {"family", "M", "backend", ">time", "runner-up", ">time", ">gain", "verdict"};
    struct fp8r_text_table table;
    int code = FP8R_EXIT_GOOD;
    print_header(file);
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < file->table.count && code == FP8R_EXIT_GOOD; i++) {
        char family[FP8R_FAMILY_BYTES + sizeof quick_note] = "";
        const struct fp8r_entry *entry = &file->table.entries[i];
        code = fp8r_tool_status(error, fp8r_entry_family(entry, family));
        if (entry->is_quick && !file->is_quick)
            memcpy(family + strlen(family), quick_note, sizeof quick_note);
        for (int j = 0; j < entry->segment_count; j++)
            add_segment(&table, j == 0 ? family : "", &entry->segments[j]);
    }
    int printed = fp8r_text_table_print(&table, stdout, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

int fp8r_table_show(const struct fp8r_route_file *file, const struct fp8r_common *common, struct fp8r_tool_error *error)
{
    return common->json ? show_json(file, error) : show_text(file, error);
}
