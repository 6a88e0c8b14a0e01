/* Backends made for tests: each has a window of M, a pick that may change with M, numerics classes and a limit above
 * which preparing fails, and counts what it is asked. A run writes the fake's mark to every element of an fp32 out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_FAKE_H
#define FP8R_TESTS_SUPPORT_FAKE_H

#include <stdatomic.h>

#include <fp8route/backend.h>

struct fake {
    int64_t m_min, m_max;        /* supported M; m_max 0 = any */
    int64_t second_to;           /* "two", named, takes no more rows; 0 = any */
    int64_t second_from;         /* picks configuration "two" from this M on; 0 = never */
    int64_t second_until;        /* up to this M, and then "one" again; 0 = for ever */
    int64_t prepare_fails_above; /* preparing for more rows fails; 0 = never */
    const char *classes[2];      /* numerics class of "one" and "two"; NULL = none */
    double expected_us;          /* what its model says; 0 = it has none */
    size_t workspace_bytes;
    int64_t workspace_above; /* so few rows need none */
    _Atomic size_t given_bytes; /* of workspace, to the last run */
    int run_answers; /* what a run returns */
    float mark;
    _Atomic long prepared, destroyed, failed, runs;
};

/* A backend of that name whose `user` is the fake; configurations "one" and "two", any CPU. */
fp8r_backend fake_backend(struct fake *fake, const char *name, int32_t priority);

#endif
