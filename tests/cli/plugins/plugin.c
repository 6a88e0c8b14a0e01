/* An outside backend: plain loops over e4m3, and for each FAULT the same with one promise of the contract
 * broken. Built once a fault. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "loops.h"

enum {
    NONE,
    DROPPED_TERM,
    SWAPPED_SCALES,
    MISSING_ELEMENT,
    WRITES_GAP,
    READS_BEYOND,
    OVERRUNS_WORKSPACE,
    REFUSES_RUN,
    NO_REASON,
    LYING_HORIZON,
    LYING_CLASS,
    WRITES_NAN,
    CHANGES_INPUT,
    ENDS_PROCESS,
    OLD_STRUCT,
    LYING_PICK,
    SHRINKING_WORKSPACE
};

#ifndef FAULT
#define FAULT NONE
#endif

static float element(const fp8r_problem *p, const fp8r_pointers *at, int64_t batch, int64_t row, int64_t col)
{
    int64_t scaled_col = FAULT == SWAPPED_SCALES && p->n > 1 && col < 2 ? 1 - col : col;
    int64_t k_end = FAULT == DROPPED_TERM && p->k > 1 ? p->k - 1 : p->k;
    float result = (float)dot(p, at, batch, row, col, k_end);
    result = result * scale_at(at->scale_b, &p->scale_b, batch, 0, scaled_col);
    result = result * scale_at(at->scale_a, &p->scale_a, batch, row, 0);
    return at->bias ? result + scale_at(at->bias, &p->bias, batch, 0, col) : result;
}

static void store(const fp8r_problem *p, void *out, int64_t index, float value)
{
    if (p->out.dtype == FP8R_DTYPE_BF16)
        ((uint16_t *)out)[index] = to_bf16(value);
    else
        ((float *)out)[index] = value;
}

static void misbehave(const fp8r_problem *p, const fp8r_pointers *at, void *workspace)
{
    int64_t row = p->out.row_stride, col = p->out.col_stride;
    if (FAULT == WRITES_GAP && p->m > 1 && col == 1 && row > p->n) store(p, at->out, p->n, 0);
    if (FAULT == READS_BEYOND) {
        volatile const uint8_t *b = at->b;
        (void)b[(p->k - 1) * p->b.row_stride + (p->n - 1) * p->b.col_stride +
                (p->batch - 1) * p->b.batch_stride + 600];
    }
    if (FAULT == OVERRUNS_WORKSPACE) memset(workspace, 0, 256 + 1);
    if (FAULT == CHANGES_INPUT) ((uint8_t *)(uintptr_t)at->a)[0] ^= 1;
    if (FAULT == WRITES_NAN) store(p, at->out, 0, from_e4m3(0x7F));
    if (FAULT == ENDS_PROCESS) exit(0);
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state, const fp8r_problem *p,
                       int config, const fp8r_pointers *at, void *workspace, size_t workspace_bytes,
                       void *stream)
{
    (void)user, (void)services, (void)state, (void)workspace_bytes, (void)stream;
    if (FAULT == REFUSES_RUN) return FP8R_ERROR_UNSUPPORTED;
    for (int64_t i = 0; i < p->batch; i++) {
        for (int64_t r = 0; r < p->m; r++) {
            for (int64_t c = 0; c < p->n; c++) {
                float value = element(p, at, i, r, c);
                if (FAULT == LYING_CLASS && config == 1) value *= 1.01f;
                if (FAULT == MISSING_ELEMENT && r == 16 && c == 15) continue;
                store(p, at->out, out_index(p, i, r, c), value);
            }
        }
    }
    misbehave(p, at, workspace);
    return FP8R_OK;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)config;
    if (FAULT == NO_REASON && p->a.dtype != FP8R_DTYPE_E4M3) return false;
    FP8R_REJECT_IF(p->a.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "a", p->a.dtype, FP8R_DTYPE_E4M3);
    FP8R_REJECT_IF(p->out.dtype == FP8R_DTYPE_FP16, reason, DTYPE, "out", p->out.dtype, FP8R_DTYPE_BF16);
    FP8R_REJECT_IF(p->bias.dtype != FP8R_DTYPE_NONE && p->bias.dtype != FP8R_DTYPE_FP32, reason, BIAS, "bias",
                   p->bias.dtype, p->out.dtype);
    FP8R_REJECT_IF(FAULT == LYING_HORIZON && p->m > 40, reason, SHAPE_MAX, "M", p->m, 40);
    FP8R_REJECT_IF(FAULT == LYING_PICK && config == 0, reason, OTHER, "not this one", 0, 0);
    return true;
}

static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config)
{
    (void)user, (void)device, (void)p, (void)config;
    return "plain:double";
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *p)
{
    (void)user, (void)device, (void)p;
    return 0;
}

static int64_t horizon(void *user, const fp8r_device_facts *device, const fp8r_problem *p)
{
    (void)user, (void)device, (void)p;
    return INT64_MAX;
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config)
{
    (void)user, (void)device, (void)config;
    if (FAULT == SHRINKING_WORKSPACE) return p->m > 8 ? 256 : 512;
    return FAULT == OVERRUNS_WORKSPACE ? 256 : 0;
}

static const char *const configs[] = {"loops", "loops2", NULL};
static const fp8r_capability capability = {.kind = FP8R_DEVICE_CPU};

static const fp8r_backend backend = {
    .abi_version = FP8R_BACKEND_ABI,
    .priority = 5,
    .struct_size = FAULT == OLD_STRUCT ? 8 : sizeof(fp8r_backend),
    .name = "plain",
    .description = "plain loops, for tests",
    .rev = "1",
    .capabilities = &capability,
    .capability_count = 1,
    .configs = configs,
    .supports = supports,
    .numerics = numerics,
    .pick = pick,
    .horizon = horizon,
    .workspace = workspace,
    .run = run,
};

const fp8r_backend *const *fp8r_backends(void);

const fp8r_backend *const *fp8r_backends(void)
{
    static const fp8r_backend *const list[] = {&backend, NULL};
    fill_values();
    return list;
}
