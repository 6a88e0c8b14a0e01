/* The shortest rule for a choice of two, learned from measured problems: boxes over m, n and k, each a
 * conjunction of bounds taken from the problems measured, within a bound on what is lost against the better
 * one everywhere. Knows problems and their two times, nothing of backends. Deterministic: the order of the
 * cases does not matter. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FIT_H
#define FP8R_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule/rule.h"
#include "tool_error.h"

#define FP8R_FIT_BOXES_MAX   8
#define FP8R_FIT_DEVICES_MAX 16
#define FP8R_FIT_TEXT_MAX    4096 /* bytes, NUL included: no fit's text is longer */

/* One problem on one device. A problem measured on several devices is several cases; devices are never
 * pooled. */
struct fp8r_fit_case {
    int64_t m, n, k;         /* >= 1 */
    int device;              /* from 0, below FP8R_FIT_DEVICES_MAX */
    double weight;           /* how often it occurs; >= 0 */
    double then_us, else_us; /* where the rule holds, and where it does not; > 0 */
};

struct fp8r_fit_options {
    double regret_max; /* 0.01: at most 1 % may be lost, as struct fp8r_fit_regret counts it */
    int boxes_max;     /* 1..FP8R_FIT_BOXES_MAX */
};

/* Both ends belong to it; 1 and INT64_MAX: no bound. Axes in the order m, n, k. */
struct fp8r_fit_box {
    int64_t low[3], high[3];
};

/* What a choice loses: time / better time - 1, weighted mean over a device's problems. */
struct fp8r_fit_regret {
    double device[FP8R_FIT_DEVICES_MAX];
    double worst;        /* the largest of them: what is minimised */
    double worst_single; /* of one problem */
};

struct fp8r_fit {
    struct fp8r_fit_box boxes[FP8R_FIT_BOXES_MAX];
    int box_count;       /* 0: the rule never holds */
    int condition_count; /* bounds in its text; == has two */
    int device_count;    /* highest device seen, and one */
    bool is_within;      /* the regret is at most regret_max; otherwise no rule so short does better */
    struct fp8r_fit_regret regret;   /* on the cases it was learned from */
    struct fp8r_fit_regret held_out; /* each family (n, k) under the rule learned without it; see folds */
    struct fp8r_fit_regret always, never; /* of the two rules that need no conditions */
    int folds; /* parts that were held out in turn: families, or, where there are more than
                  24, groups of them; 0: a single family, held_out is empty */
};

/* FP8R_EXIT_USAGE for options out of range, FP8R_EXIT_BAD_DATA for cases out of range or none at all,
 * FP8R_EXIT_INTERNAL without memory. *fit is written on success only. */
int fp8r_fit_find(const struct fp8r_fit_case *cases, size_t count, const struct fp8r_fit_options *options,
                  struct fp8r_fit *fit, struct fp8r_tool_error *error);

bool fp8r_fit_holds(const struct fp8r_fit *fit, int64_t m, int64_t n, int64_t k);

/* As a rule's text, what the boxes have in common first. Returns its length. */
size_t fp8r_fit_text(const struct fp8r_fit *fit, char text[FP8R_FIT_TEXT_MAX]);

/* As a rule, to print as C and Python; the caller destroys it. */
int fp8r_fit_rule(const struct fp8r_fit *fit, struct fp8r_rule **rule, struct fp8r_tool_error *error);

#endif
