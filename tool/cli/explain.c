/* fp8route explain: which backend a product is sent to, and why no other.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/reason_name.h"
#include "cli/session.h"
#include "cli/text_table.h"
#include "tool_status.h"

static const char *const verdict_names[] = {"chosen", "eligible", "refused"};

static void set_candidate(struct fp8r_output *output, json_t *object, const fp8r_candidate *candidate)
{
    fp8r_output_set_text(output, object, "backend", candidate->backend);
    fp8r_output_set_text(output, object, "config", candidate->config);
    fp8r_output_set_text(output, object, "numerics", candidate->numerics);
    fp8r_output_set_text(output, object, "verdict", verdict_names[candidate->verdict]);
    fp8r_output_set(output, object, "reason", json_integer(candidate->reason));
    fp8r_output_set_text(output, object, "reason_name", fp8r_reason_name_of(candidate->reason));
    fp8r_output_set_text(output, object, "sentence", candidate->sentence);
    fp8r_output_set(output, object, "have", json_integer(candidate->have));
    fp8r_output_set(output, object, "need", json_integer(candidate->need));
    fp8r_output_set(output, object, "median_us", json_real(candidate->median_us));
    fp8r_output_set(output, object, "gain_low", json_real(candidate->gain_low));
    fp8r_output_set(output, object, "gain_high", json_real(candidate->gain_high));
}

static int print_json(const char *problem, const fp8r_explanation *explanation, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "explain");
    fp8r_output_set_text(&output, output.root, "problem", problem);
    fp8r_output_set_text(&output, output.root, "source", fp8r_explanation_source(explanation));
    fp8r_output_set_text(&output, output.root, "note", fp8r_explanation_note(explanation));
    json_t *candidates = fp8r_output_add_array(&output, output.root, "candidates");
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++)
        set_candidate(&output, fp8r_output_append_object(&output, candidates),
                      fp8r_explanation_candidate(explanation, i));
    return fp8r_output_print(&output, error);
}

static void add_row(struct fp8r_text_table *table, const fp8r_candidate *candidate)
{
    static const enum fp8r_style styles[] = {FP8R_STYLE_GOOD, FP8R_STYLE_NONE, FP8R_STYLE_DIM};
    enum fp8r_style style = styles[candidate->verdict];
    fp8r_text_table_add(table, style, "%s", candidate->backend);
    fp8r_text_table_add(table, style, "%s", verdict_names[candidate->verdict]);
    fp8r_text_table_add(table, style, "%s", *candidate->config ? candidate->config : "-");
    if (candidate->median_us > 0)
        fp8r_text_table_add(table, style, "%.1f us", candidate->median_us);
    else
        fp8r_text_table_add(table, style, "-");
    fp8r_text_table_add(table, style, "%s", *candidate->numerics ? candidate->numerics : "-");
    fp8r_text_table_add(table, style, "%s", candidate->sentence);
}

static int print_text(const char *problem, const fp8r_explanation *explanation, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"backend", "verdict", "config", ">measured", "numerics", "why"};
    struct fp8r_text_table table;
    printf("%s%s%s\n\n", fp8r_style(stdout, FP8R_STYLE_BOLD), problem, fp8r_style(stdout, FP8R_STYLE_NONE));
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++)
        add_row(&table, fp8r_explanation_candidate(explanation, i));
    int code = FP8R_EXIT_GOOD;
    if (table.count > 0) { /* an empty product has no candidates */
        code = fp8r_text_table_print(&table, stdout, error);
        printf("\n");
    }
    printf("source: %s\nnote:   %s\n", fp8r_explanation_source(explanation),
           fp8r_explanation_note(explanation));
    return code;
}

static int explain(fp8r_context *context, const struct fp8r_common *common, struct fp8r_tool_error *error)
{
    fp8r_matmul matmul;
    char problem[256];
    fp8r_explanation *explanation = NULL;
    int code = fp8r_problem_read(common->words.items[0], &matmul, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_status(error, fp8r_matmul_format(&matmul, problem, sizeof problem));
    if (code == FP8R_EXIT_GOOD) code = fp8r_tool_status(error, fp8r_explain(context, &matmul, &explanation));
    if (code == FP8R_EXIT_GOOD)
        code =
            common->json ? print_json(problem, explanation, error) : print_text(problem, explanation, error);
    fp8r_explanation_destroy(explanation);
    return code;
}

static int run(const void *arguments, struct fp8r_tool_error *error)
{
    const struct fp8r_common *common = arguments;
    struct fp8r_session session;
    int code = fp8r_session_open(common, 0, &session, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = explain(session.context, common, error);
    fp8r_session_close(&session);
    return code;
}

const struct fp8r_verb fp8r_verb_explain = {
    .name = "explain",
    .summary = "say which backend a product is sent to, and why no other",
    .words = "PROBLEM",
    .description = "Lists every backend with its verdict for the problem: chosen, eligible (could run it, "
                   "another was chosen) or "
                   "refused with the reason. Behind the table stand the step of the dispatch order that "
                   "decided, and the route file "
                   "behind it or the command that would measure one. Nothing is run, and it succeeds "
                   "whatever the verdicts are.\n\n"
                   "A problem is [B*]MxNxK and options behind colons: fp16 or fp32 (out; bf16 otherwise), "
                   "tensor, sa=KIND, sb=KIND "
                   "with a kind of none, tensor, batch or row, bias or bias=TYPE, a=TYPE, precise, "
                   "invariant, static, ta, tb, to, "
                   "lda=N, ldb=N, ldo=N, ia=N, ib=N, io=N, ba=N, bb=N, bo=N, align=N.",
    .examples = "fp8route explain 1x4096x14336\nfp8route explain 512x4096x4096:bias --json",
    .words_min = 1,
    .words_max = 1,
    .has_context = true,
    .arguments_bytes = sizeof(struct fp8r_common),
    .run = run,
};
