/* Rules as people write them: `m >= 8192 and ((k >= 4096 and n >= 6144) or (k >= 7168 and n >= 5376))`.
 * Parsed once, evaluated on any shape, printed as Python and as C. Knows nothing of backends or measurements.
 *
 * Grammar, loosest first; a chain of comparisons means what it means in Python:
 *   rule   = both { ("or" | "||") both }              both    = denied { ("and" | "&&") denied }
 *   denied = "not" denied | compared                  compared = sum { ("<"|"<="|">"|">="|"=="|"!=") sum }
 *   sum    = term { ("+" | "-") term }                term    = signed { ("*" | "//" | "%") signed }
 *   signed = "-" signed | "!" signed | number | "m" | "n" | "k" | "b" | "True" | "False" | "(" rule ")"
 * Numbers are whole, decimal, 64 bits; // rounds down and % has the sign of its right side. As in C, `!`
 * binds tighter than a comparison and so takes one in parentheses. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_RULE_H
#define FP8R_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool_error.h"

#define FP8R_RULE_TEXT_MAX    65535 /* bytes */
#define FP8R_RULE_NESTING_MAX 64    /* parentheses, not, ! and signs inside each other */
#define FP8R_RULE_HEIGHT_MAX  256   /* of the tree: sums and products of more parts are no rules */

struct fp8r_rule;

/* A problem as a rule sees it: [b,m,k] times [b,k,n]. */
struct fp8r_rule_point {
    int64_t m, n, k, b;
};

enum fp8r_rule_dialect {
    FP8R_RULE_PYTHON, /* also the rule grammar: what is printed reads back as the same rule */
    FP8R_RULE_C /* over int64_t m, n, k, b; needs <stdbool.h>, <stdint.h>, and fp8r_rule_c_helpers where it
                   divides what may be negative */
};

/* FP8R_EXIT_USAGE with the place and what was expected there, FP8R_EXIT_INTERNAL without memory. *rule is
 * written on success only, and destroyed by the caller. */
int fp8r_rule_parse(const char *text, struct fp8r_rule **rule, struct fp8r_tool_error *error);

void fp8r_rule_destroy(struct fp8r_rule *rule);

/* Does the rule hold? and/or stop at the first part that decides. FP8R_EXIT_USAGE for a division by zero and
 * for a value beyond 64 bits, with the place in the rule and the point. */
int fp8r_rule_eval(const struct fp8r_rule *rule, const struct fp8r_rule_point *point, bool *holds,
                   struct fp8r_tool_error *error);

/* The same tree: spelling, spaces and needless parentheses aside. */
bool fp8r_rule_equal(const struct fp8r_rule *a, const struct fp8r_rule *b);

/* Writes at most size bytes, NUL included (none where size is 0); returns the length of the whole text
 * without it. */
size_t fp8r_rule_print(const struct fp8r_rule *rule, enum fp8r_rule_dialect dialect, char *text, size_t size);

/* A whole function: `bool NAME(int64_t m, int64_t n, int64_t k, int64_t b)`, or `def NAME(m, n, k, b=1):`. */
size_t fp8r_rule_print_function(const struct fp8r_rule *rule, enum fp8r_rule_dialect dialect,
                                const char *name, char *text, size_t size);

/* Definitions of fp8r_floor_div and fp8r_floor_mod in C; NULL where the rule's C needs none. */
const char *fp8r_rule_c_helpers(const struct fp8r_rule *rule);

/* Where a rule's answer changes along m. */
struct fp8r_rule_borders {
    bool holds_first; /* the answer at the lowest m */
    int64_t *items;   /* ascending; the answer at an item differs from the one at the m before it */
    size_t count;
};

/* The borders over m_low..m_high, n, k and b fixed at point's (its m is not read). Each comparison whose two
 * sides rise or fall with m is bisected; a rule with others (m % 64 == 0) is asked at every m,
 * FP8R_EXIT_USAGE if these are more than 2^20. Evaluation errors as in fp8r_rule_eval, where they are met. */
int fp8r_rule_borders_find(const struct fp8r_rule *rule, const struct fp8r_rule_point *point, int64_t m_low,
                           int64_t m_high, struct fp8r_rule_borders *borders, struct fp8r_tool_error *error);

void fp8r_rule_borders_fini(struct fp8r_rule_borders *borders);

#endif
