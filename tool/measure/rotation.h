/* Copies of one product's operands in a device's memory, used in turn, so that each call finds them out of
 * the caches. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROTATION_H
#define FP8R_ROTATION_H

#include "measure/inputs.h"
#include "measure/measure_device.h"

/* A part of the operands and its copies: weights (b, scale_b, bias), or activations (a, scale_a, out). They
 * turn by themselves, so that the weights of a family are cold at M = 1 without activations of its largest M
 * beside each. */
struct fp8r_rotation_part {
    uint8_t *memory; /* kept from one load to the next */
    size_t memory_bytes, set_bytes; /* set_bytes: from one to the next */
    size_t used_bytes;              /* of a set */
    int64_t sets, turning, next;    /* turning: the first so many take their turn */
};
enum { FP8R_ROTATION_WEIGHTS, FP8R_ROTATION_ACTIVATIONS, FP8R_ROTATION_PARTS };

/* Zero-initialise. */
struct fp8r_rotation {
    const struct fp8r_measure_device *device;
    double cold_bytes; /* what must have passed before a copy is used again */
    struct fp8r_rotation_part parts[FP8R_ROTATION_PARTS];
    size_t offsets[FP8R_INPUT_COUNT]; /* of the operands' data within a set; SIZE_MAX: absent */
    size_t a_bytes; /* that a call's `a` spans: narrowing makes it the member's */
};

/* Copies the weights as often as it takes to exceed cache_factor times the device's cache with one set to
 * spare, the activations so often that as much has passed between two uses of one copy; but both into no more
 * than half of what memory is available: then fewer sets, at least one. Each operand keeps its alignment.
 * Exit codes: INTERNAL when not even one set has room, UNMEASURED when the device fails. */
int fp8r_rotation_load(struct fp8r_rotation *rotation, const struct fp8r_measure_device *device,
                       const struct fp8r_inputs *inputs, double cache_factor, struct fp8r_tool_error *error);

/* Does a round through all weights exceed cache_factor times the cache? */
bool fp8r_rotation_is_cold(const struct fp8r_rotation *rotation, double cache_factor);

/* Turns no more sets than calls of this product, which is no larger, need to find theirs cold: one that moves more than
 * cache_factor times the cache itself finds it cold each time. */
void fp8r_rotation_narrow(struct fp8r_rotation *rotation, const fp8r_matmul *member);

/* How many calls go through every set that turns. */
int64_t fp8r_rotation_sets(const struct fp8r_rotation *rotation);

/* The pointers of the next sets, for a run with m rows (no more than the operands have). */
void fp8r_rotation_next(struct fp8r_rotation *rotation, int64_t m, fp8r_pointers *pointers);

/* Any copy of `a`, always the same: what a producer reads. */
const void *fp8r_rotation_source(const struct fp8r_rotation *rotation);

void fp8r_rotation_fini(struct fp8r_rotation *rotation);

#endif
