/* The text of problems and of families, the same everywhere (docs/grammar.md).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROBLEM_GRAMMAR_H
#define FP8R_PROBLEM_GRAMMAR_H

#include "problem/key.h"
#include "problem/problem.h"

enum { FP8R_TEXT_BYTES = 256 }; /* enough for any problem or family */

/* Writes a problem; pointers lend their alignment. FORMAT is never the answer: every problem has a text. */
fp8r_status fp8r_problem_format(const fp8r_problem *problem, char *text, size_t size);

/* A family is a problem with the letter M for its rows, and "pad" for a pitch or "any" for strides that only have to be
 * of their class: what a key holds. Formatting and parsing give the same key back. */
fp8r_status fp8r_family_format(const struct fp8r_key *key, char *text, size_t size);
fp8r_status fp8r_family_parse(const char *text, int mode, struct fp8r_key *key);

/* A member of a family with m rows, as a product without data (its pointers are its alignment). */
fp8r_status fp8r_family_member(const char *text, int64_t m, fp8r_matmul *matmul);

#endif
