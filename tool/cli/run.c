/* fp8route run: one product, verified and timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/checkpoint_b.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "measure/clock.h"
#include "measure/statistics.h"
#include "measure/trial.h"
#include "measure/verify.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/interrupt.h"

struct run_arguments {
    struct fp8r_common common;
    const char *backend, *weights;
    int64_t seed;
};

enum { RUNS_MAX = 21, RUNS_NS = 300000000 };

/* Everything about one run that is printed. */
struct outcome {
    char problem[256], label[160], source[32];
    fp8r_status status;
    const char *damage; /* NULL = none */
    struct fp8r_verdict verdict;
    double median_us;
    int runs;
};

/* A result that must not be there counts as damage too. */
static void look_for_damage(const struct fp8r_trial *trial, const struct fp8r_inputs *inputs,
                            struct outcome *outcome)
{
    const fp8r_matrix *out = &inputs->matmul.out;
    bool is_empty = out->batch == 0 || out->rows == 0 || out->cols == 0;
    outcome->damage = fp8r_inputs_damage(inputs);
    if (!outcome->damage && !fp8r_area_intact(&trial->workspace))
        outcome->damage = "memory around the workspace was written";
    if (!outcome->damage && is_empty && !fp8r_inputs_out_untouched(inputs))
        outcome->damage = "out was written, though it has no element";
}

/* After the first run has been verified; the operands are warm. */
static void time_runs(const struct fp8r_trial *trial, const fp8r_matmul *matmul, struct outcome *outcome)
{
    double times[RUNS_MAX];
    int64_t start = fp8r_clock_ns();
    for (outcome->runs = 0; outcome->runs < RUNS_MAX && outcome->status == FP8R_OK; outcome->runs++) {
        int64_t before = fp8r_clock_ns();
        if (outcome->runs > 0 && (before - start > RUNS_NS || fp8r_interrupted())) break;
        int64_t elapsed_ns = 0;
        outcome->status = fp8r_trial_time(trial, matmul, &elapsed_ns);
        times[outcome->runs] = (double)elapsed_ns / 1e3;
    }
    fp8r_sort(times, (size_t)outcome->runs);
    outcome->median_us = fp8r_median(times, (size_t)outcome->runs);
}

static int find_source(fp8r_context *context, const fp8r_matmul *matmul, const char *backend,
                       struct outcome *outcome, struct fp8r_tool_error *error)
{
    fp8r_explanation *explanation = NULL;
    if (backend) {
        snprintf(outcome->source, sizeof outcome->source, "explicit");
        return FP8R_EXIT_GOOD;
    }
    int code = fp8r_tool_status(error, fp8r_explain(context, matmul, &explanation));
    snprintf(outcome->source, sizeof outcome->source, "%s", fp8r_explanation_source(explanation));
    fp8r_explanation_destroy(explanation);
    return code;
}

static int measure(fp8r_context *context, const struct run_arguments *arguments, struct fp8r_inputs *inputs,
                   struct outcome *outcome, struct fp8r_tool_error *error)
{
    struct fp8r_trial trial;
    struct fp8r_verifier *verifier = NULL;
    const struct fp8r_verify_options options = fp8r_verify_options_of(fp8r_context_device(context));
    const fp8r_matmul *matmul = &inputs->matmul;
    int code = find_source(context, matmul, arguments->backend, outcome, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(
            error, fp8r_trial_create(context, matmul, arguments->backend, FP8R_GUARD_BYTES, &trial));
    if (code != FP8R_EXIT_GOOD) return code;
    const char *label = fp8r_plan_backend(trial.plan, matmul->a.rows);
    snprintf(outcome->label, sizeof outcome->label, "%s", label ? label : "none");
    outcome->status = fp8r_trial_run(&trial, matmul);
    code = fp8r_tool_status(error, outcome->status);
    if (code == FP8R_EXIT_GOOD) code = fp8r_verifier_create(matmul, &options, &verifier, error);
    if (code == FP8R_EXIT_GOOD) {
        look_for_damage(&trial, inputs, outcome);
        fp8r_verify(verifier, matmul->out.data, &outcome->verdict);
        if (!fp8r_interrupted()) time_runs(&trial, matmul, outcome);
        code = fp8r_tool_status(error, outcome->status);
        if (code == FP8R_EXIT_GOOD && fp8r_interrupted())
            code = fp8r_tool_error_set(error, FP8R_EXIT_INTERRUPTED, "interrupted: the same command starts again");
    }
    fp8r_verifier_destroy(verifier);
    fp8r_trial_destroy(&trial);
    return code;
}

static int print_json(const struct outcome *outcome, struct fp8r_tool_error *error)
{
    const struct fp8r_verdict *verdict = &outcome->verdict;
    struct fp8r_output output;
    fp8r_output_init(&output, "run");
    json_t *root = output.root;
    fp8r_output_set_text(&output, root, "problem", outcome->problem);
    fp8r_output_set_text(&output, root, "backend", outcome->label);
    fp8r_output_set_text(&output, root, "source", outcome->source);
    fp8r_output_set(&output, root, "median_us", json_real(outcome->median_us));
    fp8r_output_set(&output, root, "runs", json_integer(outcome->runs));
    fp8r_output_set(&output, root, "verified", json_boolean(verdict->is_good && !outcome->damage));
    fp8r_output_set(&output, root, "whole", json_boolean(verdict->is_whole));
    fp8r_output_set(&output, root, "checked_elements", json_integer(verdict->checked));
    fp8r_output_set(&output, root, "wrong_elements", json_integer(verdict->wrong));
    fp8r_output_set(&output, root, "worst_error", json_real(verdict->worst_error));
    fp8r_output_set(&output, root, "worst_bound", json_real(verdict->worst_bound));
    json_t *worst = fp8r_output_add_array(&output, root, "worst_element");
    fp8r_output_append(&output, worst, json_integer(verdict->worst.batch));
    fp8r_output_append(&output, worst, json_integer(verdict->worst.row));
    fp8r_output_append(&output, worst, json_integer(verdict->worst.col));
    fp8r_output_set_text(&output, root, "wrong", verdict->is_good ? NULL : verdict->text);
    fp8r_output_set_text(&output, root, "damage", outcome->damage);
    return fp8r_output_print(&output, error);
}

static void print_verdict(const struct outcome *outcome)
{
    const struct fp8r_verdict *verdict = &outcome->verdict;
    bool is_good = verdict->is_good && !outcome->damage;
    const char *style = fp8r_style(stdout, is_good ? FP8R_STYLE_GOOD : FP8R_STYLE_BAD);
    printf("verified  %s%s%s: ", style, is_good ? "yes" : "NO", fp8r_style(stdout, FP8R_STYLE_NONE));
    if (outcome->damage)
        printf("%s\n", outcome->damage);
    else if (!verdict->is_good)
        printf("%" PRId64 " of %" PRId64 " elements are wrong, first: %s\n", verdict->wrong, verdict->checked,
               verdict->text);
    else if (verdict->checked == 0)
        printf("no element, and nothing was touched\n");
    else
        printf("%s%" PRId64 " elements, largest error %.3g of %.3g allowed at [%" PRId64 ",%" PRId64
               ",%" PRId64 "]\n",
               verdict->is_whole ? "all " : "a sample of ", verdict->checked, verdict->worst_error,
               verdict->worst_bound, verdict->worst.batch, verdict->worst.row, verdict->worst.col);
}

static int print_outcome(const struct outcome *outcome, bool json, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (json) {
        code = print_json(outcome, error);
    } else {
        printf("problem   %s\nbackend   %s (%s)\ntime      %.1f us, median of %d run%s on warm operands\n",
               outcome->problem, outcome->label, outcome->source, outcome->median_us, outcome->runs,
               fp8r_s((size_t)outcome->runs));
        print_verdict(outcome);
    }
    bool is_good = outcome->verdict.is_good && !outcome->damage;
    return fp8r_exit_worse(code, is_good ? FP8R_EXIT_GOOD : FP8R_EXIT_FAILED);
}

static int run_shape(fp8r_context *context, const struct run_arguments *arguments, const fp8r_matmul *shape,
                     const struct fp8r_weights *weights, struct fp8r_tool_error *error)
{
    struct fp8r_inputs inputs;
    struct outcome outcome = {0};
    int code = fp8r_tool_status(error, fp8r_matmul_format(shape, outcome.problem, sizeof outcome.problem));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_inputs_create(shape, (uint64_t)arguments->seed, FP8R_GUARD_BYTES, &inputs, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (weights) code = fp8r_checkpoint_b_fill(context, weights, &inputs, error);
    if (code == FP8R_EXIT_GOOD) code = measure(context, arguments, &inputs, &outcome, error);
    fp8r_inputs_destroy(&inputs);
    return code == FP8R_EXIT_GOOD ? print_outcome(&outcome, arguments->common.json, error) : code;
}

static int run_in(fp8r_context *context, const struct run_arguments *arguments, struct fp8r_tool_error *error)
{
    struct fp8r_weights weights;
    fp8r_matmul shape;
    int code = fp8r_problem_read(arguments->common.words.items[0], &shape, error);
    if (code != FP8R_EXIT_GOOD || !arguments->weights)
        return code == FP8R_EXIT_GOOD ? run_shape(context, arguments, &shape, NULL, error) : code;
    code = fp8r_weights_load(arguments->weights, &weights, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_checkpoint_b_shape(&weights, &shape, error);
    if (code == FP8R_EXIT_GOOD) code = run_shape(context, arguments, &shape, &weights, error);
    fp8r_weights_fini(&weights);
    return code;
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    const struct run_arguments *arguments = words;
    struct fp8r_session session;
    fp8r_interrupt_watch();
    int code = fp8r_session_open(&arguments->common, 0, &session, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = run_in(session.context, arguments, error);
    fp8r_session_close(&session);
    return code;
}

static const struct fp8r_option options[] = {
    {"backend", "NAME[:CONFIG]", "run it on this backend and no other; the routes decide unless given",
     FP8R_OPTION_TEXT, offsetof(struct run_arguments, backend), 0},
    {"weights", "FILE:TENSOR", "take b and its scale from a safetensors file or sharded index",
     FP8R_OPTION_TEXT, offsetof(struct run_arguments, weights), 0},
    {"seed", "N", "of the random operands; 0 unless given", FP8R_OPTION_COUNT,
     offsetof(struct run_arguments, seed), 0}};

const struct fp8r_verb fp8r_verb_run = {
    .name = "run",
    .summary = "run one product on random operands, verify and time it",
    .words = "PROBLEM",
    .description = "Makes random operands of the real range, every scale another number, poison around and "
                   "between them; runs the "
                   "product; compares the result with a computation in double, element by element (the whole "
                   "result up to 2e9 "
                   "operations, a sample with every tile, corner and edge above); and says which backend ran "
                   "it, how long it took "
                   "and how near the worst element came to its bound. It fails on a wrong element and on "
                   "memory written that is not "
                   "out's.\n\n"
                   "With --weights, b is a tensor of a checkpoint: e4m3 with its scale, or bf16, fp16 or "
                   "fp32, which is quantised a "
                   "row of the tensor at a time. The tensor is [N,K] and the problem must have its N and K.",
    .examples = "fp8route run 3x1000x777:fp32:bias\nfp8route run 1x4096x14336 --backend reference --json\n"
                "fp8route run 4x6144x4096 --weights model.safetensors.index.json:model.layers.0.mlp.up_proj",
    .words_min = 1,
    .words_max = 1,
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct run_arguments),
    .run = run,
};
