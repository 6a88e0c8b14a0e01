/* Where a problem is sent, said by somebody else: a rule with two answers, or a list of picks that any
 * program wrote. Knows no samples and no backends. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PICKER_H
#define FP8R_PICKER_H

#include "problem/grammar.h"
#include "route/table.h"
#include "rule/rule.h"
#include "tool_error.h"

/* One line of a list. */
struct fp8r_pick {
    char problem[FP8R_TEXT_BYTES]; /* in the form that this program writes */
    char pick[FP8R_LABEL_BYTES];
    double weight; /* 1 where the line gives none */
    bool has_weight;
    int line;
};

struct fp8r_picker {
    struct fp8r_rule *rule; /* NULL: the list counts */
    char then_pick[FP8R_LABEL_BYTES], else_pick[FP8R_LABEL_BYTES];
    struct fp8r_pick *picks; /* by problem */
    size_t pick_count;
};

/* Exit codes: USAGE with the position in the rule, or for a pick that is not backend[:config]; INTERNAL. */
int fp8r_picker_init_rule(struct fp8r_picker *picker, const char *rule, const char *then_pick,
                          const char *else_pick, struct fp8r_tool_error *error);

/* Reads JSON lines {"problem": "1x4096x14336", "pick": "blas:sgemm", "weight": 3}; weight is 1 unless given,
 * blank lines and what follows a # are left out. Exit codes: BAD_DATA with the line, INTERNAL. */
int fp8r_picker_init_list(struct fp8r_picker *picker, const char *path, struct fp8r_tool_error *error);

void fp8r_picker_fini(struct fp8r_picker *picker);

/* A problem as a rule sees it. */
struct fp8r_rule_point fp8r_picker_point(const struct fp8r_key *key, int64_t m);

/* The line of a list that names the problem; NULL where there is none, or a rule counts. */
const struct fp8r_pick *fp8r_picker_find(const struct fp8r_picker *picker, const char *problem);

/* *pick: borrowed; NULL where a list does not hold the problem. Exit codes: USAGE where the rule has no value
 * there. */
int fp8r_picker_pick(const struct fp8r_picker *picker, const char *problem, const struct fp8r_key *key,
                     int64_t m, const char **pick, struct fp8r_tool_error *error);

#endif
