/* The words of a rule. Knows spelling, not grammar. Private to tool/rule. SPDX-License-Identifier: Apache-2.0
 */
#ifndef FP8R_RULE_TOKEN_H
#define FP8R_RULE_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "tool_error.h"

enum fp8r_rule_token_kind {
    FP8R_TOKEN_END,
    FP8R_TOKEN_NUMBER, /* value */
    FP8R_TOKEN_NAME,   /* value: place in "mnkb" */
    FP8R_TOKEN_TRUTH,  /* value: 0 or 1 */
    FP8R_TOKEN_AND,
    FP8R_TOKEN_OR,
    FP8R_TOKEN_NOT,
    FP8R_TOKEN_BANG,
    FP8R_TOKEN_RELATION, /* value: enum fp8r_rule_relation */
    FP8R_TOKEN_PLUS,
    FP8R_TOKEN_MINUS,
    FP8R_TOKEN_TIMES,
    FP8R_TOKEN_DIVIDE,
    FP8R_TOKEN_REMAINDER,
    FP8R_TOKEN_OPEN,
    FP8R_TOKEN_CLOSE
};

struct fp8r_rule_token {
    enum fp8r_rule_token_kind kind;
    int64_t value;
    size_t at, length; /* bytes */
};

/* The token at or after text[from]. */
int fp8r_rule_token_read(const char *text, size_t from, struct fp8r_rule_token *token,
                         struct fp8r_tool_error *error);

#endif
