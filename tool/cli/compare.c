/* fp8route compare: can one backend replace another?
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/share.h"
#include "cli/text_table.h"
#include "measure/clock.h"
#include "tool_status.h"
#include "tune/case_list.h"
#include "tune/compare.h"
#include "tune/interrupt.h"

struct compare_arguments {
    struct fp8r_common common;
    bool bits_only, time_only;
    const char *cases, *margin;
    int64_t seed;
};

struct work {
    const struct compare_arguments *arguments;
    struct fp8r_session session;
    struct fp8r_measure_device device;
    struct compare compare;
    struct fp8r_case_list list; /* of --cases */
    struct compare_case *items; /* owned */
    size_t count;
    struct fp8r_progress_line line;
    double margin;
};

/* ---- Cases ---- */

static size_t wanted_count(const struct work *work)
{
    return work->arguments->cases ? work->list.count : work->arguments->common.words.count - 2;
}

static const char *wanted_text(const struct work *work, size_t index)
{
    return work->arguments->cases ? work->list.lines[index] : work->arguments->common.words.items[index + 2];
}

static int read_product(const struct work *work, size_t index, fp8r_matmul *matmul,
                        struct fp8r_tool_error *error)
{
    struct fp8r_tool_error inner = {0};
    const char *text = wanted_text(work, index);
    int code = fp8r_problem_read(text, matmul, &inner);
    if (code == FP8R_EXIT_GOOD &&
        (matmul->a.batch == 0 || matmul->a.rows == 0 || matmul->b.cols == 0 || matmul->b.rows == 0))
        code = fp8r_tool_error_set(&inner, FP8R_EXIT_USAGE,
                                   "%.60s multiplies nothing: sizes must be at least 1", text);
    if (code == FP8R_EXIT_GOOD) return code;
    if (work->arguments->cases)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s, line %d: %s", work->arguments->cases,
                                   work->list.numbers[index], inner.text);
    return fp8r_tool_error_set(error, code, "%s", inner.text);
}

static int read_cases(struct work *work, struct fp8r_tool_error *error)
{
    const struct compare_arguments *arguments = work->arguments;
    fp8r_matmul matmul;
    bool has_words = arguments->common.words.count > 2;
    if (arguments->bits_only && arguments->time_only)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--bits-only and --time-only leave nothing to compare");
    if (has_words == (arguments->cases != NULL))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "either problems behind the two backends or --cases FILE");
    int code = fp8r_share_parse("margin", arguments->margin, 1e-6, &work->margin, error);
    if (code == FP8R_EXIT_GOOD && arguments->cases)
        code = fp8r_case_list_read(arguments->cases, &work->list, error);
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < wanted_count(work); i++)
        code = read_product(work, i, &matmul, error);
    return code;
}

/* ---- Measuring ---- */

static void show(struct work *work, size_t wanted, int64_t start_ns)
{
    double spent = (double)(fp8r_clock_ns() - start_ns) / 1e9, done = (double)work->count;
    fp8r_progress_show(&work->line, wanted_text(work, work->count), done / (double)wanted,
                       done > 0 ? spent / done * ((double)wanted - done) : 0);
}

static int compare_all(struct work *work, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    size_t wanted = wanted_count(work);
    int64_t start_ns = fp8r_clock_ns();
    work->items = calloc(wanted + 1, sizeof *work->items);
    if (!work->items) return fp8r_tool_error_memory(error, "the cases");
    for (; work->count < wanted && code == FP8R_EXIT_GOOD; work->count += code == FP8R_EXIT_GOOD) {
        fp8r_matmul matmul;
        code = read_product(work, work->count, &matmul, error);
        if (wanted > 1) show(work, wanted, start_ns);
        if (code == FP8R_EXIT_GOOD)
            code = compare_run(&work->compare, &matmul, &work->items[work->count], error);
    }
    fp8r_progress_end();
    return code == FP8R_EXIT_INTERRUPTED
               ? fp8r_tool_error_set(error, code, "interrupted: the same command starts again")
               : code;
}

/* ---- Saying ---- */

static void describe_bits(const struct compare_case *it, char *text, size_t size)
{
    const struct bits_difference *bits = &it->bits;
    char ulp[48] = "not comparable";
    if (it->inputs == 0) {
        snprintf(text, size, "-");
    } else if (bits->different == 0) {
        snprintf(text, size, "equal, %lld elements", (long long)bits->compared);
    } else {
        if (bits->first_ulp != BITS_NO_ULP) snprintf(ulp, sizeof ulp, "%lld ulp", (long long)bits->first_ulp);
        snprintf(text, size, "%lld of %lld differ, first out[%lld,%lld,%lld]: %.9g and %.9g, %s",
                 (long long)bits->different, (long long)bits->compared, (long long)bits->first.batch,
                 (long long)bits->first.row, (long long)bits->first.col, bits->a, bits->b, ulp);
    }
}

static void add_time(struct fp8r_text_table *table, const struct compare_case *it, double margin)
{
    enum compare_pace pace = compare_pace_of(it, margin);
    enum fp8r_style style = pace == COMPARE_SLOWER                                    ? FP8R_STYLE_BAD
                            : pace == COMPARE_INCONCLUSIVE || pace == COMPARE_UNTIMED ? FP8R_STYLE_NONE
                                                                                      : FP8R_STYLE_GOOD;
    if (pace == COMPARE_UNTIMED) {
        for (int i = 0; i < 5; i++)
            fp8r_text_table_add(table, FP8R_STYLE_DIM, "-");
        return;
    }
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%.1f", it->a_us);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%.1f", it->b_us);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%.3f", it->time.ratio);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%.3f..%.3f (%d)", it->time.low, it->time.high,
                        it->time.pairs);
    fp8r_text_table_add(table, style, "%s", compare_pace_name(pace));
}

static int print_text(const struct work *work, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {
        "problem", "A", "B", "bits", ">A us", ">B us", ">B / A", ">interval (pairs)", "B is"};
    struct fp8r_text_table table;
    char bits[256];
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < work->count; i++) {
        const struct compare_case *it = &work->items[i];
        describe_bits(it, bits, sizeof bits);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", it->problem);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", it->a);
        fp8r_text_table_add(&table, FP8R_STYLE_NONE, "%s", it->b);
        fp8r_text_table_add(&table, it->bits.different > 0 ? FP8R_STYLE_BAD : FP8R_STYLE_NONE, "%s", bits);
        add_time(&table, it, work->compare.margin);
    }
    int code = fp8r_text_table_print(&table, stdout, error);
    for (size_t i = 0; i < work->count && code == FP8R_EXIT_GOOD; i++)
        if (*work->items[i].refusal)
            printf("%s: not compared: %s\n", work->items[i].problem, work->items[i].refusal);
    return code;
}

static void set_bits(struct fp8r_output *output, json_t *object, const struct compare_case *it)
{
    const struct bits_difference *bits = &it->bits;
    fp8r_output_set(output, object, "equal", json_boolean(bits->different == 0));
    fp8r_output_set(output, object, "inputs", json_integer(it->inputs));
    fp8r_output_set(output, object, "elements", json_integer(bits->compared));
    fp8r_output_set(output, object, "different", json_integer(bits->different));
    if (bits->different == 0) return;
    json_t *first = fp8r_output_add_array(output, object, "first_element");
    fp8r_output_append(output, first, json_integer(bits->first.batch));
    fp8r_output_append(output, first, json_integer(bits->first.row));
    fp8r_output_append(output, first, json_integer(bits->first.col));
    fp8r_output_set(output, object, "a", bits->a - bits->a == 0 ? json_real(bits->a) : json_null());
    fp8r_output_set(output, object, "b", bits->b - bits->b == 0 ? json_real(bits->b) : json_null());
    fp8r_output_set(output, object, "first_ulp",
                    bits->first_ulp == BITS_NO_ULP ? json_null() : json_integer(bits->first_ulp));
    fp8r_output_set(output, object, "most_ulp",
                    bits->most_ulp == BITS_NO_ULP ? json_null() : json_integer(bits->most_ulp));
}

static void set_time(struct fp8r_output *output, json_t *object, const struct compare_case *it, double margin)
{
    fp8r_output_set(output, object, "a_us", json_real(it->a_us));
    fp8r_output_set(output, object, "b_us", json_real(it->b_us));
    fp8r_output_set(output, object, "ratio", json_real(it->time.ratio));
    fp8r_output_set(output, object, "low", json_real(it->time.low));
    fp8r_output_set(output, object, "high", json_real(it->time.high));
    fp8r_output_set(output, object, "pairs", json_integer(it->time.pairs));
    fp8r_output_set_text(output, object, "verdict", compare_pace_name(compare_pace_of(it, margin)));
}

static int print_json(const struct work *work, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "compare");
    fp8r_output_set(&output, output.root, "seed", json_integer((json_int_t)work->compare.seed));
    fp8r_output_set(&output, output.root, "margin", json_real(work->compare.margin));
    json_t *list = fp8r_output_add_array(&output, output.root, "cases");
    for (size_t i = 0; i < work->count; i++) {
        const struct compare_case *it = &work->items[i];
        json_t *object = fp8r_output_append_object(&output, list);
        fp8r_output_set_text(&output, object, "problem", it->problem);
        fp8r_output_set_text(&output, object, "a", it->a);
        fp8r_output_set_text(&output, object, "b", it->b);
        fp8r_output_set_text(&output, object, "refusal", *it->refusal ? it->refusal : NULL);
        if (it->inputs > 0) set_bits(&output, fp8r_output_add_object(&output, object, "bits"), it);
        if (it->time.pairs > 0)
            set_time(&output, fp8r_output_add_object(&output, object, "time"), it, work->compare.margin);
    }
    return fp8r_output_print(&output, error);
}

static int say(const struct work *work, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    size_t open = 0, refused = 0;
    for (size_t i = 0; i < work->count; i++) {
        int own = compare_case_exit(&work->items[i], work->compare.margin);
        code = fp8r_exit_worse(code, own);
        open += own == FP8R_EXIT_INCONCLUSIVE;
        refused += own == FP8R_EXIT_UNMEASURED;
    }
    if (code == FP8R_EXIT_INCONCLUSIVE)
        return fp8r_tool_error_set(error, code, "inconclusive: the noise leaves %zu of %zu cases open", open,
                                   work->count);
    if (code == FP8R_EXIT_UNMEASURED)
        return fp8r_tool_error_set(error, code, "%zu of %zu cases cannot be run by both", refused,
                                   work->count);
    return code;
}

static int compare_in(struct work *work, struct fp8r_tool_error *error)
{
    const struct compare_arguments *arguments = work->arguments;
    int code = read_cases(work, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_session_open(&arguments->common, FP8R_NO_ROUTE_FILES, &work->session, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_session_measure(&work->session, &work->device, error);
    if (code != FP8R_EXIT_GOOD) return code;
    work->compare = (struct compare){.context = work->session.context,
                                     .device = &work->device,
                                     .a = arguments->common.words.items[0],
                                     .b = arguments->common.words.items[1],
                                     .seed = (uint64_t)arguments->seed,
                                     .margin = work->margin,
                                     .wants_bits = !arguments->time_only,
                                     .wants_time = !arguments->bits_only};
    code = compare_all(work, error);
    if (code == FP8R_EXIT_GOOD)
        code = arguments->common.json ? print_json(work, error) : print_text(work, error);
    compare_fini(&work->compare);
    return code == FP8R_EXIT_GOOD ? say(work, error) : code;
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    struct work work = {.arguments = words, .margin = 0.02};
    fp8r_interrupt_watch();
    int code = compare_in(&work, error);
    free(work.items);
    fp8r_case_list_fini(&work.list);
    fp8r_session_close(&work.session);
    return code;
}

static const struct fp8r_option options[] = {
    {"cases", "FILE", "compare on the problems of a case list, one a line", FP8R_OPTION_TEXT,
     offsetof(struct compare_arguments, cases), 0},
    {"bits-only", NULL, "compare results, not times", FP8R_OPTION_FLAG,
     offsetof(struct compare_arguments, bits_only), 0},
    {"time-only", NULL, "compare times, not results", FP8R_OPTION_FLAG,
     offsetof(struct compare_arguments, time_only), 0},
    {"margin", "SHARE", "a loss of less does not count; 2% unless given", FP8R_OPTION_TEXT,
     offsetof(struct compare_arguments, margin), 0},
    {"seed", "N", "of the random operands and orders; 0 unless given", FP8R_OPTION_COUNT,
     offsetof(struct compare_arguments, seed), 0}};

const struct fp8r_verb fp8r_verb_compare = {
    .name = "compare",
    .summary = "can one backend replace another: equal bits, and no slower?",
    .words = "A B [PROBLEM...]",
    .description = "A and B are backends, NAME or NAME:CONFIG. Both run each problem on three sets of random "
                   "operands and on one with NaN "
                   "codes in it; every element of the results is compared by its bits, NaN being equal to "
                   "NaN whatever its payload. Then "
                   "they are timed in 30 to 120 pairs on operands that rotate out of the caches: B is slower "
                   "where the whole interval of "
                   "the median ratio lies beyond the margin.\n\n"
                   "Exit code 0: equal bits and not slower; 1: a result differs, or B is slower; 3: the "
                   "noise is wider than the question; "
                   "4: one of them cannot run a problem.",
    .examples = "fp8route compare cpu blas 64x4096x4096 --time-only\n"
                "fp8route compare cpu:avx512_skinny cpu:avx512_packed --cases shapes.txt --bits-only",
    .words_min = 2,
    .words_max = SIZE_MAX,
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct compare_arguments),
    .run = run,
};
