/* Reading the lines of a route file: words, quoted texts, and fields "name=value", each value checked by its kind.
 * Knows how a line is put together, not which lines there are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_ROUTE_LINE_H
#define FP8R_ROUTE_ROUTE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { FP8R_WORD_BYTES = 264 }; /* the longest word or value, its zero included */

struct fp8r_lines {
    const char *name; /* of the file, for messages */
    const char *at, *end; /* what is left of this line */
    const char *next, *limit; /* the lines behind it */
    int number; /* of this line */
};

void fp8r_lines_init(struct fp8r_lines *lines, const char *name, const char *text, size_t size);

/* FORMAT, with file and line number in front. */
fp8r_status fp8r_lines_fail(const struct fp8r_lines *lines, const char *format, ...) FP8R_PRINTF(2, 3);

/* Steps to the next line that is neither blank nor a comment; *found is false at the end. Errors: a line without its
 * newline (the file was cut), a control character. */
fp8r_status fp8r_lines_next(struct fp8r_lines *lines, bool *found);

/* Is the rest of the line blank? */
bool fp8r_line_is_done(struct fp8r_lines *lines);

/* The next word, up to a space; `expected` says in a failure's message what belongs here. */
fp8r_status fp8r_line_word(struct fp8r_lines *lines, const char *expected, char word[FP8R_WORD_BYTES]);

/* The next text in double quotes, printable ASCII in which \" and \\ stand for " and \. */
fp8r_status fp8r_line_quoted(struct fp8r_lines *lines, const char *expected, char text[FP8R_WORD_BYTES]);

/* How a field's value is read: NULL when it was understood, otherwise what it should have been. */
typedef const char *(*fp8r_value_reader)(const char *value, void *to);

struct fp8r_field {
    const char *name;
    fp8r_value_reader read;
    void *to;
    bool is_optional;
    bool is_given; /* set by fp8r_line_fields */
};

/* Reads the rest of the line as fields in any order: each at most once, and those that are not optional. */
fp8r_status fp8r_line_fields(struct fp8r_lines *lines, struct fp8r_field *fields, size_t count);

/* Kinds of values. Numbers are decimal, without sign or exponent, whatever the locale. */
const char *fp8r_value_count(const char *value, void *int64);        /* a whole number >= 0 */
const char *fp8r_value_positive(const char *value, void *int64);     /* a whole number >= 1 */
const char *fp8r_value_small(const char *value, void *int32);        /* a whole number from 1 to 2^31 - 1 */
const char *fp8r_value_real(const char *value, void *real);          /* > 0 */
const char *fp8r_value_rows(const char *value, void *two_int64);     /* FIRST..LAST, 1 <= FIRST <= LAST */
const char *fp8r_value_numbers(const char *value, int64_t *numbers, int most, int *count); /* ascending, >= 1: 1,2,4 */
const char *fp8r_value_interval(const char *value, void *two_reals); /* LOW..HIGH, 0 < LOW <= HIGH */

/* A name of backends, configurations and facts: 1 to FP8R_NAME_BYTES - 1 letters, digits and "_.=-". */
const char *fp8r_value_name(const char *value, void *name);

#endif
