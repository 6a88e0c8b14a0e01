/* A set of pairs of sizes: has this N and K been asked for? Grows as needed; looking up does not slow down with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PAIR_SET_H
#define FP8R_PAIR_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised it is empty. */
struct fp8r_pair_set {
    struct fp8r_pair {
        int64_t n, k; /* both 0: an empty slot, and never an element */
    } *slots;
    size_t slot_count, count; /* slots: a power of two, at least twice the elements */
};

bool fp8r_pair_set_has(const struct fp8r_pair_set *set, int64_t n, int64_t k);

/* n or k must not be 0. False when out of memory. */
bool fp8r_pair_set_add(struct fp8r_pair_set *set, int64_t n, int64_t k);
void fp8r_pair_set_fini(struct fp8r_pair_set *set);

#endif
