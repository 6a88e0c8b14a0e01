/* Where a context's lines go: the user's callback, or standard error when FP8ROUTE_VERBOSE asks, or nowhere.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_LOG_H
#define FP8R_BASE_LOG_H

#include <stdbool.h>

#include "base/compiler.h"

struct fp8r_log {
    void (*callback)(void *user, int level, const char *line); /* NULL = standard error */
    void *user;
    int verbose;      /* FP8ROUTE_VERBOSE */
    bool is_asked_for; /* some FP8ROUTE_* variable is set: its warnings may go to standard error */
};

/* One line, without its newline. Any thread. */
void fp8r_log_line(const struct fp8r_log *log, int level, const char *format, ...) FP8R_PRINTF(3, 4);

/* Replaces control characters: what a variable or a file holds cannot end the line or drive a terminal. */
void fp8r_line_clean(char *line);

#endif
