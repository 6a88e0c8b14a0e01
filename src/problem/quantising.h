/* What a backend offers that quantises a bf16 or fp16 `a` inside of its product, where the quantiser in front would cost
 * more. A listed backend's `user` is NULL or points to one of these; the bits are those of quantiser and product.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROBLEM_QUANTISING_H
#define FP8R_PROBLEM_QUANTISING_H

#include <stdbool.h>

#include <fp8route/backend.h>

struct fp8r_quantising {
    /* Makes ready for it what the backend prepared, where it can be; `a` as the caller has it. The device must be current. */
    void (*prepare)(void *state, const fp8r_device_facts *device, const fp8r_operand *a);

    /* Does this product quantise its rows itself? problem: as for the backend's run, with quantised rows; `a` and data, its
     * address, as the caller has them. */
    bool (*takes)(const void *state, const fp8r_problem *problem, const fp8r_operand *a, const void *data);

    /* Queues such a product; pointers: the caller's. Needs no workspace. Errors: DEVICE. */
    fp8r_status (*run)(const void *state, const fp8r_problem *problem, const fp8r_operand *a,
                       const fp8r_pointers *pointers, void *stream);
};

#endif
