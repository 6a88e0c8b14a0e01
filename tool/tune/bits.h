/* Two results of one product, bit by bit: equal, or how many elements differ, which is the first and by how
 * much. Pure. SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_BITS_H
#define TOOL_TUNE_BITS_H

#include <stdbool.h>

#include "measure/verify.h"

enum { BITS_NO_ULP = -1 }; /* a NaN beside a number, or an element that was not written */

struct bits_difference {
    int64_t compared, different; /* elements */
    struct fp8r_place first;     /* of those that differ, in the order of batch, row and column */
    double a, b;                 /* its values */
    int64_t first_ulp,
        most_ulp; /* values of the type from one to the other; BITS_NO_ULP where that cannot be counted */
};

/* Compares two arrays laid out as `out`, of which FP8R_POISON was written before, and adds to what earlier
 * results gave. Two NaN are equal whatever their payload; an element that nobody wrote differs. */
void bits_compare(const fp8r_matrix *out, const void *a, const void *b, struct bits_difference *difference);

#endif
