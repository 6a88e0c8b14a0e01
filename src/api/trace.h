/* FP8ROUTE_TRACE: which problems a process meets and how often, as JSON lines appended to a file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_API_TRACE_H
#define FP8R_API_TRACE_H

#include <stdbool.h>

#include <fp8route/backend.h>

struct fp8r_trace;

/* Opens the file for appending. Errors: IO, OUT_OF_MEMORY. */
fp8r_status fp8r_trace_create(const char *path, struct fp8r_trace **trace);

/* Counts a call. A problem's line is written when its count reaches 1, 2, 4, 8 and so on, so that a process that dies
 * leaves a count that is right within a factor of 2 and a busy one leaves few lines. Any thread. */
void fp8r_trace_count(struct fp8r_trace *trace, const fp8r_problem *problem, bool is_captured);

/* Writes the exact counts that no line holds yet, and closes. NULL is fine. */
void fp8r_trace_destroy(struct fp8r_trace *trace);

#endif
