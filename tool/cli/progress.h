/* How far a long verb has come, on standard error: one line that replaces itself on a terminal, a line now
 * and then elsewhere. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROGRESS_H
#define FP8R_PROGRESS_H

#include <stdint.h>

struct fp8r_progress_line {
    int64_t last_ns; /* when the last plain line was printed; 0 = never */
    int percent;     /* as shown: it never goes back */
};

/* share: 0 to 1; left_seconds: about, 0 or less where nothing is known of it. */
void fp8r_progress_show(struct fp8r_progress_line *line, const char *what, double share, double left_seconds);

/* A line of its own, which stays. */
void fp8r_progress_note(const char *text);

/* The same, for whoever hands its lines to a function with a user of its own, of which nothing is needed here. */
void fp8r_progress_take_note(void *user, const char *text);

/* Takes the replaced line away. */
void fp8r_progress_end(void);

#endif
