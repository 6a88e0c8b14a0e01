/* fp8route table diff: what changed between two route files, and why.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/output.h"
#include "cli/table.h"
#include "cli/text_table.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/route_build.h"
#include "tune/route_diff.h"
#include "tune/segment_text.h"

/* Both files and what lies between them. */
struct comparison {
    struct fp8r_route_file old, new;
    struct fp8r_table_diff diff;
    char misfit[2 * FP8R_HEADER_BYTES + 16]; /* both machines; "" where they are one */
};

static const char *verdict_name(const struct fp8r_segment *segment)
{
    return segment->is_clear ? "clear" : "tie";
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* ---- JSON ---- */

static void set_file(struct fp8r_output *output, const char *name, const struct fp8r_route_file *file)
{
    char machine[FP8R_HEADER_BYTES];
    json_t *object = fp8r_output_add_object(output, output->root, name);
    fp8r_header_describe(file, machine);
    fp8r_output_set_text(output, object, "path", file->table.files[0]);
    fp8r_output_set_text(output, object, "machine", machine);
}

static void set_side(struct fp8r_output *output, json_t *object, const char *name, const struct fp8r_segment *segment)
{
    if (!segment) {
        fp8r_output_set(output, object, name, json_null());
        return;
    }
    bool has_gain = segment->gain_low > 0;
    json_t *side = fp8r_output_add_object(output, object, name);
    fp8r_output_set_text(output, side, "backend", segment->backend);
    fp8r_output_set_text(output, side, "config", segment->config);
    fp8r_output_set_text(output, side, "rev", segment->rev);
    fp8r_output_set_text(output, side, "verdict", verdict_name(segment));
    fp8r_output_set(output, side, "median_us", json_real(segment->median_us));
    fp8r_output_set(output, side, "gain_low", has_gain ? json_real(segment->gain_low) : json_null());
    fp8r_output_set(output, side, "gain_high", has_gain ? json_real(segment->gain_high) : json_null());
}

static int set_range(struct fp8r_output *output, json_t *object, const struct fp8r_diff_range *range,
                     struct fp8r_tool_error *error)
{
    char family[FP8R_FAMILY_BYTES] = "";
    int code = fp8r_tool_status(error, fp8r_entry_family(range->entry, family));
    fp8r_output_set_text(output, object, "family", family);
    fp8r_output_set(output, object, "m_first", json_integer(range->m_first));
    fp8r_output_set(output, object, "m_last", json_integer(range->m_last));
    fp8r_output_set_text(output, object, "change", fp8r_change_name(range->change));
    fp8r_output_set(output, object, "contradiction", json_boolean(range->is_contradiction));
    fp8r_output_set_text(output, object, "why", *range->why ? range->why : NULL);
    set_side(output, object, "old", range->before);
    set_side(output, object, "new", range->after);
    return code;
}

static int print_json(const struct comparison *it, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    const struct fp8r_table_diff *diff = &it->diff;
    int code = FP8R_EXIT_GOOD;
    fp8r_output_init(&output, "table_diff");
    set_file(&output, "old", &it->old);
    set_file(&output, "new", &it->new);
    fp8r_output_set(&output, output.root, "same_machine", json_boolean(!*it->misfit));
    fp8r_output_set_text(&output, output.root, "misfit", *it->misfit ? it->misfit : NULL);
    json_t *counts = fp8r_output_add_object(&output, output.root, "ranges_by_change");
    for (enum fp8r_change i = 0; i < FP8R_CHANGES; i++)
        fp8r_output_set(&output, counts, fp8r_change_name(i), json_integer((json_int_t)diff->changes[i]));
    fp8r_output_set(&output, output.root, "contradiction_count", json_integer((json_int_t)diff->contradictions));
    fp8r_output_set(&output, output.root, "point_count", json_integer((json_int_t)diff->points));
    fp8r_output_set(&output, output.root, "changed_point_count", json_integer((json_int_t)diff->points_changed));
    fp8r_output_set(&output, output.root, "changed_point_share",
                    json_real(share((double)diff->points_changed, (double)diff->points)));
    fp8r_output_set(&output, output.root, "changed_length_share", json_real(share(diff->length_changed, diff->length)));
    json_t *ranges = fp8r_output_add_array(&output, output.root, "ranges");
    for (size_t i = 0; i < diff->count && code == FP8R_EXIT_GOOD; i++)
        code = set_range(&output, fp8r_output_append_object(&output, ranges), &diff->ranges[i], error);
    int printed = fp8r_output_print(&output, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

/* ---- Text ---- */

static void add_side(struct fp8r_text_table *table, enum fp8r_style style, const struct fp8r_segment *segment)
{
    if (!segment) {
        fp8r_text_table_add(table, style, "-");
        fp8r_text_table_add(table, style, "-");
        return;
    }
    fp8r_text_table_add(table, style, "%s:%s", segment->backend, segment->config);
    char gain[FP8R_SEGMENT_TEXT_BYTES];
    fp8r_gain_format(segment->gain_low, segment->gain_high, gain);
    fp8r_text_table_add(table, style, "%s%s%s", verdict_name(segment), segment->gain_low > 0 ? " " : "",
                        segment->gain_low > 0 ? gain : "");
}

static int print_changes(const struct fp8r_table_diff *diff, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"family", "M", "change", "old", "verdict", "new", "verdict", "why"};
    struct fp8r_text_table table;
    int code = FP8R_EXIT_GOOD;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < diff->count && code == FP8R_EXIT_GOOD; i++) {
        const struct fp8r_diff_range *range = &diff->ranges[i];
        enum fp8r_style style = range->is_contradiction ? FP8R_STYLE_BAD : FP8R_STYLE_NONE;
        char family[FP8R_FAMILY_BYTES] = "", rows[FP8R_SEGMENT_TEXT_BYTES];
        if (range->change == FP8R_CHANGE_NONE && !*range->why)
            continue;
        code = fp8r_tool_status(error, fp8r_entry_family(range->entry, family));
        fp8r_text_table_add(&table, style, "%s", family);
        fp8r_rows_format(range->m_first, range->m_last, rows);
        fp8r_text_table_add(&table, style, "%s", rows);
        fp8r_text_table_add(&table, style, "%s", fp8r_change_name(range->change));
        add_side(&table, style, range->before);
        add_side(&table, style, range->after);
        fp8r_text_table_add(&table, style, "%s", range->why);
    }
    if (table.count == 0) /* no heading over nothing */
        return code;
    int printed = fp8r_text_table_print(&table, stdout, error);
    printf("\n");
    return code == FP8R_EXIT_GOOD ? printed : code;
}

static void print_file(const char *name, const struct fp8r_route_file *file)
{
    char machine[FP8R_HEADER_BYTES];
    fp8r_header_describe(file, machine);
    printf("%s  %s: %s\n", name, file->table.files[0], machine);
}

static int print_text(const struct comparison *it, struct fp8r_tool_error *error)
{
    const struct fp8r_table_diff *diff = &it->diff;
    print_file("old", &it->old);
    print_file("new", &it->new);
    printf("\n");
    int code = print_changes(diff, error);
    for (enum fp8r_change i = 0; i < FP8R_CHANGES; i++)
        printf("%s%s %zu", i == 0 ? "ranges: " : ", ", fp8r_change_name(i), diff->changes[i]);
    printf("\nanother choice at %zu of %zu grid point%s (powers of two measured in both, %.1f %%), on %.1f %% of log M\n",
           diff->points_changed, diff->points, fp8r_s(diff->points), 100 * share((double)diff->points_changed, (double)diff->points),
           100 * share(diff->length_changed, diff->length));
    printf("clear for one choice in the old file and for another in the new one: %zu range%s\n", diff->contradictions,
           fp8r_s(diff->contradictions));
    return code;
}

/* ---- The action ---- */

/* Both ways: a library that only one of the files names fits the other. */
static void compare_machines(struct comparison *it)
{
    char ignored[256], old[FP8R_HEADER_BYTES], new[FP8R_HEADER_BYTES];
    it->misfit[0] = '\0';
    if (fp8r_identity_fits(&it->old.identity, &it->new.identity, ignored, sizeof ignored) &&
        fp8r_identity_fits(&it->new.identity, &it->old.identity, ignored, sizeof ignored))
        return;
    fp8r_header_describe(&it->old, old);
    fp8r_header_describe(&it->new, new);
    snprintf(it->misfit, sizeof it->misfit, "%s and %s", old, new);
    fprintf(stderr, "fp8route table diff: the files are of different machines: %s\n", it->misfit);
}

static int compare(struct comparison *it, const struct fp8r_common *common, struct fp8r_tool_error *error)
{
    compare_machines(it);
    int code = fp8r_table_compare(&it->old.table, &it->new.table, &it->diff, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = common->json ? print_json(it, error) : print_text(it, error);
    if (code == FP8R_EXIT_GOOD && it->diff.contradictions > 0)
        code = FP8R_EXIT_FAILED;
    fp8r_table_diff_fini(&it->diff);
    return code;
}

int fp8r_table_run_diff(const struct fp8r_table_arguments *arguments, const char *const *files, size_t count,
                    struct fp8r_tool_error *error)
{
    struct comparison it;
    (void)count; /* always two */
    int code = fp8r_tool_status(error, fp8r_route_file_read(files[0], &it.old));
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = fp8r_tool_status(error, fp8r_route_file_read(files[1], &it.new));
    if (code == FP8R_EXIT_GOOD) {
        code = compare(&it, &arguments->common, error);
        fp8r_route_file_fini(&it.new);
    }
    fp8r_route_file_fini(&it.old);
    return code;
}
