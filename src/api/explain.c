/* Explanations: one decision, written down for every row.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "backend/row.h"
#include "base/reason.h"
#include "base/status.h"
#include "problem/problem.h"
#include "route/advice.h"

enum { SENTENCE_BYTES = 256, NOTE_BYTES = 1024 };

struct fp8r_explanation {
    size_t count;
    const char *source;
    char note[NOTE_BYTES];
    fp8r_candidate *candidates;
    char (*sentences)[SENTENCE_BYTES]; /* one a candidate */
    char (*names)[2][FP8R_NAME_BYTES]; /* backend and numerics class: a plug-in may be gone before the explanation */
    char (*configs)[FP8R_NAME_BYTES];
};

void fp8r_explanation_destroy(fp8r_explanation *explanation)
{
    if (!explanation)
        return;
    free(explanation->candidates);
    free(explanation->sentences);
    free(explanation->names);
    free(explanation->configs);
    free(explanation);
}

static struct fp8r_explanation *allocate(size_t count)
{
    struct fp8r_explanation *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->count = count;
    made->candidates = calloc(count, sizeof *made->candidates);
    made->sentences = calloc(count, sizeof *made->sentences);
    made->names = calloc(count, sizeof *made->names);
    made->configs = calloc(count, sizeof *made->configs);
    if (made->candidates && made->sentences && made->names && made->configs)
        return made;
    fp8r_explanation_destroy(made);
    return NULL;
}

/* Measured times of the segment that holds this M: the chosen one's, and the runner-up's or the best other backend's. One
 * that decides for M behind it has none to lend: its configuration there is another, and its rows are fewer. */
static void add_times(const struct fp8r_decision *decision, fp8r_candidate *candidate, char sentence[SENTENCE_BYTES])
{
    const struct fp8r_segment *segment = decision->segment;
    if (!segment || decision->source != FP8R_SOURCE_ROUTE)
        return;
    size_t length = strlen(candidate->backend);
    if (candidate->verdict == FP8R_VERDICT_CHOSEN) {
        candidate->median_us = segment->median_us;
        candidate->gain_low = segment->gain_low;
        candidate->gain_high = segment->gain_high;
    } else if (strncmp(segment->rival, candidate->backend, length) == 0 && segment->rival[length] == ':') {
        candidate->median_us = segment->rival_us;
        candidate->gain_low = segment->rival_low;
        candidate->gain_high = segment->rival_high;
        snprintf(sentence, SENTENCE_BYTES, "could run it; measured as %s, the chosen one is %.3g to %.3g times as fast",
                 segment->rival + length + 1, segment->rival_low, segment->rival_high);
    } else if (strncmp(segment->runner_up, candidate->backend, length) == 0 && segment->runner_up[length] == ':') {
        candidate->median_us = segment->runner_up_us;
        snprintf(sentence, SENTENCE_BYTES, "could run it; measured as %s", segment->runner_up + length + 1);
    }
}

static void write_row(const fp8r_context *context, const fp8r_problem *problem, const struct fp8r_candidates *candidates,
                      const struct fp8r_decision *decision, struct fp8r_explanation *made, int i)
{
    const struct fp8r_row *row = &context->registry.rows[i];
    const struct fp8r_choice *choice = &candidates->rows[i];
    fp8r_candidate *candidate = &made->candidates[i];
    bool is_chosen = decision->row == i;
    int config = is_chosen ? decision->config : choice->config;
    candidate->verdict = is_chosen             ? FP8R_VERDICT_CHOSEN
                         : choice->is_eligible ? FP8R_VERDICT_ELIGIBLE
                                               : FP8R_VERDICT_REFUSED;
    candidate->sentence = made->sentences[i];
    snprintf(made->names[i][0], FP8R_NAME_BYTES, "%s", row->backend.name);
    if (candidate->verdict == FP8R_VERDICT_REFUSED) {
        candidate->reason = choice->reason.code;
        candidate->have = choice->reason.have;
        candidate->need = choice->reason.need;
        fp8r_reason_sentence(&choice->reason, made->sentences[i], SENTENCE_BYTES);
    } else {
        const char *class = fp8r_row_numerics(row, &context->device, problem, config);
        snprintf(made->names[i][1], FP8R_NAME_BYTES, "%s", class ? class : "");
        snprintf(made->configs[i], FP8R_NAME_BYTES, "%s", row->backend.configs[config]);
        if (is_chosen)
            fp8r_decision_sentence(&context->router, decision, made->sentences[i], SENTENCE_BYTES);
        else if (decision->source == FP8R_SOURCE_AMBIGUOUS)
            fp8r_reason_sentence(&(fp8r_reason){.code = FP8R_REASON_UNROUTED}, made->sentences[i], SENTENCE_BYTES);
        else
            snprintf(made->sentences[i], SENTENCE_BYTES, "could run it");
    }
    candidate->backend = made->names[i][0];
    candidate->numerics = made->names[i][1];
    candidate->config = made->configs[i];
    add_times(decision, candidate, made->sentences[i]);
}

/* Nothing multiplies: no row is asked, so that there are no candidates. */
static void explain_nothing(struct fp8r_explanation *made)
{
    made->count = 0;
    made->source = "nothing to do";
    snprintf(made->note, sizeof made->note,
             "an empty product reaches no backend: M, N or B = 0 writes nothing, K = 0 writes the bias or zeros");
}

static void explain_decision(const fp8r_context *context, const fp8r_problem *problem, struct fp8r_explanation *made)
{
    struct fp8r_candidates candidates;
    struct fp8r_decision decision;
    fp8r_decide(&context->router, problem, 0, false, &candidates, &decision);
    for (int i = 0; i < context->registry.count; i++)
        write_row(context, problem, &candidates, &decision, made, i);
    made->source = fp8r_source_name(decision.source);
    fp8r_decision_note(&context->router, problem, &candidates, &decision, made->note, sizeof made->note);
}

fp8r_status fp8r_explain(fp8r_context *context, const fp8r_matmul *matmul, fp8r_explanation **explanation)
{
    struct fp8r_product product;
    struct fp8r_call call;
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    if (!explanation)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "explanation is NULL");
    FP8R_TRY(fp8r_product_init(matmul, FP8R_DATA_IGNORED, &product));
    FP8R_TRY(fp8r_call_begin(context, &call));
    struct fp8r_explanation *made = allocate((size_t)context->registry.count);
    if (!made) {
        fp8r_call_end(&call);
        return fp8r_fail_memory("an explanation");
    }
    *explanation = made;
    if (fp8r_problem_is_empty(&product.problem) || product.problem.k == 0)
        explain_nothing(made);
    else
        explain_decision(context, &product.problem, made);
    fp8r_call_end(&call);
    return FP8R_OK;
}

size_t fp8r_explanation_count(const fp8r_explanation *explanation)
{
    return explanation ? explanation->count : 0;
}

const fp8r_candidate *fp8r_explanation_candidate(const fp8r_explanation *explanation, size_t index)
{
    return explanation && index < explanation->count ? &explanation->candidates[index] : NULL;
}

const char *fp8r_explanation_source(const fp8r_explanation *explanation)
{
    return explanation ? explanation->source : "";
}

const char *fp8r_explanation_note(const fp8r_explanation *explanation)
{
    return explanation ? explanation->note : "";
}
