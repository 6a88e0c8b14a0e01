/* An audit that measures: from the command line's words to the findings of this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_AUDIT_LIVE_H
#define FP8R_AUDIT_LIVE_H

#include "cli/audit.h"
#include "cli/session.h"
#include "cli/wanted_families.h"
#include "tune/machine.h"
#include "tune/random_problem.h"
#include "tune/record.h"

struct audit_arguments {
    struct fp8r_common common;
    const char *rule, *then_pick, *else_pick, *picks, *margin, *budget;
    struct fp8r_wanted_families wanted;
    struct fp8r_words samples;
    int64_t random, size_max, m_max, seed; /* 0: not given */
    bool is_only, is_offline, is_warm;
};

/* What must outlive the findings. */
struct audit_live_session {
    struct fp8r_session session;
    struct record record;
    bool is_recording;
    char folder[FP8R_MACHINE_PATH_BYTES], distribution[FP8R_RANDOM_PROBLEMS_BYTES];
};

/* Measures and judges. Zero-initialise the session; close it whatever came of it. Exit codes: INTERRUPTED,
 * UNMEASURED, USAGE, BAD_DATA, INTERNAL. */
int fp8r_audit_live_run(struct audit_live_session *session, const struct audit_arguments *arguments,
                        struct audit_findings *findings, struct fp8r_tool_error *error);
int fp8r_audit_live_close(struct audit_live_session *session, struct fp8r_tool_error *error);

#endif
