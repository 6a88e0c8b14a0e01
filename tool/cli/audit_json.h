/* What an audit found, for programs. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_AUDIT_JSON_H
#define FP8R_AUDIT_JSON_H

#include "cli/audit.h"

/* Exit codes: INTERNAL; USAGE where the rule has no value along M. */
int fp8r_audit_print_json(const struct audit_findings *findings, struct fp8r_tool_error *error);

#endif
