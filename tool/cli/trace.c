/* fp8route trace: what FP8ROUTE_TRACE has written, summed up.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text_table.h"
#include "cli/verb.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/segment_text.h"
#include "tune/trace_read.h"

struct trace_arguments {
    struct fp8r_common common;
    const char *by;
    int64_t top;
};

enum { TOP = 20, BUCKETS = 63, BAR_COLUMNS = 40 };

/* What is printed, made from the problems. */
struct family {
    struct fp8r_key key;
    size_t problems;
    int64_t calls, m_first, m_last;
    double weight;
};

struct summary {
    const struct fp8r_traced *traced;
    bool by_calls;
    const struct fp8r_trace_problem **problems; /* sorted */
    struct family *families;                    /* sorted */
    size_t family_count;
    int64_t calls[BUCKETS]; /* by floor(log2 m) */
    double weights[BUCKETS];
};

/* ---- Summing up ---- */

static int descending(double a, double b)
{
    return (a < b) - (a > b);
}

static int compare_by_weight(const void *a, const void *b)
{
    const struct fp8r_trace_problem *x = *(const struct fp8r_trace_problem *const *)a;
    const struct fp8r_trace_problem *y = *(const struct fp8r_trace_problem *const *)b;
    int by_weight = descending(fp8r_trace_weight(x), fp8r_trace_weight(y));
    return by_weight != 0 ? by_weight : strcmp(x->text, y->text);
}

static int compare_by_calls(const void *a, const void *b)
{
    const struct fp8r_trace_problem *x = *(const struct fp8r_trace_problem *const *)a;
    const struct fp8r_trace_problem *y = *(const struct fp8r_trace_problem *const *)b;
    return x->calls != y->calls ? (x->calls > y->calls ? -1 : 1) : compare_by_weight(a, b);
}

static int compare_by_key(const void *a, const void *b)
{
    const struct fp8r_trace_problem *x = *(const struct fp8r_trace_problem *const *)a;
    const struct fp8r_trace_problem *y = *(const struct fp8r_trace_problem *const *)b;
    return fp8r_key_compare(&x->key, &y->key);
}

static int compare_families(const void *a, const void *b)
{
    const struct family *x = a, *y = b;
    int by_weight = descending(x->weight, y->weight);
    return by_weight != 0 ? by_weight : fp8r_key_compare(&x->key, &y->key);
}

/* problems: by key. */
static void sum_families(struct summary *summary)
{
    struct family *family = NULL;
    for (size_t i = 0; i < summary->traced->count; i++) {
        const struct fp8r_trace_problem *problem = summary->problems[i];
        if (!family || !fp8r_key_equal(&family->key, &problem->key)) {
            family = &summary->families[summary->family_count++];
            *family = (struct family){.key = problem->key, .m_first = problem->m, .m_last = problem->m};
        }
        family->problems++;
        fp8r_trace_add(&family->calls, problem->calls);
        family->weight += fp8r_trace_weight(problem);
        family->m_first = problem->m < family->m_first ? problem->m : family->m_first;
        family->m_last = problem->m > family->m_last ? problem->m : family->m_last;
    }
}

static void sum_buckets(struct summary *summary)
{
    for (size_t i = 0; i < summary->traced->count; i++) {
        const struct fp8r_trace_problem *problem = &summary->traced->problems[i];
        int bucket = 0;
        while (bucket + 1 < BUCKETS && problem->m >> (bucket + 1) > 0)
            bucket++;
        fp8r_trace_add(&summary->calls[bucket], problem->calls);
        summary->weights[bucket] += fp8r_trace_weight(problem);
    }
}

static void summary_fini(struct summary *summary)
{
    free(summary->problems);
    free(summary->families);
}

static int summary_init(const struct fp8r_traced *traced, bool by_calls, struct summary *summary,
                        struct fp8r_tool_error *error)
{
    *summary = (struct summary){.traced = traced, .by_calls = by_calls};
    summary->problems = calloc(traced->count + 1, sizeof *summary->problems);
    summary->families = calloc(traced->count + 1, sizeof *summary->families);
    if (!summary->problems || !summary->families) {
        summary_fini(summary);
        return fp8r_tool_error_memory(error, "the summary of a trace");
    }
    for (size_t i = 0; i < traced->count; i++)
        summary->problems[i] = &traced->problems[i];
    qsort(summary->problems, traced->count, sizeof *summary->problems, compare_by_key);
    sum_families(summary);
    sum_buckets(summary);
    qsort(summary->families, summary->family_count, sizeof *summary->families, compare_families);
    qsort(summary->problems, traced->count, sizeof *summary->problems, by_calls ? compare_by_calls : compare_by_weight);
    return FP8R_EXIT_GOOD;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double call_share(const struct summary *summary, int64_t calls)
{
    return share((double)calls, (double)summary->traced->calls);
}

static double weight_share(const struct summary *summary, double weight)
{
    return share(weight, summary->traced->cost);
}

/* ---- JSON ---- */

static void set_problems(struct fp8r_output *output, const struct summary *summary)
{
    json_t *list = fp8r_output_add_array(output, output->root, "problems");
    for (size_t i = 0; i < summary->traced->count; i++) {
        const struct fp8r_trace_problem *it = summary->problems[i];
        json_t *object = fp8r_output_append_object(output, list);
        fp8r_output_set_text(output, object, "problem", it->text);
        fp8r_output_set(output, object, "calls", json_integer(it->calls));
        fp8r_output_set(output, object, "captured", json_integer(it->captured));
        fp8r_output_set(output, object, "call_share", json_real(call_share(summary, it->calls)));
        fp8r_output_set(output, object, "weight_share", json_real(weight_share(summary, fp8r_trace_weight(it))));
    }
}

static int set_families(struct fp8r_output *output, const struct summary *summary, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    json_t *list = fp8r_output_add_array(output, output->root, "families");
    for (size_t i = 0; i < summary->family_count && code == FP8R_EXIT_GOOD; i++) {
        const struct family *it = &summary->families[i];
        char text[FP8R_TEXT_BYTES] = "";
        json_t *object = fp8r_output_append_object(output, list);
        code = fp8r_tool_status(error, fp8r_family_format(&it->key, text, sizeof text));
        fp8r_output_set_text(output, object, "family", text);
        fp8r_output_set(output, object, "m_count", json_integer((json_int_t)it->problems));
        fp8r_output_set(output, object, "m_first", json_integer(it->m_first));
        fp8r_output_set(output, object, "m_last", json_integer(it->m_last));
        fp8r_output_set(output, object, "calls", json_integer(it->calls));
        fp8r_output_set(output, object, "weight_share", json_real(weight_share(summary, it->weight)));
    }
    return code;
}

static void set_buckets(struct fp8r_output *output, const struct summary *summary)
{
    json_t *list = fp8r_output_add_array(output, output->root, "m_histogram");
    for (int i = 0; i < BUCKETS; i++) {
        if (summary->calls[i] == 0)
            continue;
        json_t *object = fp8r_output_append_object(output, list);
        fp8r_output_set(output, object, "m_first", json_integer(i == 0 ? 0 : (json_int_t)1 << i));
        fp8r_output_set(output, object, "m_last", json_integer((json_int_t)(((uint64_t)2 << i) - 1)));
        fp8r_output_set(output, object, "calls", json_integer(summary->calls[i]));
        fp8r_output_set(output, object, "weight_share", json_real(weight_share(summary, summary->weights[i])));
    }
}

static int print_json(const struct summary *summary, struct fp8r_tool_error *error)
{
    const struct fp8r_traced *traced = summary->traced;
    struct fp8r_output output;
    fp8r_output_init(&output, "trace_summary");
    fp8r_output_set(&output, output.root, "line_count", json_integer((json_int_t)traced->lines));
    fp8r_output_set(&output, output.root, "torn_count", json_integer((json_int_t)traced->torn));
    fp8r_output_set(&output, output.root, "process_count", json_integer((json_int_t)traced->processes));
    fp8r_output_set(&output, output.root, "calls", json_integer(traced->calls));
    fp8r_output_set(&output, output.root, "captured", json_integer(traced->captured));
    fp8r_output_set(&output, output.root, "captured_share", json_real(call_share(summary, traced->captured)));
    set_problems(&output, summary);
    int code = set_families(&output, summary, error);
    set_buckets(&output, summary);
    int printed = fp8r_output_print(&output, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

/* ---- Text ---- */

static void add_share(struct fp8r_text_table *table, double value)
{
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%.1f %%", 100 * value);
}

static int print_problems(const struct summary *summary, size_t top, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"problem", ">calls", ">of calls", ">of weight", ">captured"};
    struct fp8r_text_table table;
    size_t shown = summary->traced->count < top ? summary->traced->count : top;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < shown; i++) {
        const struct fp8r_trace_problem *it = summary->problems[i];
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", it->text);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%" PRId64, it->calls);
        add_share(&table, call_share(summary, it->calls));
        add_share(&table, weight_share(summary, fp8r_trace_weight(it)));
        add_share(&table, share((double)it->captured, (double)it->calls));
    }
    int code = fp8r_text_table_print(&table, stdout, error);
    if (shown < summary->traced->count)
        printf("and %zu more (--top N)\n", summary->traced->count - shown);
    return code;
}

static int print_families(const struct summary *summary, size_t top, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"family", ">M", "from..to", ">calls", ">of calls", ">of weight"};
    struct fp8r_text_table table;
    int code = FP8R_EXIT_GOOD;
    size_t shown = summary->family_count < top ? summary->family_count : top;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < shown && code == FP8R_EXIT_GOOD; i++) {
        const struct family *it = &summary->families[i];
        char text[FP8R_TEXT_BYTES] = "", rows[FP8R_SEGMENT_TEXT_BYTES];
        code = fp8r_tool_status(error, fp8r_family_format(&it->key, text, sizeof text));
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", text);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%zu", it->problems);
        fp8r_rows_format(it->m_first, it->m_last, rows);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", rows);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%" PRId64, it->calls);
        add_share(&table, call_share(summary, it->calls));
        add_share(&table, weight_share(summary, it->weight));
    }
    int printed = fp8r_text_table_print(&table, stdout, error);
    if (shown < summary->family_count)
        printf("and %zu more (--top N)\n", summary->family_count - shown);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

static int print_buckets(const struct summary *summary, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"M", ">calls", ">of calls", ">of weight", "weight"};
    static const char bar[BAR_COLUMNS + 1] = "########################################";
    struct fp8r_text_table table;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (int i = 0; i < BUCKETS; i++) {
        double weight = weight_share(summary, summary->weights[i]);
        if (summary->calls[i] == 0)
            continue;
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%" PRId64 "..%" PRIu64, i == 0 ? 0 : (int64_t)1 << i,
                            ((uint64_t)2 << i) - 1);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%" PRId64, summary->calls[i]);
        add_share(&table, call_share(summary, summary->calls[i]));
        add_share(&table, weight);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%.*s", (int)(BAR_COLUMNS * weight + 0.5), bar);
    }
    return fp8r_text_table_print(&table, stdout, error);
}

static int print_text(const struct summary *summary, size_t top, struct fp8r_tool_error *error)
{
    const struct fp8r_traced *traced = summary->traced;
    printf("%" PRId64 " call%s of %zu problem%s in %zu famil%s by %zu process%s, %.1f %% of them captured into graphs\n",
           traced->calls, fp8r_s((size_t)traced->calls), traced->count, fp8r_s(traced->count), summary->family_count,
           fp8r_plural(summary->family_count, "y", "ies"), traced->processes, fp8r_plural(traced->processes, "", "es"),
           100 * call_share(summary, traced->captured));
    if (traced->torn > 0)
        printf("the last line of %zu file%s was cut off and is left out\n", traced->torn, fp8r_s(traced->torn));
    if (traced->count == 0)
        return FP8R_EXIT_GOOD;
    printf("\n");
    int code = print_problems(summary, top, error);
    printf("\n");
    if (code == FP8R_EXIT_GOOD)
        code = print_families(summary, top, error);
    printf("\n");
    return code == FP8R_EXIT_GOOD ? print_buckets(summary, error) : code;
}

/* ---- The verb ---- */

static int summarise(const struct trace_arguments *arguments, bool by_calls, struct fp8r_tool_error *error)
{
    const struct fp8r_words *words = &arguments->common.words;
    struct fp8r_traced traced = {0};
    struct summary summary;
    size_t top = arguments->top > 0 ? (size_t)arguments->top : TOP;
    int code = fp8r_trace_read(&traced, words->items + 1, words->count - 1, error);
    if (code == FP8R_EXIT_GOOD)
        code = summary_init(&traced, by_calls, &summary, error);
    if (code == FP8R_EXIT_GOOD) {
        code = arguments->common.json ? print_json(&summary, error) : print_text(&summary, top, error);
        summary_fini(&summary);
    }
    fp8r_traced_fini(&traced);
    return code;
}

static int run(const void *verb_arguments, struct fp8r_tool_error *error)
{
    const struct trace_arguments *arguments = verb_arguments;
    const char *action = arguments->common.words.items[0], *by = arguments->by ? arguments->by : "weight";
    if (strcmp(action, "summary") != 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "unknown action \"%.40s\": fp8route trace summary FILE...",
                                   action);
    if (strcmp(by, "weight") != 0 && strcmp(by, "calls") != 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--by is \"%.40s\": it must be weight or calls", by);
    return summarise(arguments, strcmp(by, "calls") == 0, error);
}

static const struct fp8r_option trace_options[] = {
    {"by", "weight|calls", "order of the problems; weight unless given", FP8R_OPTION_TEXT,
     offsetof(struct trace_arguments, by), 0},
    {"top", "N", "how many problems and families to print; 20 unless given", FP8R_OPTION_COUNT,
     offsetof(struct trace_arguments, top), 1}};

const struct fp8r_verb fp8r_verb_trace = {
    .name = "trace",
    .summary = "sum up which products a program asked for",
    .words = "summary FILE...",
    .description =
        "With FP8ROUTE_TRACE=FILE in its environment a program appends the products it asks for to a file, which several "
        "processes may share. summary says which they are: problems, families and sizes of M, each with its calls and its "
        "share of all of them, how many processes there were, and how much was captured into graphs (a captured product "
        "counts once, however often its graph is replayed).\n\n"
        "Weight is calls times a guess of how long one takes: what its operands and result have in bytes, or its "
        "operations at 256 a byte where that is more. It is for telling large from small, not a time.\n\n"
        "A process that ended without notice leaves counts that may be short by up to a half. A last line that was cut "
        "off is left out.",
    .examples = "FP8ROUTE_TRACE=trace.jsonl ./server\nfp8route trace summary trace.jsonl",
    .words_min = 2,
    .words_max = SIZE_MAX,
    .options = trace_options,
    .option_count = sizeof trace_options / sizeof *trace_options,
    .arguments_bytes = sizeof(struct trace_arguments),
    .run = run,
};
