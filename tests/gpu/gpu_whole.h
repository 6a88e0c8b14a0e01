/* A product whose operands are made on the device and whose results stay there, for tests that compare them whole. Without
 * bias; scales are powers of two.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_WHOLE_H
#define FP8R_TESTS_GPU_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

#include "gpu_bits.h"

struct gpu_whole {
    fp8r_matmul matmul; /* on the device */
    size_t out_bytes;
    void *stream, *space;
    size_t space_bytes;
    struct gpu_difference *difference;
};

/* any: codes of any finite value, else small integers. Fails the running test where something does not work. */
void gpu_whole_init(struct gpu_whole *it, const char *text, bool any, uint64_t seed);
void gpu_whole_fini(struct gpu_whole *it);

/* A plan for it; NULL where `backend` refuses (NULL: routed, which must not). */
fp8r_plan *gpu_whole_plan(const struct gpu_whole *it, fp8r_context *context, const char *backend);

/* Queues a run with m rows of a, from row `start` on, that writes `out`. */
void gpu_whole_run(struct gpu_whole *it, const fp8r_plan *plan, int64_t start, int64_t m, void *out);

/* Poison in all of `out`. */
void gpu_whole_poison(const struct gpu_whole *it, void *out);

/* What the comparisons so far found; waits, and begins anew. */
struct gpu_difference gpu_whole_difference(struct gpu_whole *it);

#endif
