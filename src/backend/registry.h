/* The registry: the rows of backends.inc and the outside backends of a context, checked, ordered by priority, and held
 * against the context's device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_REGISTRY_H
#define FP8R_BACKEND_REGISTRY_H

#include <stddef.h>

#include <fp8route/backend.h>

#include "problem/quantising.h"

enum { FP8R_ROWS_MAX = 64, FP8R_NAME_BYTES = 64 };

struct fp8r_row {
    fp8r_backend backend;
    bool is_built;
    bool is_outside;    /* given by the caller: it cannot set the thread's error line */
    bool quantises_a;   /* a bf16 or fp16 `a` is quantised in front of it (row.h): our rows on GPUs */
    const struct fp8r_quantising *quantising; /* the row's own way to do that for some of them; or NULL */
    bool fits;          /* may run on the device: built, not denied, capability fits, probe said yes */
    fp8r_reason reason; /* where it does not fit */
};

struct fp8r_registry {
    struct fp8r_row rows[FP8R_ROWS_MAX]; /* largest priority first; equal ones in list order, outside ones last */
    int count;
};

/* Errors: INVALID_ARGUMENT naming the outside backend and what its struct gets wrong. */
fp8r_status fp8r_registry_init(struct fp8r_registry *registry, const fp8r_backend *const *outside, size_t outside_count);

/* Decides which rows fit the device. deny: "name,name", or NULL. probe: also ask each row's own probe. */
void fp8r_registry_gate(struct fp8r_registry *registry, const fp8r_device_facts *device, const char *deny, bool probe);

/* Index of the row, or -1. `length` bytes of name. */
int fp8r_registry_find(const struct fp8r_registry *registry, const char *name, size_t length);

/* Is there a row of that name? Errors: NOT_FOUND, naming those that there are. */
fp8r_status fp8r_registry_check_name(const struct fp8r_registry *registry, const char *name, size_t length);

/* Index of a configuration of the row, or -1. */
int fp8r_row_config(const struct fp8r_row *row, const char *config);

/* Splits "name" or "name:config". *config is FP8R_CONFIG_ANY without one. Errors: NOT_FOUND, naming what there is. */
fp8r_status fp8r_registry_resolve(const struct fp8r_registry *registry, const char *text, int *row, int *config);

#endif
