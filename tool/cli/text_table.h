/* A table of text with aligned columns. Knows nothing of what it shows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEXT_TABLE_H
#define FP8R_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/terminal.h"
#include "tool_error.h"

enum { FP8R_TEXT_COLUMNS_MAX = 12 };

struct fp8r_text_cell {
    char *text; /* owned */
    enum fp8r_style style;
};

struct fp8r_text_table {
    size_t columns;
    const char
        *headings[FP8R_TEXT_COLUMNS_MAX]; /* one that begins with '>' is of a column aligned to the right */
    struct fp8r_text_cell *cells;         /* row after row */
    size_t count, capacity;
    bool is_short; /* a cell found no memory */
};

/* headings: literals, one a column. */
void fp8r_text_table_init(struct fp8r_text_table *table, const char *const *headings, size_t columns);

/* The next cell, row by row. Control characters become '?'. */
__attribute__((format(printf, 3, 4))) void
fp8r_text_table_add(struct fp8r_text_table *table, enum fp8r_style style, const char *format, ...);

/* Prints and empties it. Exit code: INTERNAL where a cell found no memory. */
int fp8r_text_table_print(struct fp8r_text_table *table, FILE *stream, struct fp8r_tool_error *error);

#endif
