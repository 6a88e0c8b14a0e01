/* Rows of a and columns of b as plain numbers, and their products in double: what verification multiplies.
 * Decoded lines are kept while there is room. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_LINES_H
#define FP8R_LINES_H

#include <fp8route/fp8route.h>

#include "measure/verify.h"

struct fp8r_lines;

/* NULL when out of memory. The operands must live as long. */
struct fp8r_lines *fp8r_lines_create(const fp8r_matmul *matmul);
void fp8r_lines_destroy(struct fp8r_lines *lines);

/* Over the K terms of one element. */
struct fp8r_sums {
    double sum, magnitudes, squares; /* of P, |P| and P^2 */
    double row_scale;                /* of a row that is quantised on the way; 1 otherwise */
};

/* Fast for places that share a batch item and column with the one before. */
void fp8r_lines_multiply(struct fp8r_lines *lines, const struct fp8r_place *place, struct fp8r_sums *sums);

#endif
