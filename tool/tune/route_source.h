/* A route file as source text: a function in C or Python that takes the decisions of the file without the library. What
 * the file alone cannot decide it does not answer (docs/routes.md says which is which).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_SOURCE_H
#define FP8R_ROUTE_SOURCE_H

#include <stdio.h>

#include "route/route_file.h"
#include "tool_error.h"

enum fp8r_language { FP8R_LANGUAGE_C, FP8R_LANGUAGE_PYTHON };

/* "c" or "python". Exit codes: USAGE. */
int fp8r_language_parse(const char *text, enum fp8r_language *language, struct fp8r_tool_error *error);

enum { FP8R_FUNCTION_BYTES = 64 };

/* A new text (free it). function: an identifier of both languages. Exit codes: USAGE (no such identifier), UNMEASURED (a
 * file without entries), INTERNAL. */
int fp8r_route_source(const struct fp8r_route_file *file, enum fp8r_language language, const char *function,
                      char **text, struct fp8r_tool_error *error);

/* ---- Between the files of this part ---- */

struct fp8r_export_family {
    const struct fp8r_entry *entry;
    char text[FP8R_FAMILY_BYTES];
    const char *options; /* in the text, behind its sizes: "" or ":fp16:tensor" */
    int layout;
    const char *beyond; /* the backend that also serves rows above all measured ones; NULL where that is not known */
};

/* What families have in common that differ in sizes and alignment alone: their options, the alignment left out, and their
 * pitches, each so many bytes times its extent (0: no packed operand has such a pitch). */
struct fp8r_export_layout {
    char options[FP8R_FAMILY_BYTES];
    int m_bytes, n_bytes, k_bytes;
};

/* Options as they are written. */
struct fp8r_export_kind {
    const char *options;
    int align;           /* the most that counts: 16, or what the options say */
    int layout, one_row; /* one_row: of products of a single row, whose order of memory does not show; -1 = none such */
};

struct fp8r_export {
    const struct fp8r_route_file *file;
    const char *function;
    struct fp8r_export_family *all, **families; /* families: by layout, alignment, batch, N and K */
    size_t count;
    struct fp8r_export_layout *layouts; /* by first appearance, like kinds; no two of equal options */
    struct fp8r_export_kind *kinds;
    int layout_count, kind_count;
};

/* Prints text in which $ stands for the function's name. */
void fp8r_export_print(const struct fp8r_export *source, FILE *stream, const char *text);

/* What is at the head of both: a line of text a line, each behind the prefix. */
void fp8r_export_print_head(const struct fp8r_export *source, FILE *stream, const char *prefix);

void fp8r_export_print_c(const struct fp8r_export *source, FILE *stream);
void fp8r_export_print_python(const struct fp8r_export *source, FILE *stream);

#endif
