/* Operands of one product in host memory: random values of the real range, every scale another, poison
 * wherever no element lies. Also finds out afterwards what a backend touched that it must not.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_INPUTS_H
#define FP8R_INPUTS_H

#include <fp8route/fp8route.h>

#include "measure/area.h"
#include "tool_error.h"

enum fp8r_input {
    FP8R_INPUT_A,
    FP8R_INPUT_B,
    FP8R_INPUT_OUT,
    FP8R_INPUT_SCALE_A,
    FP8R_INPUT_SCALE_B,
    FP8R_INPUT_BIAS,
    FP8R_INPUT_COUNT
};

struct fp8r_inputs {
    fp8r_matmul matmul; /* its data pointers point into the areas */
    struct fp8r_area areas[FP8R_INPUT_COUNT];
    uint64_t checksums[FP8R_INPUT_COUNT]; /* of what was put there */
};

/* The operands of a product in the order of fp8r_input. */
const fp8r_matrix *fp8r_matmul_matrix(const fp8r_matmul *matmul, enum fp8r_input input);

/* Bytes from the first to the last element of a matrix, 0 for an absent or empty one; false beyond 63 bits.
 */
bool fp8r_matrix_span_bytes(const fp8r_matrix *matrix, int64_t *bytes);

/* All operands together; false beyond 63 bits. */
bool fp8r_matmul_span_bytes(const fp8r_matmul *matmul, int64_t *bytes);

/* Allocates and fills all operands of the product. Its data pointers lend their alignment (NULL = 256 bytes),
 * as in fp8r_matmul_parse. The same seed gives the same bytes. Exit codes: INTERNAL, before anything is
 * allocated, where the operands need more than the machine's available memory. */
int fp8r_inputs_create(const fp8r_matmul *shape, uint64_t seed, enum fp8r_guard guard,
                       struct fp8r_inputs *inputs, struct fp8r_tool_error *error);
void fp8r_inputs_destroy(struct fp8r_inputs *inputs);

/* How operands are made whose copies on the device are what is run. */
static inline enum fp8r_guard fp8r_inputs_guard(bool is_remote)
{
    return is_remote ? FP8R_GUARD_NONE : FP8R_GUARD_BYTES;
}

/* Makes out unwritten again. */
void fp8r_inputs_poison_out(struct fp8r_inputs *inputs);

/* Remembers the operands as they are now: after a caller put values of its own there. */
void fp8r_inputs_remember(struct fp8r_inputs *inputs);

/* NULL where every guard, every input and every byte of out between its elements is as it was; otherwise what
 * is not, in words. */
const char *fp8r_inputs_damage(const struct fp8r_inputs *inputs);

/* True where out, elements included, is as poison left it. */
bool fp8r_inputs_out_untouched(const struct fp8r_inputs *inputs);

#endif
