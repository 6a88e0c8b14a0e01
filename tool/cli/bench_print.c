/* The table and the object of `fp8route bench`.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "cli/bench.h"
#include "cli/output.h"
#include "cli/text_table.h"

static double operations_of(const char *problem)
{
    fp8r_matmul matmul;
    if (fp8r_matmul_parse(problem, &matmul) != FP8R_OK) return 0;
    return 2.0 * (double)matmul.out.batch * (double)matmul.out.rows * (double)matmul.out.cols *
           (double)matmul.a.cols;
}

static double best_us(const struct bench_row *rows, int count)
{
    double best = INFINITY;
    for (int i = 0; i < count; i++)
        if (rows[i].samples > 0) best = fmin(best, rows[i].median_us);
    return best;
}

static void add_row(struct fp8r_text_table *table, const struct bench *bench, size_t problem, int entrant)
{
    const struct bench_row *rows = bench->rows + problem * (size_t)bench->entrants.entrant_count;
    const struct bench_row *row = &rows[entrant];
    double best = best_us(rows, bench->entrants.entrant_count);
    bool is_chosen = bench->chosen[problem] == entrant;
    enum fp8r_style style = row->standing == FP8R_STANDING_WRONG ? FP8R_STYLE_BAD
                            : is_chosen                          ? FP8R_STYLE_GOOD
                                                                 : FP8R_STYLE_NONE;
    fp8r_text_table_add(table, style, "%s", bench->problems[problem]);
    fp8r_text_table_add(table, style, "%s", bench->entrants.entrants[entrant].label);
    if (row->samples > 0) {
        fp8r_text_table_add(table, style, "%.1f us", row->median_us);
        fp8r_text_table_add(table, style, "%.1f..%.1f", row->interval.low, row->interval.high);
        fp8r_text_table_add(table, style, "%.1f",
                            operations_of(bench->problems[problem]) / row->median_us / 1e3);
        fp8r_text_table_add(table, style, "%.2fx", row->median_us / best);
    } else {
        for (int i = 0; i < 4; i++)
            fp8r_text_table_add(table, style, "-");
    }
    fp8r_text_table_add(table, style, "%s%s%s", is_chosen ? "chosen" : "", is_chosen && *row->why ? "; " : "",
                        row->why);
}

int fp8r_bench_print_text(const struct bench *bench, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"problem",  "backend",  ">median", ">95 % interval",
                                           ">GFLOP/s", ">to best", ""};
    struct fp8r_text_table table;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < bench->problem_count; i++)
        for (int j = 0; j < bench->entrants.entrant_count; j++)
            if (bench->rows[i * (size_t)bench->entrants.entrant_count + (size_t)j].standing !=
                FP8R_STANDING_REFUSED)
                add_row(&table, bench, i, j);
    return fp8r_text_table_print(&table, stdout, error);
}

static void set_row(struct fp8r_output *output, json_t *object, const struct bench *bench, size_t problem,
                    int entrant)
{
    static const char *const standings[] = {"refused", "ready", "wrong", "measured", "behind"};
    const struct bench_row *row =
        &bench->rows[problem * (size_t)bench->entrants.entrant_count + (size_t)entrant];
    fp8r_output_set_text(output, object, "backend", bench->entrants.entrants[entrant].backend);
    fp8r_output_set_text(output, object, "config", bench->entrants.entrants[entrant].config);
    fp8r_output_set_text(output, object, "standing", standings[row->standing]);
    fp8r_output_set(output, object, "chosen", json_boolean(bench->chosen[problem] == entrant));
    fp8r_output_set(output, object, "samples", json_integer(row->samples));
    fp8r_output_set(output, object, "median_us", json_real(row->median_us));
    fp8r_output_set(output, object, "low_us", json_real(row->interval.low));
    fp8r_output_set(output, object, "high_us", json_real(row->interval.high));
    fp8r_output_set_text(output, object, "why", row->why);
}

int fp8r_bench_print_json(const struct bench *bench, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "bench");
    fp8r_output_set(&output, output.root, "cold",
                    json_boolean(fp8r_rotation_is_cold(&bench->rotation, FP8R_BENCH_CACHE_FACTOR)));
    json_t *problems = fp8r_output_add_array(&output, output.root, "problems");
    for (size_t i = 0; i < bench->problem_count; i++) {
        json_t *object = fp8r_output_append_object(&output, problems);
        fp8r_output_set_text(&output, object, "problem", bench->problems[i]);
        fp8r_output_set(&output, object, "operations", json_real(operations_of(bench->problems[i])));
        json_t *rows = fp8r_output_add_array(&output, object, "backends");
        for (int j = 0; j < bench->entrants.entrant_count; j++)
            set_row(&output, fp8r_output_append_object(&output, rows), bench, i, j);
    }
    return fp8r_output_print(&output, error);
}
