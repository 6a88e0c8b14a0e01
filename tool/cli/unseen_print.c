/* Printing regret on unseen problems. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/gate_print.h"
#include "cli/text_table.h"
#include "tune/entrants.h"

enum { MARKDOWN_ROWS = 10 };

/* The worst first. */
static int compare_problems(const void *a, const void *b)
{
    const struct unseen_problem *one = a, *other = b;
    if (one->regret.value != other->regret.value) return one->regret.value > other->regret.value ? -1 : 1;
    return strcmp(one->text, other->text);
}

static void sort_problems(struct unseen *unseen)
{
    if (unseen->count > 0) qsort(unseen->problems, unseen->count, sizeof *unseen->problems, compare_problems);
}

/* The backends that could race, with how many configurations each. */
static void list_candidates(const struct unseen *unseen, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < fp8r_context_backend_count(unseen->context) && used < size; i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        size_t configs = 0;
        if (fp8r_context_backend(unseen->context, i, &info) != FP8R_OK || !info.fits) continue;
        while (info.configs[configs])
            configs++;
        used += (size_t)snprintf(text + used, size - used, "%s%s (%zu)", used > 0 ? ", " : "", info.name,
                                 configs);
    }
}

void fp8r_unseen_line(const struct unseen *unseen, char text[FP8R_UNSEEN_LINE_BYTES])
{
    char distribution[FP8R_RANDOM_PROBLEMS_BYTES], candidates[256] = "";
    fp8r_random_problems_describe(&unseen->draws, distribution);
    list_candidates(unseen, candidates, sizeof candidates);
    snprintf(text, FP8R_UNSEEN_LINE_BYTES,
             "Seed %llu; %s (by the memory that is free and by the time that a problem has), %lld drawn "
             "again. Candidates "
             "and how many configurations they have: %s.",
             (unsigned long long)unseen->seed, distribution, (long long)unseen->draws.again, candidates);
}

static void print_summary(const struct unseen *unseen, const char *strong, FILE *stream)
{
    const struct regret_summary *summary = &unseen->summary;
    fprintf(stream,
            "%d unseen problems: mean regret %s%.2f %%%s, worst %s%.2f %%%s (at least %.2f %%, 95 %% sure), %d "
            "above %.3g %%",
            summary->counted, strong, 100 * summary->mean, strong, strong, 100 * summary->worst, strong,
            100 * summary->worst_low, summary->above, 100 * unseen->margin);
    if (unseen->left > 0) fprintf(stream, "; %lld left by the budget", (long long)unseen->left);
    fprintf(stream, "\n");
}

int fp8r_unseen_print_text(const struct fp8r_gate_setting *setting, struct unseen *unseen,
                           struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"problem", "routed",    "by",     ">time us", "best",
                                           ">regret", ">interval", ">pairs", ">raced"};
    struct fp8r_text_table table;
    char line[FP8R_UNSEEN_LINE_BYTES];
    sort_problems(unseen);
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < unseen->count; i++) {
        const struct unseen_problem *problem = &unseen->problems[i];
        const struct regret *regret = &problem->regret;
        enum fp8r_style style = regret->low > unseen->margin ? FP8R_STYLE_BAD : FP8R_STYLE_NONE;
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", problem->text);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", problem->routed);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", problem->source);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%.1f", problem->routed_us);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", problem->best);
        fp8r_text_table_add(&table, style, "%.2f %%", 100 * regret->value);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%.1f..%.1f %%", 100 * regret->low, 100 * regret->high);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%d", regret->pairs);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%d", problem->raced);
    }
    int code = fp8r_text_table_print(&table, stdout, error);
    if (code != FP8R_EXIT_GOOD) return code;
    fp8r_unseen_line(unseen, line);
    printf("\nroutes: %s\n%s\n", setting->path, line);
    print_summary(unseen, "", stdout);
    return FP8R_EXIT_GOOD;
}

static void set_problem(struct fp8r_output *output, json_t *object, const struct unseen_problem *problem)
{
    fp8r_output_set_text(output, object, "problem", problem->text);
    fp8r_output_set_text(output, object, "routed", problem->routed);
    fp8r_output_set_text(output, object, "source", problem->source);
    fp8r_output_set(output, object, "routed_us", json_real(problem->routed_us));
    fp8r_output_set_text(output, object, "best", problem->best);
    fp8r_output_set(output, object, "regret", json_real(problem->regret.value));
    fp8r_output_set(output, object, "low", json_real(problem->regret.low));
    fp8r_output_set(output, object, "high", json_real(problem->regret.high));
    fp8r_output_set(output, object, "pairs", json_integer(problem->regret.pairs));
    fp8r_output_set(output, object, "raced", json_integer(problem->raced));
}

int fp8r_unseen_print_json(const struct fp8r_gate_setting *setting, struct unseen *unseen,
                           struct fp8r_tool_error *error)
{
    const struct regret_summary *summary = &unseen->summary;
    struct fp8r_output output;
    char line[FP8R_UNSEEN_LINE_BYTES];
    sort_problems(unseen);
    fp8r_unseen_line(unseen, line);
    fp8r_gate_output_init(&output, setting);
    json_t *object = fp8r_output_add_object(&output, output.root, "unseen");
    fp8r_output_set(&output, object, "wanted", json_integer(unseen->wanted));
    fp8r_output_set(&output, object, "counted", json_integer(summary->counted));
    fp8r_output_set(&output, object, "left", json_integer(unseen->left));
    fp8r_output_set(&output, object, "drawn_again", json_integer(unseen->draws.again));
    fp8r_output_set(&output, object, "mean_regret", json_real(summary->mean));
    fp8r_output_set(&output, object, "worst_regret", json_real(summary->worst));
    fp8r_output_set(&output, object, "worst_low", json_real(summary->worst_low));
    fp8r_output_set(&output, object, "above_margin", json_integer(summary->above));
    fp8r_output_set_text(&output, object, "text", line);
    json_t *problems = fp8r_output_add_array(&output, object, "problems");
    for (size_t i = 0; i < unseen->count; i++)
        set_problem(&output, fp8r_output_append_object(&output, problems), &unseen->problems[i]);
    return fp8r_output_print(&output, error);
}

void fp8r_unseen_print_markdown(const struct fp8r_gate_setting *setting, struct unseen *unseen, FILE *stream)
{
    char line[FP8R_UNSEEN_LINE_BYTES];
    sort_problems(unseen);
    fp8r_unseen_line(unseen, line);
    fprintf(stream, "### fp8route gate: %s on unseen problems\n\n`%s` on `%s`. ",
            unseen_exit(unseen) == FP8R_EXIT_GOOD     ? "the routes hold"
            : unseen_exit(unseen) == FP8R_EXIT_FAILED ? "the routes lose too much"
                                                      : "nothing was measured",
            setting->path, setting->machine);
    print_summary(unseen, "**", stream);
    fprintf(stream,
            "\n%s\n\n| problem | routed | by | best | regret | interval |\n|---|---|---|---|--:|--:|\n",
            line);
    for (size_t i = 0; i < unseen->count && i < MARKDOWN_ROWS; i++) {
        const struct unseen_problem *problem = &unseen->problems[i];
        fprintf(stream, "| `%s` | `%s` | %s | `%s` | %.2f %% | %.1f..%.1f %% |\n", problem->text,
                problem->routed, problem->source, problem->best, 100 * problem->regret.value,
                100 * problem->regret.low, 100 * problem->regret.high);
    }
}
