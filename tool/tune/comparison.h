/* Two candidates of a case held against each other: which of their pairs count, and what they say.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_COMPARISON_H
#define FP8R_COMPARISON_H

#include <stdbool.h>

#include "measure/sequential.h"
#include "tune/samples.h"

/* Room for the largest number of samples of any candidate, reused from case to case. */
struct comparison_scratch {
    double *a, *b, *ratios;
    struct fp8r_pair *pairs;
    size_t capacity;
};

bool comparison_scratch_init(const struct samples *samples, struct comparison_scratch *scratch);
void comparison_scratch_fini(struct comparison_scratch *scratch);

/* Pairs that confirm: the tuner's own, but not where nothing held still, or gates', which are taken in the same way. 0: there
 * are none. */
size_t comparison_confirming_pairs(const struct sample_case *it, int base, int other, struct comparison_scratch *scratch);

/* Other against base by the full protocol, one of `comparisons` that share the error. A gate came later, with another
 * process's memory: where gates' pairs settle the question, they do; those of several gates are judged as a whole. Errors:
 * BAD_DATA. */
int comparison_full(const struct sample_case *it, int base, int other, double margin, int comparisons,
                    struct comparison_scratch *scratch, struct fp8r_paired_result *result, struct fp8r_tool_error *error);

/* By the quick one: the grid's pairs, one interval. */
void comparison_quick(const struct sample_case *it, int base, int other, double margin, struct comparison_scratch *scratch,
                      struct fp8r_paired_result *result);

#endif
