/* Problem text as the library sees it: parsed, validated, normalised.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_PROBLEM_OF_H
#define FP8R_TESTS_SUPPORT_PROBLEM_OF_H

#include "problem/problem.h"

/* Fails the running test, with the library's own words, where the text is not a valid problem. */
fp8r_problem problem_of(const char *text);

#endif
