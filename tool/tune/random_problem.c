/* Drawing problems. SPDX-License-Identifier: Apache-2.0 */
#include "tune/random_problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

void fp8r_random_problems_init(struct fp8r_random_problems *problems, int32_t kind, int64_t available_bytes,
                               uint64_t seed)
{
    bool is_cpu = kind == FP8R_DEVICE_CPU;
    *problems =
        (struct fp8r_random_problems){.random = {seed},
                                      .size_low = 512,
                                      .size_high = is_cpu ? 8192 : 32768,
                                      .m_high = is_cpu ? 512 : 16384,
                                      .operations_max = is_cpu ? 2e10 : 1e14,
                                      .weight_bytes_max = fmax((double)available_bytes / 16, 512 * 512)};
}

/* low <= result <= high, each factor between them as likely. */
static int64_t log_uniform(struct fp8r_random *random, int64_t low, int64_t high)
{
    double value = (double)low * pow((double)high / (double)low, fp8r_random_unit(random));
    return (int64_t)fmin(fmax(round(value), (double)low), (double)high);
}

/* The nearest multiple that keeps to the limits (the lower one is a multiple itself, or wins). */
static int64_t rounded(const struct fp8r_random_problems *problems, int64_t size, int64_t multiple)
{
    int64_t near = (size + multiple / 2) / multiple * multiple;
    if (near > problems->size_high) near -= multiple;
    return near < problems->size_low ? problems->size_low : near;
}

static struct fp8r_random_problem draw(struct fp8r_random_problems *problems)
{
    struct fp8r_random *random = &problems->random;
    struct fp8r_random_problem drawn = {.n = log_uniform(random, problems->size_low, problems->size_high),
                                        .k = log_uniform(random, problems->size_low, problems->size_high),
                                        .m = log_uniform(random, 1, problems->m_high)};
    double kind = fp8r_random_unit(random);
    int64_t multiple = kind < 0.7 ? 128 : kind < 0.9 ? 16 : 1;
    drawn.n = rounded(problems, drawn.n, multiple);
    drawn.k = rounded(problems, drawn.k, multiple);
    return drawn;
}

struct fp8r_random_problem fp8r_random_problems_next(struct fp8r_random_problems *problems)
{
    enum { TRIES = 1000 };
    for (int i = 0; i < TRIES; i++) {
        struct fp8r_random_problem drawn = draw(problems);
        double weights = (double)drawn.n * (double)drawn.k;
        if (weights <= problems->weight_bytes_max &&
            2 * weights * (double)drawn.m <= problems->operations_max)
            return drawn;
        problems->again++;
    }
    return (struct fp8r_random_problem){.m = 1, .n = problems->size_low, .k = problems->size_low};
}

void fp8r_random_problems_describe(const struct fp8r_random_problems *problems,
                                   char text[FP8R_RANDOM_PROBLEMS_BYTES])
{
    snprintf(text, FP8R_RANDOM_PROBLEMS_BYTES,
             "N and K log-uniform %" PRId64 "..%" PRId64
             ", 70 %% multiples of 128, 20 %% of 16, 10 %% ragged; M "
             "log-uniform 1..%" PRId64 "; at most %.3g operations and %.3g bytes of weights",
             problems->size_low, problems->size_high, problems->m_high, problems->operations_max,
             problems->weight_bytes_max);
}
