/* A product on the cpu backend, planned once, over enough copies of its weights that none is in a cache when
 * its turn comes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BENCH_WORKLOAD_H
#define FP8R_BENCH_WORKLOAD_H

#include "bar.h"

struct bench_workload {
    fp8r_matmul matmul;
    fp8r_context *context;
    fp8r_plan *plan;
    void *workspace;
    uint8_t *weights; /* copies, one after the other */
    int64_t copies, copy_bytes;
};

/* copies: 0 = four times the last-level cache. False with the bar's note filled. */
bool bench_workload_make(const struct bench_settings *settings, const char *problem, int64_t copies,
                         struct bench_workload *workload, struct bench_bar *bar);
void bench_workload_drop(struct bench_workload *workload);

/* A pass: the product with every copy once. */
int64_t bench_workload_pass(void *workload);

#endif
