/* What an audit found, on one machine or several, on its way to the reader.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CLI_AUDIT_H
#define FP8R_CLI_AUDIT_H

#include "cli/verb.h"
#include "tune/audit.h"
#include "tune/picker.h"

/* One machine's part: never pooled with another's. */
struct audit_part {
    const struct fp8r_route_file *machine; /* borrowed from the samples */
    struct fp8r_audit_questions questions;
    struct fp8r_audit audit;
};

struct audit_findings {
    const struct fp8r_picker *picker;
    const char *rule, *picks; /* one of them as it was given */
    const char *folder;       /* of the samples that were added to; NULL where nothing was measured */
    const char *distribution; /* of the random problems; NULL without any */
    int64_t random, seed;
    double margin;
    bool is_only;
    size_t measured, left; /* problems: now, and not begun when the budget was used up */
    struct audit_part *parts;
    size_t count;
    int exit_code;
};

/* Exit codes: INTERNAL. */
int fp8r_audit_print(const struct audit_findings *findings, bool json, struct fp8r_tool_error *error);

#endif
