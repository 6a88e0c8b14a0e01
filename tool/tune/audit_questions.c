/* Lists of problems with the picker's answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tool_status.h"
#include "tune/audit.h"
#include "tune/families.h"
#include "tune/picker.h"
#include "tune/samples_grow.h"

struct fp8r_audit_question *fp8r_audit_questions_add(struct fp8r_audit_questions *questions)
{
    if (!samples_grow(&questions->items, questions->count, &questions->capacity)) return NULL;
    struct fp8r_audit_question *added = &questions->items[questions->count++];
    *added = (struct fp8r_audit_question){.weight = 1};
    return added;
}

void fp8r_audit_questions_fini(struct fp8r_audit_questions *questions)
{
    free(questions->items);
    *questions = (struct fp8r_audit_questions){.mode = questions->mode};
}

/* Adds it with the picker's answer; nothing where a list has none. */
static int ask(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker, bool is_only,
               const struct fp8r_audit_question *asked, struct fp8r_tool_error *error)
{
    const char *pick = NULL;
    int code = fp8r_picker_pick(picker, asked->problem, &asked->key, asked->m, &pick, error);
    if (code != FP8R_EXIT_GOOD || !pick) return code;
    struct fp8r_audit_question *added = fp8r_audit_questions_add(questions);
    if (!added) return fp8r_tool_error_memory(error, "the problems of the audit");
    *added = *asked;
    snprintf(added->pick, sizeof added->pick, "%s", pick);
    if (is_only)
        snprintf(added->rival, sizeof added->rival, "%s",
                 pick == picker->then_pick ? picker->else_pick : picker->then_pick);
    return code;
}

int fp8r_audit_ask_family(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker,
                          bool is_only, const struct fp8r_tune_family *family, bool is_random,
                          struct fp8r_tool_error *error)
{
    struct fp8r_audit_question asked = {.key = family->key, .is_random = is_random};
    int code = FP8R_EXIT_GOOD;
    snprintf(asked.family, sizeof asked.family, "%s", family->text);
    for (size_t i = 0; i < family->m_count && code == FP8R_EXIT_GOOD; i++) {
        fp8r_matmul member;
        asked.m = family->ms[i];
        asked.weight = fp8r_family_weight(family, asked.m);
        code = fp8r_tool_status(error, fp8r_family_member(family->text, asked.m, &member));
        if (code == FP8R_EXIT_GOOD)
            code = fp8r_tool_status(error, fp8r_matmul_format(&member, asked.problem, sizeof asked.problem));
        if (code == FP8R_EXIT_GOOD) code = ask(questions, picker, is_only, &asked, error);
    }
    return code;
}

static int compare_questions(const void *a, const void *b)
{
    const struct fp8r_audit_question *one = a, *other = b;
    int by_key = fp8r_key_compare(&one->key, &other->key);
    return by_key ? by_key : (one->m > other->m) - (one->m < other->m);
}

int fp8r_audit_ask_list(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker,
                        struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < picker->pick_count && code == FP8R_EXIT_GOOD; i++) {
        const struct fp8r_pick *pick = &picker->picks[i];
        struct fp8r_audit_question asked = {.weight = pick->weight};
        fp8r_matmul matmul;
        struct fp8r_product product;
        snprintf(asked.problem, sizeof asked.problem, "%s", pick->problem);
        code = fp8r_tool_status(error, fp8r_matmul_parse(pick->problem, &matmul));
        if (code == FP8R_EXIT_GOOD)
            code = fp8r_tool_status(error, fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product));
        if (code != FP8R_EXIT_GOOD) break;
        asked.m = product.problem.m;
        fp8r_key_init(&product.problem, questions->mode, &asked.key);
        code = fp8r_tool_status(error, fp8r_family_format(&asked.key, asked.family, sizeof asked.family));
        if (code == FP8R_EXIT_GOOD) code = ask(questions, picker, false, &asked, error);
    }
    if (questions->count > 1)
        qsort(questions->items, questions->count, sizeof *questions->items, compare_questions);
    return code;
}

int fp8r_audit_ask_samples(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker,
                           bool is_only, const struct samples *samples, int machine,
                           struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < samples->case_count && code == FP8R_EXIT_GOOD; i++) {
        const struct sample_case *it = &samples->cases[i];
        struct fp8r_audit_question asked = {.key = it->key, .m = it->m, .weight = it->weight};
        const struct fp8r_pick *listed = fp8r_picker_find(picker, it->problem);
        if (it->machine != machine) continue;
        if (listed && listed->has_weight) asked.weight = listed->weight;
        snprintf(asked.problem, sizeof asked.problem, "%s", it->problem);
        code = fp8r_tool_status(error, fp8r_family_format(&it->key, asked.family, sizeof asked.family));
        if (code == FP8R_EXIT_GOOD) code = ask(questions, picker, is_only, &asked, error);
    }
    return code;
}
