/* A growing text of HTML and SVG. Out of memory is remembered and asked for once, at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_MARKUP_H
#define TOOL_REPORT_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

struct markup {
    char *text; /* owned */
    size_t used, size;
    bool failed;
};

void markup_fini(struct markup *markup);

/* Adds formatted markup as it is: format and arguments are the program's own. */
__attribute__((format(printf, 2, 3))) void markup_add(struct markup *markup, const char *format, ...);

/* Adds text that came from outside, with &, <, > and quotes made harmless. */
void markup_add_text(struct markup *markup, const char *text);

/* A time as people read it: "812 ns", "12.3 us", "4.56 ms", "1.2 s". */
void markup_time(double us, char *text, size_t size);

/* Colours of series, by index, repeated after the last: classes c0, c1, ... of the page's style. */
enum { MARKUP_COLOURS = 10 };

#endif
