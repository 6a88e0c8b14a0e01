/* A rule as Python and as C, with the parentheses it needs and no others: what is printed as Python reads
 * back as the same tree, what is printed as C compiles without warnings and gives the same answers wherever
 * the rule has one. SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "rule/rule_tree.h"

struct writer {
    const struct fp8r_rule *rule;
    enum fp8r_rule_dialect dialect;
    char *text;
    size_t size, length;
};

/* How tightly a node's outermost operator binds; a child that binds looser than its place wants is
 * parenthesised. */
enum level { OR = 1, AND, NOT, COMPARE, SUM, TERM, SIGNED, ATOM };

static const uint8_t levels[] = {[FP8R_RULE_NUMBER] = ATOM,   [FP8R_RULE_NAME] = ATOM,
                                 [FP8R_RULE_NEGATE] = SIGNED, [FP8R_RULE_ADD] = SUM,
                                 [FP8R_RULE_SUBTRACT] = SUM,  [FP8R_RULE_MULTIPLY] = TERM,
                                 [FP8R_RULE_DIVIDE] = TERM,   [FP8R_RULE_REMAINDER] = TERM,
                                 [FP8R_RULE_TRUTH] = ATOM,    [FP8R_RULE_COMPARE] = COMPARE,
                                 [FP8R_RULE_NOT] = NOT,       [FP8R_RULE_AND] = AND,
                                 [FP8R_RULE_OR] = OR};

static const char *const operators[] = {[FP8R_RULE_ADD] = " + ",
                                        [FP8R_RULE_SUBTRACT] = " - ",
                                        [FP8R_RULE_MULTIPLY] = " * ",
                                        [FP8R_RULE_DIVIDE] = " // ",
                                        [FP8R_RULE_REMAINDER] = " % "};

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *format, ...)
{
    size_t room = writer->length < writer->size ? writer->size - writer->length : 0;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(room > 0 ? writer->text + writer->length : NULL, room, format, arguments);
    va_end(arguments);
    if (length > 0) writer->length += (size_t)length;
}

/* Certainly not negative, m, n, k and b being extents: there C's division is Python's. */
static bool is_natural(const struct fp8r_rule *rule, const struct fp8r_rule_node *node)
{
    if (node->kind == FP8R_RULE_NUMBER || node->kind == FP8R_RULE_NAME) return true;
    if (node->kind == FP8R_RULE_NEGATE || node->kind == FP8R_RULE_SUBTRACT) return false;
    const struct fp8r_rule_node *left = fp8r_rule_child(rule, node);
    return is_natural(rule, left) && is_natural(rule, fp8r_rule_sibling(rule, left));
}

static bool has_name(const struct fp8r_rule *rule, const struct fp8r_rule_node *node)
{
    if (node->kind == FP8R_RULE_NAME) return true;
    for (uint32_t i = node->first; i != FP8R_RULE_NO_NODE; i = rule->nodes[i].next) {
        if (has_name(rule, &rule->nodes[i])) return true;
    }
    return false;
}

static void number_print(struct writer *writer, const struct fp8r_rule_node *node, int wanted, bool is_wide);
static void truth_print(struct writer *writer, const struct fp8r_rule_node *node, int wanted);

static void operation_print(struct writer *writer, const struct fp8r_rule_node *node)
{
    const struct fp8r_rule *rule = writer->rule;
    const struct fp8r_rule_node *left = fp8r_rule_child(rule, node), *right = fp8r_rule_sibling(rule, left);
    bool is_c = writer->dialect == FP8R_RULE_C;
    bool is_wide = is_c && !has_name(rule, node); /* int times int would be an int */
    bool is_division = node->kind == FP8R_RULE_DIVIDE || node->kind == FP8R_RULE_REMAINDER;
    if (is_c && is_division && !is_natural(rule, node)) {
        put(writer, node->kind == FP8R_RULE_DIVIDE ? "fp8r_floor_div(" : "fp8r_floor_mod(");
        number_print(writer, left, SUM, is_wide);
        put(writer, ", ");
        number_print(writer, right, SUM, is_wide);
        put(writer, ")");
        return;
    }
    number_print(writer, left, levels[node->kind], is_wide);
    put(writer, "%s", is_c && node->kind == FP8R_RULE_DIVIDE ? " / " : operators[node->kind]);
    number_print(writer, right, levels[node->kind] + 1, is_wide);
}

static void number_print(struct writer *writer, const struct fp8r_rule_node *node, int wanted, bool is_wide)
{
    bool is_c = writer->dialect == FP8R_RULE_C;
    bool is_grouped = levels[node->kind] < wanted;
    if (is_grouped) put(writer, "(");
    if (node->kind == FP8R_RULE_NUMBER) {
        bool is_long = is_c && (is_wide || node->value > INT32_MAX);
        put(writer, is_long ? "INT64_C(%lld)" : "%lld", (long long)node->value);
    } else if (node->kind == FP8R_RULE_NAME) {
        put(writer, "%c", "mnkb"[node->value]);
    } else if (node->kind == FP8R_RULE_NEGATE) {
        put(writer, "-");
        number_print(writer, fp8r_rule_child(writer->rule, node), is_c ? ATOM : SIGNED,
                     is_wide); /* C has a -- */
    } else {
        operation_print(writer, node);
    }
    if (is_grouped) put(writer, ")");
}

/* Python: the chain. C: its comparisons one by one, joined by &&. */
static void chain_print(struct writer *writer, const struct fp8r_rule_node *node)
{
    const struct fp8r_rule_node *left = fp8r_rule_child(writer->rule, node), *right;
    number_print(writer, left, SUM, false);
    for (bool is_first = true; (right = fp8r_rule_sibling(writer->rule, left)) != NULL; left = right) {
        if (!is_first && writer->dialect == FP8R_RULE_C) {
            put(writer, " && ");
            number_print(writer, left, SUM, false);
        }
        put(writer, " %s ", fp8r_rule_relation_text(right->relation));
        number_print(writer, right, SUM, false);
        is_first = false;
    }
}

static int truth_level(const struct writer *writer, const struct fp8r_rule_node *node)
{
    const struct fp8r_rule *rule = writer->rule;
    if (writer->dialect == FP8R_RULE_PYTHON) return levels[node->kind];
    if (node->kind == FP8R_RULE_NOT) return SIGNED;
    if (node->kind != FP8R_RULE_COMPARE) return levels[node->kind];
    bool is_pair = fp8r_rule_sibling(rule, fp8r_rule_sibling(rule, fp8r_rule_child(rule, node))) == NULL;
    return is_pair ? COMPARE : AND;
}

/* `and` inside `or` needs no parentheses, but people and C compilers want them. In a rule of no more than
 * half the height that text may nest they never nest too deeply to be read back. */
static int and_in_or_level(const struct writer *writer)
{
    bool is_flat = writer->rule->nodes[writer->rule->root].height <= FP8R_RULE_NESTING_MAX / 2;
    return writer->dialect == FP8R_RULE_C || is_flat ? NOT : AND;
}

static void list_print(struct writer *writer, const struct fp8r_rule_node *node)
{
    bool is_or = node->kind == FP8R_RULE_OR;
    bool is_c = writer->dialect == FP8R_RULE_C;
    const char *joint = is_c ? (is_or ? " || " : " && ") : (is_or ? " or " : " and ");
    int wanted = is_or ? and_in_or_level(writer) : is_c ? AND : NOT; /* && inside && needs nothing in C */
    const struct fp8r_rule_node *child = fp8r_rule_child(writer->rule, node);
    truth_print(writer, child, wanted);
    while ((child = fp8r_rule_sibling(writer->rule, child)) != NULL) {
        put(writer, "%s", joint);
        truth_print(writer, child, wanted);
    }
}

static void truth_print(struct writer *writer, const struct fp8r_rule_node *node, int wanted)
{
    bool is_c = writer->dialect == FP8R_RULE_C;
    bool is_grouped = truth_level(writer, node) < wanted;
    if (is_grouped) put(writer, "(");
    if (node->kind == FP8R_RULE_TRUTH) {
        put(writer, "%s", node->value != 0 ? (is_c ? "true" : "True") : (is_c ? "false" : "False"));
    } else if (node->kind == FP8R_RULE_COMPARE) {
        chain_print(writer, node);
    } else if (node->kind == FP8R_RULE_NOT) {
        put(writer, is_c ? "!" : "not ");
        truth_print(writer, fp8r_rule_child(writer->rule, node), is_c ? SIGNED : NOT);
    } else {
        list_print(writer, node);
    }
    if (is_grouped) put(writer, ")");
}

size_t fp8r_rule_print(const struct fp8r_rule *rule, enum fp8r_rule_dialect dialect, char *text, size_t size)
{
    struct writer writer = {.rule = rule, .dialect = dialect, .text = text, .size = size};
    if (size > 0) text[0] = '\0';
    truth_print(&writer, &rule->nodes[rule->root], OR);
    return writer.length;
}

/* Names the rule does not read; C compilers ask to be told. */
static void unused_print(struct writer *writer)
{
    for (int64_t i = 0; i < 4; i++) {
        bool is_used = false;
        for (uint32_t j = 0; j < writer->rule->count && !is_used; j++)
            is_used = writer->rule->nodes[j].kind == FP8R_RULE_NAME && writer->rule->nodes[j].value == i;
        if (!is_used) put(writer, "    (void)%c;\n", "mnkb"[i]);
    }
}

size_t fp8r_rule_print_function(const struct fp8r_rule *rule, enum fp8r_rule_dialect dialect,
                                const char *name, char *text, size_t size)
{
    struct writer writer = {.rule = rule, .dialect = dialect, .text = text, .size = size};
    bool is_c = dialect == FP8R_RULE_C;
    if (size > 0) text[0] = '\0';
    put(&writer,
        is_c ? "bool %s(int64_t m, int64_t n, int64_t k, int64_t b)\n{\n" : "def %s(m, n, k, b=1):\n", name);
    if (is_c) unused_print(&writer);
    put(&writer, "    return ");
    truth_print(&writer, &rule->nodes[rule->root], OR);
    put(&writer, is_c ? ";\n}\n" : "\n");
    return writer.length;
}

const char *fp8r_rule_c_helpers(const struct fp8r_rule *rule)
{
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct fp8r_rule_node *node = &rule->nodes[i];
        bool is_division = node->kind == FP8R_RULE_DIVIDE || node->kind == FP8R_RULE_REMAINDER;
        if (is_division && !is_natural(rule, node))
            return "static inline int64_t fp8r_floor_div(int64_t a, int64_t b)\n"
                   "{\n"
                   "    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));\n"
                   "}\n"
                   "\n"
                   "static inline int64_t fp8r_floor_mod(int64_t a, int64_t b)\n"
                   "{\n"
                   "    return a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);\n"
                   "}\n";
    }
    return NULL;
}
