/* What may be written to a stream beyond plain text: colour, and progress lines that replace each other. Only
 * on a terminal, and no colour under NO_COLOR. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TERMINAL_H
#define FP8R_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum fp8r_style {
    FP8R_STYLE_NONE, /* back to plain */
    FP8R_STYLE_BOLD,
    FP8R_STYLE_DIM,
    FP8R_STYLE_GOOD,
    FP8R_STYLE_BAD,
    FP8R_STYLE_COUNT
};

bool fp8r_is_terminal(FILE *stream);

/* A pipe whose reader has gone: `fp8route table show FILE | head`. */
bool fp8r_is_read_no_more(FILE *stream);

/* The sequence that switches to the style; "" where the stream must stay plain. */
const char *fp8r_style(FILE *stream, enum fp8r_style style);

#endif
