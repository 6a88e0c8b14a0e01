/* Random values for operands: codes spread over the whole range of their type as quantised normal data is,
 * scales and biases as real layers have them. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FILL_H
#define FP8R_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

/* Writes every element of every input of the product, and nothing between them. Each scale is another number.
 * The same seed gives the same values. False when out of memory. */
bool fp8r_fill_matmul(const fp8r_matmul *matmul, uint64_t seed);

/* One matrix of the types above: activations or weights. */
bool fp8r_fill_matrix(const fp8r_matrix *matrix, uint64_t seed);

#endif
