/* fp8route bench: the times of every backend and configuration on given problems.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/progress.h"
#include "measure/clock.h"
#include "tool_status.h"
#include "tune/case_list.h"
#include "tune/entrants.h"
#include "tune/interrupt.h"
#include "tune/race.h"

enum { ROUNDS_MIN = 7, ROUNDS_MAX = 101 };
static const double cache_factor = FP8R_BENCH_CACHE_FACTOR, behind_factor = 10, coverage = 0.95,
                    default_seconds = 2;

static int collect(struct bench *bench, struct fp8r_tool_error *error)
{
    const struct fp8r_words *words = &bench->arguments->common.words;
    int code = bench->arguments->cases ? fp8r_case_list_read(bench->arguments->cases, &bench->list, error)
                                       : FP8R_EXIT_GOOD;
    if (code != FP8R_EXIT_GOOD) return code;
    if (words->count + bench->list.count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "nothing to measure: name problems, or --cases FILE");
    bench->problems = calloc(words->count + bench->list.count, sizeof *bench->problems);
    if (!bench->problems) return fp8r_tool_error_memory(error, "the problems");
    for (size_t i = 0; i < words->count; i++)
        bench->problems[bench->problem_count++] = words->items[i];
    for (size_t i = 0; i < bench->list.count; i++)
        bench->problems[bench->problem_count++] = bench->list.lines[i];
    for (size_t i = 0; i < bench->problem_count && code == FP8R_EXIT_GOOD; i++) {
        fp8r_matmul matmul;
        code = fp8r_problem_read(bench->problems[i], &matmul, error);
        if (code == FP8R_EXIT_GOOD &&
            (matmul.out.batch == 0 || matmul.out.rows == 0 || matmul.out.cols == 0 || matmul.a.cols == 0))
            code =
                fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                    "%.60s multiplies nothing: sizes must be at least 1", bench->problems[i]);
    }
    return code;
}

static int open_all(struct bench *bench, struct fp8r_tool_error *error)
{
    int code = fp8r_session_open(&bench->arguments->common, 0, &bench->session, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_entrants_list(bench->session.context, &bench->entrants.entrants,
                                  &bench->entrants.entrant_count, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_session_measure(&bench->session, &bench->device, error);
    if (code != FP8R_EXIT_GOOD) return code;
    bench->rows = calloc(bench->problem_count * (size_t)bench->entrants.entrant_count, sizeof *bench->rows);
    bench->chosen = calloc(bench->problem_count, sizeof *bench->chosen);
    return bench->rows && bench->chosen ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the times");
}

static int find_chosen(struct bench *bench, const fp8r_matmul *matmul, int *chosen,
                       struct fp8r_tool_error *error)
{
    fp8r_explanation *explanation = NULL;
    int code = fp8r_tool_status(error, fp8r_explain(bench->session.context, matmul, &explanation));
    *chosen = -1;
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *candidate = fp8r_explanation_candidate(explanation, i);
        for (int j = 0; candidate->verdict == FP8R_VERDICT_CHOSEN && j < bench->entrants.entrant_count; j++)
            if (strcmp(bench->entrants.entrants[j].backend, candidate->backend) == 0 &&
                strcmp(bench->entrants.entrants[j].config, candidate->config) == 0)
                *chosen = j;
    }
    fp8r_explanation_destroy(explanation);
    return code;
}

static void keep_times(const struct fp8r_contest *contest, struct bench_row *rows)
{
    double times[ROUNDS_MAX];
    for (int i = 0; i < contest->count; i++) {
        size_t count = fp8r_sampler_times(&contest->sampler, i, times, ROUNDS_MAX);
        rows[i].standing = contest->racers[i].standing;
        rows[i].samples = (int)count;
        snprintf(rows[i].why, sizeof rows[i].why, "%s", contest->racers[i].why);
        if (count == 0) continue;
        fp8r_sort(times, count);
        rows[i].median_us = fp8r_median(times, count);
        rows[i].interval = fp8r_median_interval(times, count, coverage);
    }
}

static int race(struct bench *bench, const fp8r_matmul *shape, struct fp8r_inputs *inputs, int keep,
                struct bench_row *rows, struct fp8r_tool_error *error)
{
    struct fp8r_contest contest;
    double seconds = bench->arguments->seconds > 0 ? bench->arguments->seconds : default_seconds;
    struct fp8r_race race = {.verify = fp8r_verify_options_of(fp8r_context_device(bench->session.context)),
                             .rounds_min = ROUNDS_MIN,
                             .rounds_max = ROUNDS_MAX,
                             .behind_factor = behind_factor,
                             .keep = keep,
                             .enough_us = seconds * 1e6 / ROUNDS_MIN};
    int code = fp8r_contest_open(&contest, bench->session.context, &bench->entrants, NULL, shape, &bench->device,
                                 &bench->rotation, inputs, (uint64_t)bench->arguments->seed, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_race_enter(&race, &contest, error);
    race.until_ns = fp8r_clock_ns() + (int64_t)(seconds * 1e9);
    if (code == FP8R_EXIT_GOOD) code = fp8r_race_run(&race, &contest, error);
    keep_times(&contest, rows);
    fp8r_contest_close(&contest);
    return code;
}

static int measure(struct bench *bench, size_t index, struct fp8r_tool_error *error)
{
    fp8r_matmul shape;
    struct fp8r_inputs inputs;
    struct bench_row *rows = bench->rows + index * (size_t)bench->entrants.entrant_count;
    int code = fp8r_problem_read(bench->problems[index], &shape, error);
    if (code == FP8R_EXIT_GOOD) code = find_chosen(bench, &shape, &bench->chosen[index], error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_inputs_create(&shape, (uint64_t)bench->arguments->seed, FP8R_GUARD_BYTES, &inputs, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_rotation_load(&bench->rotation, &bench->device, &inputs, cache_factor, error);
    if (code == FP8R_EXIT_GOOD) code = race(bench, &shape, &inputs, bench->chosen[index], rows, error);
    fp8r_inputs_destroy(&inputs);
    return code;
}

static int measure_all(struct bench *bench, struct fp8r_tool_error *error)
{
    int64_t start_ns = fp8r_clock_ns();
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < bench->problem_count && code == FP8R_EXIT_GOOD; i++) {
        double share = (double)i / (double)bench->problem_count;
        double spent = (double)(fp8r_clock_ns() - start_ns) / 1e9;
        fp8r_progress_show(&bench->line, bench->problems[i], share, share > 0 ? spent / share - spent : 0);
        code = measure(bench, i, error);
    }
    fp8r_progress_end();
    return code == FP8R_EXIT_INTERRUPTED ? fp8r_tool_error_set(error, code, "interrupted") : code;
}

/* Wrong values are worse than nothing measured. */
static int judge(const struct bench *bench, struct fp8r_tool_error *error)
{
    size_t measured = 0, count = bench->problem_count * (size_t)bench->entrants.entrant_count;
    for (size_t i = 0; i < count; i++) {
        if (bench->rows[i].standing == FP8R_STANDING_WRONG) return FP8R_EXIT_FAILED;
        measured += bench->rows[i].samples > 0;
    }
    if (measured > 0) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                               "nothing was measured: no backend can run these problems");
}

static int bench_all(struct bench *bench, struct fp8r_tool_error *error)
{
    int code = collect(bench, error);
    if (code == FP8R_EXIT_GOOD) code = open_all(bench, error);
    if (code == FP8R_EXIT_GOOD) code = measure_all(bench, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = bench->arguments->common.json ? fp8r_bench_print_json(bench, error)
                                         : fp8r_bench_print_text(bench, error);
    return fp8r_exit_worse(code, judge(bench, error));
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    struct bench bench = {.arguments = words};
    fp8r_interrupt_watch();
    int code = bench_all(&bench, error);
    fp8r_rotation_fini(&bench.rotation);
    fp8r_case_list_fini(&bench.list);
    fp8r_points_fini(&bench.entrants);
    free(bench.problems);
    free(bench.rows);
    free(bench.chosen);
    fp8r_session_close(&bench.session);
    return code;
}

static const struct fp8r_option options[] = {
    {"cases", "FILE", "a case list: problems, one a line", FP8R_OPTION_TEXT,
     offsetof(struct bench_arguments, cases), 0},
    {"seconds", "S", "rounds a problem, after warming; 2 unless given", FP8R_OPTION_NUMBER,
     offsetof(struct bench_arguments, seconds), 0},
    {"seed", "N", "of the random operands and orders; 0 unless given", FP8R_OPTION_COUNT,
     offsetof(struct bench_arguments, seed), 0}};

const struct fp8r_verb fp8r_verb_bench = {
    .name = "bench",
    .summary = "time every backend and configuration on problems",
    .words = "[PROBLEM]...",
    .description = "Verifies, then times every configuration that can run each problem, in interleaved "
                   "rounds of random order on "
                   "operands that rotate out of the caches; what is ten times behind stops early. Shows "
                   "medians with their intervals "
                   "and marks what the routes choose. Nothing is written: tune does that.",
    .examples = "fp8route bench 1x4096x14336 64x4096x4096\nfp8route bench --cases shapes/layouts.txt "
                "--seconds 0.1 --json",
    .words_max = SIZE_MAX,
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct bench_arguments),
    .run = run,
};
