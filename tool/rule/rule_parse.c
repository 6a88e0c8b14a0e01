/* Text to tree by recursive descent, one token ahead. Every node takes a token of its own, so that counting
 * the tokens first gives the one block its size. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "rule/rule_token.h"
#include "rule/rule_tree.h"

struct parser {
    const char *text;
    struct fp8r_rule *rule;
    struct fp8r_rule_token token; /* the next one */
    struct fp8r_tool_error *error;
    int nesting;
};

static int rule_parse(struct parser *parser, uint32_t *node);

static int advance(struct parser *parser)
{
    size_t from = parser->token.at + parser->token.length;
    return fp8r_rule_token_read(parser->text, from, &parser->token, parser->error);
}

static int expected(struct parser *parser, const char *what)
{
    const struct fp8r_rule_token *token = &parser->token;
    if (token->kind == FP8R_TOKEN_END)
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                                   "rule, character %zu: expected %s, found the end", token->at + 1, what);
    return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                               "rule, character %zu: expected %s, found '%.*s'", token->at + 1, what,
                               (int)token->length, parser->text + token->at);
}

/* Numbers and truths do not mix: `m and 1` and `(m > 1) + 1` mean something in Python, but never what was
 * meant. */
static int kind_check(const struct parser *parser, uint32_t index, bool is_truth)
{
    const struct fp8r_rule_node *node = &parser->rule->nodes[index];
    if (fp8r_rule_is_truth(node) == is_truth) return FP8R_EXIT_GOOD;
    const char *wanted = is_truth ? "a comparison such as m >= 1" : "a number";
    const char *found = is_truth ? "a number" : "a comparison";
    return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "rule, character %d: expected %s, found %s",
                               node->column, wanted, found);
}

static uint32_t node_add(struct parser *parser, enum fp8r_rule_kind kind, int64_t value, size_t at)
{
    struct fp8r_rule *rule = parser->rule;
    rule->nodes[rule->count] = (struct fp8r_rule_node){.value = value,
                                                       .first = FP8R_RULE_NO_NODE,
                                                       .next = FP8R_RULE_NO_NODE,
                                                       .column = (uint16_t)(at + 1),
                                                       .height = 1,
                                                       .kind = (uint8_t)kind};
    return rule->count++;
}

/* Hangs child under parent, after `last` (none: as the first). */
static int child_add(struct parser *parser, uint32_t parent, uint32_t last, uint32_t child)
{
    struct fp8r_rule_node *nodes = parser->rule->nodes;
    if (last == FP8R_RULE_NO_NODE)
        nodes[parent].first = child;
    else
        nodes[last].next = child;
    if (nodes[parent].height <= nodes[child].height)
        nodes[parent].height = (uint16_t)(nodes[child].height + 1);
    if (nodes[parent].height <= FP8R_RULE_HEIGHT_MAX) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                               "rule, character %d: too many operations inside each other, at most %d",
                               nodes[parent].column, FP8R_RULE_HEIGHT_MAX);
}

static int nesting_enter(struct parser *parser)
{
    if (parser->nesting++ < FP8R_RULE_NESTING_MAX) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                               "rule, character %zu: nested too deeply, at most %d", parser->token.at + 1,
                               FP8R_RULE_NESTING_MAX);
}

/* One operand after a sign that is the current token. */
static int prefix_parse(struct parser *parser, enum fp8r_rule_kind kind,
                        int (*operand_parse)(struct parser *, uint32_t *), uint32_t *node)
{
    uint32_t operand, parent;
    size_t at = parser->token.at;
    int rc = nesting_enter(parser);
    if (rc == 0) rc = advance(parser);
    if (rc == 0) rc = operand_parse(parser, &operand);
    if (rc == 0) rc = kind_check(parser, operand, kind == FP8R_RULE_NOT);
    if (rc != 0) return rc;
    parser->nesting--;
    parent = node_add(parser, kind, 0, at);
    *node = parent;
    return child_add(parser, parent, FP8R_RULE_NO_NODE, operand);
}

static int group_parse(struct parser *parser, uint32_t *node)
{
    int rc = nesting_enter(parser);
    if (rc == 0) rc = advance(parser);
    if (rc == 0) rc = rule_parse(parser, node);
    if (rc != 0) return rc;
    if (parser->token.kind != FP8R_TOKEN_CLOSE) return expected(parser, "')' or an operator");
    parser->nesting--;
    return advance(parser);
}

static int signed_parse(struct parser *parser, uint32_t *node)
{
    static const enum fp8r_rule_kind leaves[] = {[FP8R_TOKEN_NUMBER] = FP8R_RULE_NUMBER,
                                                 [FP8R_TOKEN_NAME] = FP8R_RULE_NAME,
                                                 [FP8R_TOKEN_TRUTH] = FP8R_RULE_TRUTH};
    const struct fp8r_rule_token *token = &parser->token;
    switch (token->kind) {
    case FP8R_TOKEN_MINUS:
        return prefix_parse(parser, FP8R_RULE_NEGATE, signed_parse, node);
    case FP8R_TOKEN_BANG:
        return prefix_parse(parser, FP8R_RULE_NOT, signed_parse, node);
    case FP8R_TOKEN_OPEN:
        return group_parse(parser, node);
    case FP8R_TOKEN_NUMBER:
    case FP8R_TOKEN_NAME:
    case FP8R_TOKEN_TRUTH:
        *node = node_add(parser, leaves[token->kind], token->value, token->at);
        return advance(parser);
    default:
        return expected(parser, "a number, m, n, k, b, '-' or '('");
    }
}

/* Left to right: `a - b - c` is `(a - b) - c`. kinds[token kind] is the operation, 0 for a token that ends
 * it. */
static int operations_parse(struct parser *parser, const uint8_t *kinds,
                            int (*operand_parse)(struct parser *, uint32_t *), uint32_t *node)
{
    int rc = operand_parse(parser, node);
    while (rc == 0 && kinds[parser->token.kind] != 0) {
        enum fp8r_rule_kind kind = (enum fp8r_rule_kind)kinds[parser->token.kind];
        size_t at = parser->token.at;
        uint32_t right, left = *node;
        rc = kind_check(parser, left, false);
        if (rc == 0) rc = advance(parser);
        if (rc == 0) rc = operand_parse(parser, &right);
        if (rc == 0) rc = kind_check(parser, right, false);
        if (rc != 0) break;
        *node = node_add(parser, kind, 0, at);
        rc = child_add(parser, *node, FP8R_RULE_NO_NODE, left);
        if (rc == 0) rc = child_add(parser, *node, left, right);
    }
    return rc;
}

static int term_parse(struct parser *parser, uint32_t *node)
{
    static const uint8_t kinds[FP8R_TOKEN_CLOSE + 1] = {[FP8R_TOKEN_TIMES] = FP8R_RULE_MULTIPLY,
                                                        [FP8R_TOKEN_DIVIDE] = FP8R_RULE_DIVIDE,
                                                        [FP8R_TOKEN_REMAINDER] = FP8R_RULE_REMAINDER};
    return operations_parse(parser, kinds, signed_parse, node);
}

static int sum_parse(struct parser *parser, uint32_t *node)
{
    static const uint8_t kinds[FP8R_TOKEN_CLOSE + 1] = {
        [FP8R_TOKEN_PLUS] = FP8R_RULE_ADD, [FP8R_TOKEN_MINUS] = FP8R_RULE_SUBTRACT};
    return operations_parse(parser, kinds, term_parse, node);
}

/* Operands joined by tokens of one kind under one node, however many: and, or, chains of comparisons. */
static int list_parse(struct parser *parser, enum fp8r_rule_kind kind, enum fp8r_rule_token_kind joint,
                      int (*operand_parse)(struct parser *, uint32_t *), uint32_t *node)
{
    int rc = operand_parse(parser, node);
    if (rc != 0 || parser->token.kind != joint) return rc;
    bool is_truth = kind != FP8R_RULE_COMPARE;
    uint32_t last = *node;
    rc = kind_check(parser, last, is_truth);
    uint32_t parent = node_add(parser, kind, 0, parser->token.at);
    if (rc == 0) rc = child_add(parser, parent, FP8R_RULE_NO_NODE, last);
    while (rc == 0 && parser->token.kind == joint) {
        uint8_t relation = (uint8_t)parser->token.value;
        uint32_t operand;
        rc = advance(parser);
        if (rc == 0) rc = operand_parse(parser, &operand);
        if (rc == 0) rc = kind_check(parser, operand, is_truth);
        if (rc != 0) break;
        parser->rule->nodes[operand].relation = relation;
        rc = child_add(parser, parent, last, operand);
        last = operand;
    }
    *node = parent;
    return rc;
}

static int compared_parse(struct parser *parser, uint32_t *node)
{
    return list_parse(parser, FP8R_RULE_COMPARE, FP8R_TOKEN_RELATION, sum_parse, node);
}

static int denied_parse(struct parser *parser, uint32_t *node)
{
    if (parser->token.kind != FP8R_TOKEN_NOT) return compared_parse(parser, node);
    return prefix_parse(parser, FP8R_RULE_NOT, denied_parse, node);
}

static int both_parse(struct parser *parser, uint32_t *node)
{
    return list_parse(parser, FP8R_RULE_AND, FP8R_TOKEN_AND, denied_parse, node);
}

static int rule_parse(struct parser *parser, uint32_t *node)
{
    return list_parse(parser, FP8R_RULE_OR, FP8R_TOKEN_OR, both_parse, node);
}

static int tokens_count(const char *text, size_t *count, struct fp8r_tool_error *error)
{
    struct fp8r_rule_token token;
    *count = 0;
    for (size_t from = 0;; from = token.at + token.length) {
        int rc = fp8r_rule_token_read(text, from, &token, error);
        if (rc != 0 || token.kind == FP8R_TOKEN_END) return rc;
        ++*count;
    }
}

int fp8r_rule_parse(const char *text, struct fp8r_rule **rule, struct fp8r_tool_error *error)
{
    struct parser parser = {.text = text, .error = error};
    size_t count;
    if (strlen(text) > FP8R_RULE_TEXT_MAX)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "rule: the text is %zu bytes long, at most %d",
                                   strlen(text), FP8R_RULE_TEXT_MAX);
    int rc = tokens_count(text, &count, error);
    if (rc != 0) return rc;
    parser.rule = malloc(sizeof *parser.rule + count * sizeof *parser.rule->nodes);
    if (parser.rule == NULL) return fp8r_tool_error_memory(error, "the rule");
    parser.rule->count = 0;
    rc = advance(&parser);
    if (rc == 0) rc = rule_parse(&parser, &parser.rule->root);
    if (rc == 0 && parser.token.kind != FP8R_TOKEN_END) rc = expected(&parser, "an operator or the end");
    if (rc == 0) rc = kind_check(&parser, parser.rule->root, true);
    if (rc == 0)
        *rule = parser.rule;
    else
        free(parser.rule);
    return rc;
}

void fp8r_rule_destroy(struct fp8r_rule *rule)
{
    free(rule);
}

bool fp8r_rule_equal(const struct fp8r_rule *a, const struct fp8r_rule *b)
{
    /* Both are built in the order of the text, so that equal trees have equal blocks. */
    if (a->count != b->count || a->root != b->root) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct fp8r_rule_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->kind != y->kind || x->relation != y->relation || x->value != y->value ||
            x->first != y->first || x->next != y->next)
            return false;
    }
    return true;
}
