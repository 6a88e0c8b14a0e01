/* Outside backends whose speeds are known: plain loops, then a sleep up to a set time, so that tests know
 * what an audit or a fit must find. `brisk` is right for few rows, `steady` for many, `rushed` computes wrong
 * values at once. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "loops.h"

/* Where the loops themselves take long, everything does, so that they never show. */
enum { FEW_ROWS = 16, LARGE = 1 << 18, LARGER = 4 };

static void multiply(const fp8r_problem *p, const fp8r_pointers *at)
{
    for (int64_t row = 0; row < p->m; row++)
        for (int64_t col = 0; col < p->n; col++) {
            float result = (float)dot(p, at, 0, row, col, p->k) * scale_at(at->scale_b, &p->scale_b, 0, 0, col);
            result *= scale_at(at->scale_a, &p->scale_a, 0, row, 0);
            ((uint16_t *)at->out)[out_index(p, 0, row, col)] = to_bf16(result);
        }
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t end_ns)
{
    int64_t left_ns;
    while ((left_ns = end_ns - now_ns()) > 0) {
        struct timespec left = {.tv_nsec = (long)left_ns};
        nanosleep(&left, NULL);
    }
}

/* user: the time of a call with few rows, and with many, in microseconds; 0 0 computes wrong values. */
static fp8r_status run(void *user, const fp8r_services *services, const void *state, const fp8r_problem *p,
                       int config, const fp8r_pointers *at, void *workspace, size_t workspace_bytes,
                       void *stream)
{
    const int64_t *times_us = user;
    int64_t start_ns = now_ns();
    (void)services, (void)state, (void)config, (void)workspace, (void)workspace_bytes, (void)stream;
    if (times_us[0] == 0) {
        memset(at->out, 0, 2);
        return FP8R_OK;
    }
    multiply(p, at);
    sleep_until(start_ns + 1000 * times_us[p->m >= FEW_ROWS] * (p->n * p->k >= LARGE ? LARGER : 1));
    return FP8R_OK;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)config;
    FP8R_REJECT_IF(p->a.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "a", p->a.dtype, FP8R_DTYPE_E4M3);
    FP8R_REJECT_IF(p->out.dtype != FP8R_DTYPE_BF16, reason, DTYPE, "out", p->out.dtype, FP8R_DTYPE_BF16);
    FP8R_REJECT_IF(p->bias.dtype != FP8R_DTYPE_NONE, reason, BIAS, "bias", p->bias.dtype, FP8R_DTYPE_NONE);
    FP8R_REJECT_IF(p->batch != 1, reason, SHAPE_MAX, "B", p->batch, 1);
    return true;
}

static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config)
{
    (void)user, (void)device, (void)p, (void)config;
    return "paced:float";
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
    (void)user, (void)device, (void)p, (void)config;
    return 0;
}

static const char *const configs[] = {"only", NULL};
static const fp8r_capability capability = {.kind = FP8R_DEVICE_CPU};
static int64_t brisk_us[] = {1500, 8000}, steady_us[] = {6000, 2000}, rushed_us[] = {0, 0};

#define PACED(name_, priority_, times_)                                                                      \
    {                                                                                                        \
        .abi_version = FP8R_BACKEND_ABI, .priority = priority_, .struct_size = sizeof(fp8r_backend),         \
        .name = name_, .description = "a known speed, for tests", .rev = "1", .capabilities = &capability,   \
        .capability_count = 1, .configs = configs, .user = times_, .supports = supports,                     \
        .numerics = numerics, .pick = pick, .horizon = horizon, .workspace = workspace, .run = run           \
    }

static const fp8r_backend backends[] = {PACED("steady", 60, steady_us), PACED("brisk", 61, brisk_us)},
                          rushed = PACED("rushed", 62, rushed_us);

const fp8r_backend *const *fp8r_backends(void);

const fp8r_backend *const *fp8r_backends(void)
{
    static const fp8r_backend *const list[] = {&backends[0], &backends[1], NULL};
    static const fp8r_backend *const with_rushed[] = {&backends[0], &backends[1], &rushed, NULL};
    fill_values();
    return WITH_RUSHED ? with_rushed : list;
}
