/* A backend that takes every problem, on any device, and computes nothing: what is left is the cost of
 * getting there. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NULL_BACKEND_H
#define TESTS_NULL_BACKEND_H

#include <fp8route/backend.h>

/* Priority 99: first of all defaults. */
extern const fp8r_backend null_backend;

/* Operands of nowhere in particular for a problem without data: aligned, apart, never looked at. Sizes up to 1 MiB each. */
void null_operands(fp8r_matmul *matmul);

#endif
