/* Where, between two neighbouring M that were measured, what holds at the smaller one ends. Pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BORDER_H
#define FP8R_BORDER_H

#include <stdbool.h>
#include <stdint.h>

struct fp8r_border {
    int64_t m, m_next;
    bool stays;           /* the default is chosen at both */
    int64_t default_last; /* the default is m's up to here, and then another; 0: it is the same at m_next, or unknown */
    bool has_steps;       /* of a GPU, whose kernels work in whole tiles */
};

/* The last m of the first: the geometric mean of the two, rounded down; between two defaults as far as the first one's goes, where
 * that is farther. Where it ends earlier nobody knows which default follows: a third one may lie in between. With steps always
 * m itself: a row more may cost a choice, also one that is the default, a tile more, while the next one is as fast with
 * fewer rows. */
int64_t fp8r_border_place(const struct fp8r_border *border);

#endif
