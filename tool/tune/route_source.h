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
    int kind;
    const char *beyond; /* the backend that also serves rows above all measured ones; NULL where that is not known */
};

/* Families that differ in their sizes alone. A key also holds an alignment: the least of `align` and of the pitches, each
 * so many bytes times its extent (0: no packed operand has such a pitch). */
struct fp8r_export_kind {
    const char *options;
    int m_bytes, n_bytes, k_bytes, align;
    int one_row; /* the kind that products of a single row belong to: their order of memory does not show; -1 = no such */
};

struct fp8r_export {
    const struct fp8r_route_file *file;
    const char *function;
    struct fp8r_export_family *all, **families; /* families: by kind, batch, N and K */
    size_t count;
    struct fp8r_export_kind *kinds; /* by first appearance; no two of equal options */
    int kind_count;
};

/* Prints text in which $ stands for the function's name. */
void fp8r_export_print(const struct fp8r_export *source, FILE *stream, const char *text);

/* What is at the head of both: a line of text a line, each behind the prefix. */
void fp8r_export_print_head(const struct fp8r_export *source, FILE *stream, const char *prefix);

void fp8r_export_print_c(const struct fp8r_export *source, FILE *stream);
void fp8r_export_print_python(const struct fp8r_export *source, FILE *stream);

#endif
