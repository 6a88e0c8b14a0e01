/* The machine as route files know it: what their times are tied to, and where this user keeps them. Made from
 * what a context says in public. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_MACHINE_H
#define FP8R_MACHINE_H

#include <fp8route/fp8route.h>

#include "route/route_file.h"
#include "tool_error.h"

/* Exit codes: INTERNAL when memory runs out. */
int fp8r_machine_identity(const fp8r_context *context, struct fp8r_identity *identity,
                          struct fp8r_tool_error *error);

/* The identity in one line: "features=avx2+fma threads=8 llc_bytes=33554432". */
enum { FP8R_MACHINE_TEXT_BYTES = FP8R_IDENTITY_BYTES };
int fp8r_machine_text(const fp8r_context *context, char text[FP8R_MACHINE_TEXT_BYTES],
                      struct fp8r_tool_error *error);

/* The user's route file for this machine; "" where the environment names no place, and then why it does not: "HOME is not
 * set". */
enum { FP8R_MACHINE_PATH_BYTES = 4096 };
void fp8r_machine_user_path(const fp8r_context *context, char path[FP8R_MACHINE_PATH_BYTES]);
const char *fp8r_machine_why_no_path(void);

/* Soft facts for a header: the device's name, the date, this version. And one more of any name. */
void fp8r_machine_facts(const fp8r_context *context, struct fp8r_route_file *file);
void fp8r_machine_fact(struct fp8r_route_file *file, const char *name, const char *value);

/* Are half of a sample's calls measured behind another kernel? In graphs: where calls are queued one by one, and on a CPU, the
 * kernel before hardly counts. */
bool fp8r_machine_is_behind_both(int mode);

/* The header of what is measured here, by the full protocol: identity and facts, and for a CPU's cold operands the speed
 * of memory, which takes a moment to measure. mode: FP8R_MODE_*. Exit codes: INTERNAL when memory runs out. */
int fp8r_machine_header(const fp8r_context *context, int mode, bool is_cold, struct fp8r_route_file *header,
                        struct fp8r_tool_error *error);

#endif
