/* Everything that can be raced on a context: each configuration of each backend that fits its device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ENTRANTS_H
#define FP8R_ENTRANTS_H

#include <fp8route/fp8route.h>

#include "tool_error.h"
#include "tune/points.h"

/* A new array (free it), in the order of defaults. Exit codes: UNMEASURED where nothing fits, INTERNAL. */
int fp8r_entrants_list(const fp8r_context *context, struct fp8r_entrant **entrants, int *count,
                       struct fp8r_tool_error *error);

/* Index of the entrant that an untuned machine would use for the problem: the default, in its own pick. -1 where none can
 * run it. The context must have no routes, and an environment that was cleared (below). */
int fp8r_entrants_fallback(fp8r_context *context, const fp8r_matmul *matmul,
                           const struct fp8r_entrant *entrants, int count, int *fallback,
                           struct fp8r_tool_error *error);

/* The last m, from this one up to four times it, before the default of the family is another than that entrant for the first
 * time: defaults may come back. Asked row by row, from 512 rows on in steps of a 512th. Exit codes: INTERNAL. */
int fp8r_entrants_fallback_last(fp8r_context *context, const char *family, int64_t m,
                                const struct fp8r_entrant *entrants, int count, int fallback, int64_t *last,
                                struct fp8r_tool_error *error);

/* Takes away what would keep an untuned machine's own choice from being seen: FP8ROUTE_BACKEND and
 * FP8ROUTE_UNROUTED. To be called before the context is made; says which were set in `text` ("" for none). */
void fp8r_entrants_clear_environment(char *text, size_t size);

#endif
