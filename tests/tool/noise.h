/* Noise for simulated measurements: a small seeded generator and the ways in which times scatter around a
 * truth. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEST_NOISE_H
#define FP8R_TEST_NOISE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct noise {
    uint64_t state;
};

/* Uniform in (0, 1); splitmix64. */
static inline double noise_uniform(struct noise *noise)
{
    uint64_t z = noise->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) * 0x1p-53;
}

static inline double noise_normal(struct noise *noise)
{
    double radius = sqrt(-2.0 * log(noise_uniform(noise)));
    return radius * cos(6.28318530717958647692 * noise_uniform(noise));
}

/* Student's t with few degrees of freedom, scale 1. */
static inline double noise_student(struct noise *noise, int freedom)
{
    double numerator = noise_normal(noise), squares = 0;
    for (int i = 0; i < freedom; i++) {
        double normal = noise_normal(noise);
        squares += normal * normal;
    }
    return numerator / sqrt(squares / freedom);
}

/* The next value of an autoregression with variance 1; start from a normal value. */
static inline double noise_follow(struct noise *noise, double previous, double rho)
{
    return rho * previous + sqrt(1.0 - rho * rho) * noise_normal(noise);
}

#endif
