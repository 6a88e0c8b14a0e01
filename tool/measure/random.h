/* Pseudo-random numbers that are the same everywhere for the same seed (SplitMix64, by its published
 * constants). For data and orders, not for secrets. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_RANDOM_H
#define FP8R_RANDOM_H

#include <stdint.h>

struct fp8r_random {
    uint64_t state; /* the seed; any value */
};

static inline uint64_t fp8r_random_next(struct fp8r_random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* As if that many had been drawn. */
static inline void fp8r_random_skip(struct fp8r_random *random, uint64_t count)
{
    random->state += count * 0x9E3779B97F4A7C15u;
}

/* 0 <= result < 1. */
static inline double fp8r_random_unit(struct fp8r_random *random)
{
    return (double)(fp8r_random_next(random) >> 11) * 0x1p-53;
}

/* 0 <= result < count, count >= 1. The bias of the remainder is below count / 2^64. */
static inline int64_t fp8r_random_below(struct fp8r_random *random, int64_t count)
{
    return (int64_t)(fp8r_random_next(random) % (uint64_t)count);
}

#endif
