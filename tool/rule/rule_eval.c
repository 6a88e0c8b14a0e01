/* A rule's answer at one point, with Python's division and checked 64-bit arithmetic. Pure.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rule/rule_tree.h"

static int failed(const struct fp8r_rule_node *node, const struct fp8r_rule_point *point, const char *what,
                  struct fp8r_tool_error *error)
{
    return fp8r_tool_error_set(
        error, FP8R_EXIT_USAGE, "rule, character %d: %s at m=%lld n=%lld k=%lld b=%lld", node->column, what,
        (long long)point->m, (long long)point->n, (long long)point->k, (long long)point->b);
}

/* Rounds down; the remainder has the divisor's sign. The caller has ruled out 0 and INT64_MIN // -1. */
static void divide_down(int64_t left, int64_t right, int64_t *quotient, int64_t *remainder)
{
    *quotient = left / right;
    *remainder = left % right;
    if (*remainder != 0 && (*remainder < 0) != (right < 0)) {
        *quotient -= 1;
        *remainder += right;
    }
}

static int division_eval(const struct fp8r_rule_node *node, const struct fp8r_rule_point *point, int64_t left,
                         int64_t right, int64_t *value, struct fp8r_tool_error *error)
{
    int64_t quotient, remainder;
    if (right == 0) return failed(node, point, "division by zero", error);
    if (right == -1) {
        /* The one quotient that does not fit; its remainder is 0 all the same. */
        quotient = 0;
        remainder = 0;
        if (node->kind == FP8R_RULE_DIVIDE && __builtin_sub_overflow(0, left, &quotient))
            return failed(node, point, "a value beyond 64 bits", error);
    } else {
        divide_down(left, right, &quotient, &remainder);
    }
    *value = node->kind == FP8R_RULE_DIVIDE ? quotient : remainder;
    return FP8R_EXIT_GOOD;
}

static int operation_eval(const struct fp8r_rule *rule, const struct fp8r_rule_node *node,
                          const struct fp8r_rule_point *point, int64_t *value, struct fp8r_tool_error *error)
{
    const struct fp8r_rule_node *first = fp8r_rule_child(rule, node),
                                *second = fp8r_rule_sibling(rule, first);
    int64_t left, right = 0;
    int rc = fp8r_rule_number_eval(rule, first, point, &left, error);
    if (rc == 0 && second != NULL) rc = fp8r_rule_number_eval(rule, second, point, &right, error);
    if (rc != 0) return rc;
    bool overflows;
    switch (node->kind) {
    case FP8R_RULE_NEGATE:
        overflows = __builtin_sub_overflow(0, left, value);
        break;
    case FP8R_RULE_ADD:
        overflows = __builtin_add_overflow(left, right, value);
        break;
    case FP8R_RULE_SUBTRACT:
        overflows = __builtin_sub_overflow(left, right, value);
        break;
    case FP8R_RULE_MULTIPLY:
        overflows = __builtin_mul_overflow(left, right, value);
        break;
    default:
        return division_eval(node, point, left, right, value, error);
    }
    return overflows ? failed(node, point, "a value beyond 64 bits", error) : FP8R_EXIT_GOOD;
}

int fp8r_rule_number_eval(const struct fp8r_rule *rule, const struct fp8r_rule_node *node,
                          const struct fp8r_rule_point *point, int64_t *value, struct fp8r_tool_error *error)
{
    const int64_t names[] = {point->m, point->n, point->k, point->b};
    if (node->kind == FP8R_RULE_NUMBER)
        *value = node->value;
    else if (node->kind == FP8R_RULE_NAME)
        *value = names[node->value];
    else
        return operation_eval(rule, node, point, value, error);
    return FP8R_EXIT_GOOD;
}

static bool relation_holds(uint8_t relation, int64_t left, int64_t right)
{
    switch (relation) {
    case FP8R_RULE_LESS:
        return left < right;
    case FP8R_RULE_LESS_EQUAL:
        return left <= right;
    case FP8R_RULE_GREATER:
        return left > right;
    case FP8R_RULE_GREATER_EQUAL:
        return left >= right;
    case FP8R_RULE_EQUAL:
        return left == right;
    default:
        return left != right;
    }
}

/* As in Python, a chain ends at the first comparison that does not hold. */
static int chain_eval(const struct fp8r_rule *rule, const struct fp8r_rule_node *node,
                      const struct fp8r_rule_point *point, bool *holds, struct fp8r_tool_error *error)
{
    const struct fp8r_rule_node *child = fp8r_rule_child(rule, node);
    int64_t left, right;
    int rc = fp8r_rule_number_eval(rule, child, point, &left, error);
    *holds = true;
    while (rc == 0 && *holds && (child = fp8r_rule_sibling(rule, child)) != NULL) {
        rc = fp8r_rule_number_eval(rule, child, point, &right, error);
        if (rc != 0) break;
        *holds = relation_holds(child->relation, left, right);
        left = right;
    }
    return rc;
}

static int truth_eval(const struct fp8r_rule *rule, const struct fp8r_rule_node *node,
                      const struct fp8r_rule_point *point, bool *holds, struct fp8r_tool_error *error)
{
    if (node->kind == FP8R_RULE_TRUTH) {
        *holds = node->value != 0;
        return FP8R_EXIT_GOOD;
    }
    if (node->kind == FP8R_RULE_COMPARE) return chain_eval(rule, node, point, holds, error);
    const struct fp8r_rule_node *child = fp8r_rule_child(rule, node);
    int rc = truth_eval(rule, child, point, holds, error);
    if (node->kind == FP8R_RULE_NOT) {
        *holds = !*holds;
        return rc;
    }
    bool decides = node->kind == FP8R_RULE_OR;
    while (rc == 0 && *holds != decides && (child = fp8r_rule_sibling(rule, child)) != NULL)
        rc = truth_eval(rule, child, point, holds, error);
    return rc;
}

int fp8r_rule_eval(const struct fp8r_rule *rule, const struct fp8r_rule_point *point, bool *holds,
                   struct fp8r_tool_error *error)
{
    bool answer = false;
    int rc = truth_eval(rule, &rule->nodes[rule->root], point, &answer, error);
    if (rc == 0) *holds = answer;
    return rc;
}
