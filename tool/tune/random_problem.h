/* Problems that nobody chose: drawn at random, the way real layers are distributed, the same for the same
 * seed. For asking how a choice does where nothing was measured. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_RANDOM_PROBLEMS_H
#define FP8R_RANDOM_PROBLEMS_H

#include <fp8route/fp8route.h>

#include "measure/random.h"

/* N and K log-uniform, 70 % of the problems with both a multiple of 128, 20 % of 16, 10 % ragged; M
 * log-uniform from 1. What is too long or too large for the device is drawn again. */
struct fp8r_random_problems {
    struct fp8r_random random;
    int64_t size_low, size_high; /* of N and K */
    int64_t m_high;
    double operations_max; /* 2 M N K */
    double weight_bytes_max;
    int64_t again; /* drawn again so far */
};

/* kind: FP8R_DEVICE_*. A CPU gets sizes to 8192 instead of 32768 and M to 512 instead of 16384, at most 2e10
 * operations; weights take at most a sixteenth of available_bytes on either. */
void fp8r_random_problems_init(struct fp8r_random_problems *problems, int32_t kind, int64_t available_bytes,
                               uint64_t seed);

struct fp8r_random_problem {
    int64_t m, n, k;
};
struct fp8r_random_problem fp8r_random_problems_next(struct fp8r_random_problems *problems);

/* The distribution in words, with its limits. */
enum { FP8R_RANDOM_PROBLEMS_BYTES = 256 };
void fp8r_random_problems_describe(const struct fp8r_random_problems *problems,
                                   char text[FP8R_RANDOM_PROBLEMS_BYTES]);

#endif
