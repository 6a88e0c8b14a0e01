/* Measures what an audit asks: the pick of each problem against everybody else, until the answer is known.
 * Resumable: looks at what the record holds, and adds samples of phase `audit`. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef FP8R_AUDIT_MEASURE_H
#define FP8R_AUDIT_MEASURE_H

#include "tune/audit.h"
#include "tune/quick.h"
#include "tune/record.h"

/* Writes the whole label of what a backend's name stands for on this problem, or why it cannot run it. A
 * question whose pick is whole already is only asked whether it can run. Exit codes: USAGE for a backend or a
 * configuration that there is not, INTERNAL. */
int fp8r_audit_resolve(fp8r_context *context, struct fp8r_audit_question *question,
                       struct fp8r_tool_error *error);

struct fp8r_audit_live {
    fp8r_context *context; /* without routes */
    const struct fp8r_measure_device *device;
    struct record *record;
    struct fp8r_audit_rules rules; /* phase SAMPLE_AUDIT */
    uint64_t seed;
    bool is_warm;          /* operands stay in the caches */
    double budget_seconds; /* no further problem is begun behind this; 0 = no limit */
    void (*progress)(void *user, const struct fp8r_progress *progress);
    void (*note)(void *user, const char *line);
    void *user;
    size_t measured, left; /* problems: by this call, not begun */
};

/* The questions of a family next to each other. Exit codes: INTERRUPTED (what was measured is in the record),
 * UNMEASURED, INTERNAL. Reaching the budget is GOOD, with `left` saying how much. */
int fp8r_audit_measure(struct fp8r_audit_live *live, const struct fp8r_audit_questions *questions,
                       struct fp8r_tool_error *error);

#endif
