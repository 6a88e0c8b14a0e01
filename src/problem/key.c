/* Keys: made from problems, hashed and ordered.
 * SPDX-License-Identifier: Apache-2.0 */
#include "problem/key.h"

#include <string.h>

#include "base/sizes.h"

_Static_assert(sizeof(struct fp8r_key) == 40, "the key is hashed whole: it must have no padding");

void fp8r_key_init(const fp8r_problem *problem, int mode, struct fp8r_key *key)
{
    int64_t align = fp8r_size_min(problem->a.align_bytes, problem->b.align_bytes);
    align = fp8r_size_min(align, problem->out.align_bytes);
    /* Else there is nothing that lies anywhere: its family is one, however strides are given. */
    const bool lies = problem->batch > 0 && problem->n > 0 && problem->k > 0;
    *key = (struct fp8r_key){
        .batch = problem->batch,
        .n = problem->n,
        .k = problem->k,
        .dtype_a = (uint8_t)problem->a.dtype,
        .dtype_b = (uint8_t)problem->b.dtype,
        .dtype_out = (uint8_t)problem->out.dtype,
        .dtype_bias = (uint8_t)problem->bias.dtype,
        .scale_a = (uint8_t)problem->scale_a_kind,
        .scale_b = (uint8_t)problem->scale_b_kind,
        .layout_a = lies ? (uint8_t)problem->layout_a : FP8R_LAYOUT_INNER,
        .layout_b = lies ? (uint8_t)problem->layout_b : FP8R_LAYOUT_INNER,
        .layout_out = lies ? (uint8_t)problem->layout_out : FP8R_LAYOUT_INNER,
        .align_bytes = (uint8_t)(lies ? fp8r_size_min(align, 16) : 16),
        .accumulation = (uint8_t)problem->accumulation,
        .numerics = (uint8_t)problem->numerics,
        .weights_static = (problem->flags & FP8R_WEIGHTS_STATIC) != 0,
        .mode = (uint8_t)mode,
    };
}

/* Odd 64-bit numbers without pattern (digits of pi). */
static const uint64_t factor = 0x13198A2E03707345u;

static inline uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* Multiply and fold: what differs in high bits only, which a product leaves there, reaches the low ones. */
static inline uint64_t fold(uint64_t hash)
{
    hash *= factor;
    return hash ^ hash >> 32;
}

/* Four lanes, so that the multiplications overlap: polynomials in the factor, folded at the end. */
uint64_t fp8r_hash_words(const void *words, size_t bytes)
{
    const unsigned char *at = words, *end = at + bytes;
    uint64_t a = 0x243F6A8885A308D3u, b = 0xA4093822299F31D1u, c = 0x082EFA98EC4E6C89u, d = 0x452821E638D01377u;
    for (; end - at >= 32; at += 32) {
        a = (a + word_at(at)) * factor;
        b = (b + word_at(at + 8)) * factor;
        c = (c + word_at(at + 16)) * factor;
        d = (d + word_at(at + 24)) * factor;
    }
    for (; end - at >= 8; at += 8)
        a = (a + word_at(at)) * factor;
    return fold(fold(fold(fold(fold(a) ^ b) ^ c) ^ d));
}

uint64_t fp8r_key_hash(const struct fp8r_key *key)
{
    return fp8r_hash_words(key, sizeof *key);
}

bool fp8r_key_equal(const struct fp8r_key *a, const struct fp8r_key *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int fp8r_key_compare(const struct fp8r_key *a, const struct fp8r_key *b)
{
    size_t first = offsetof(struct fp8r_key, dtype_a);
    int by_type = memcmp(&a->dtype_a, &b->dtype_a, sizeof *a - first);
    int by_n = order(a->n, b->n), by_k = order(a->k, b->k);
    return by_type ? by_type : by_n ? by_n : by_k ? by_k : order(a->batch, b->batch);
}
