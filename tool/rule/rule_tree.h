/* A parsed rule: nodes in one block, children before parents, linked by index. Private to tool/rule.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_RULE_TREE_H
#define FP8R_RULE_TREE_H

#include "rule/rule.h"

enum fp8r_rule_kind {
    /* numbers */
    FP8R_RULE_NUMBER,
    FP8R_RULE_NAME,
    FP8R_RULE_NEGATE,
    FP8R_RULE_ADD,
    FP8R_RULE_SUBTRACT,
    FP8R_RULE_MULTIPLY,
    FP8R_RULE_DIVIDE,
    FP8R_RULE_REMAINDER,
    /* truths */
    FP8R_RULE_TRUTH,
    FP8R_RULE_COMPARE, /* two or more children; each but the first has its relation to the one before */
    FP8R_RULE_NOT,
    FP8R_RULE_AND, /* two or more */
    FP8R_RULE_OR   /* two or more */
};

enum fp8r_rule_relation {
    FP8R_RULE_LESS,
    FP8R_RULE_LESS_EQUAL,
    FP8R_RULE_GREATER,
    FP8R_RULE_GREATER_EQUAL,
    FP8R_RULE_EQUAL,
    FP8R_RULE_UNEQUAL
};

#define FP8R_RULE_NO_NODE UINT32_MAX

struct fp8r_rule_node {
    int64_t value;        /* of a number; of a truth 0 or 1; of a name its place in "mnkb" */
    uint32_t first, next; /* child, sibling; FP8R_RULE_NO_NODE where there is none */
    uint16_t column;      /* byte in the text, from 1 */
    uint16_t height;      /* 1 for a leaf */
    uint8_t kind, relation;
};

struct fp8r_rule {
    uint32_t root, count;
    struct fp8r_rule_node nodes[];
};

static inline bool fp8r_rule_is_truth(const struct fp8r_rule_node *node)
{
    return node->kind >= FP8R_RULE_TRUTH;
}

static inline const struct fp8r_rule_node *fp8r_rule_child(const struct fp8r_rule *rule,
                                                           const struct fp8r_rule_node *node)
{
    return &rule->nodes[node->first];
}

/* NULL after the last. */
static inline const struct fp8r_rule_node *fp8r_rule_sibling(const struct fp8r_rule *rule,
                                                             const struct fp8r_rule_node *node)
{
    return node->next == FP8R_RULE_NO_NODE ? NULL : &rule->nodes[node->next];
}

static inline const char *fp8r_rule_relation_text(uint8_t relation)
{
    static const char *const texts[] = {
        [FP8R_RULE_LESS] = "<",           [FP8R_RULE_LESS_EQUAL] = "<=", [FP8R_RULE_GREATER] = ">",
        [FP8R_RULE_GREATER_EQUAL] = ">=", [FP8R_RULE_EQUAL] = "==",      [FP8R_RULE_UNEQUAL] = "!="};
    return texts[relation];
}

/* A number's value at a point; the rule's evaluator, also for the search of borders. */
int fp8r_rule_number_eval(const struct fp8r_rule *rule, const struct fp8r_rule_node *node,
                          const struct fp8r_rule_point *point, int64_t *value, struct fp8r_tool_error *error);

#endif
