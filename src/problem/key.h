/* What a measured route is looked up by: everything that changes which backend is fastest, except M. One struct, no
 * padding, hashed and compared whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROBLEM_KEY_H
#define FP8R_PROBLEM_KEY_H

#include <stdint.h>

#include <fp8route/backend.h>

enum { FP8R_MODE_EAGER = 0, FP8R_MODE_GRAPH = 1 };

struct fp8r_key {
    int64_t batch, n, k;
    uint8_t dtype_a, dtype_b, dtype_out, dtype_bias;
    uint8_t scale_a, scale_b;                 /* FP8R_SCALE_* */
    uint8_t layout_a, layout_b, layout_out;   /* FP8R_LAYOUT_* */
    uint8_t align_bytes;                      /* least of a, b and out; 16 stands for more, too */
    uint8_t accumulation, numerics;
    uint8_t weights_static, mode, reserved[2];
};

void fp8r_key_init(const fp8r_problem *problem, int mode, struct fp8r_key *key);

uint64_t fp8r_key_hash(const struct fp8r_key *key);
bool fp8r_key_equal(const struct fp8r_key *a, const struct fp8r_key *b);

/* A total order by type, then N, K, batch: keys that differ in N or K alone are near each other. */
int fp8r_key_compare(const struct fp8r_key *a, const struct fp8r_key *b);

/* Hash of any bytes whose size is a multiple of 8. */
uint64_t fp8r_hash_words(const void *words, size_t bytes);

#endif
