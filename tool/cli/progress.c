/* Printing progress.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <math.h>
#include <stdio.h>

#include "cli/terminal.h"
#include "measure/clock.h"

enum { LINE_NS = 1000000000 };

void fp8r_progress_show(struct fp8r_progress_line *line, const char *what, double share, double left_seconds)
{
    int64_t now = fp8r_clock_ns();
    char left[48] = "";
    int percent = (int)(100 * fmin(fmax(share, 0), 1));
    if (percent < line->percent) percent = line->percent; /* what is measured again does not undo the rest */
    line->percent = percent;
    if (left_seconds > 0) snprintf(left, sizeof left, "  about %.0f s left", ceil(left_seconds));
    if (fp8r_is_terminal(stderr)) {
        fprintf(stderr, "\r\033[K%3d %%  %s%s", percent, what, left);
    } else if (line->last_ns == 0 || now - line->last_ns >= LINE_NS) {
        fprintf(stderr, "%3d %%  %s%s\n", percent, what, left);
        line->last_ns = now;
    }
}

void fp8r_progress_end(void)
{
    if (fp8r_is_terminal(stderr)) fputs("\r\033[K", stderr);
}

void fp8r_progress_note(const char *text)
{
    fp8r_progress_end();
    fprintf(stderr, "%s\n", text);
}

void fp8r_progress_take_note(void *user, const char *text)
{
    (void)user;
    fp8r_progress_note(text);
}
