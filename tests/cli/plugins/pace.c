/* Two outside backends of set speed: "steady" and "rival" compute the same product in plain loops, and then
 * wait until a call has taken as long as the environment says. They can also be made to differ, in one way at
 * a time.
 *
 *   PACE_STEADY_US, PACE_RIVAL_US   least time of a call; 0 or unset: as long as it takes
 *   PACE_FAULT                      of the rival: "ulp" (one element is the next value), "wrong" (one is
 * twice as large), "number" (0 where NaN belongs), "hole" (one element is not written), "uneven" (every other 40 ms calls take
 * three times as long)
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loops.h"

enum { NONE, ULP, WRONG, NUMBER, HOLE, UNEVEN };
enum { UNEVEN_NS = 40000000 };

struct pace {
    int64_t least_ns;
    int fault;
};

static struct pace paces[2];

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static float element(const fp8r_problem *p, const fp8r_pointers *at, int64_t batch, int64_t row, int64_t col)
{
    float result = (float)dot(p, at, batch, row, col, p->k) * scale_at(at->scale_b, &p->scale_b, batch, 0, col);
    return result * scale_at(at->scale_a, &p->scale_a, batch, row, 0);
}

/* The faulty element is [0,0,1]. */
static void store(const fp8r_problem *p, void *out, int64_t index, float value, int fault, bool is_faulty)
{
    uint32_t bits;
    if (is_faulty && fault == WRONG) value *= 2;
    if (is_faulty && fault == HOLE) return;
    if (fault == NUMBER && isnan(value)) value = 0;
    memcpy(&bits, &value, sizeof bits);
    if (p->out.dtype == FP8R_DTYPE_FP32) {
        bits += is_faulty && fault == ULP;
        memcpy((float *)out + index, &bits, sizeof bits);
    } else {
        uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
        if (isnan(value)) rounded = 0x7FC0;
        ((uint16_t *)out)[index] = (uint16_t)(rounded + (is_faulty && fault == ULP));
    }
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state, const fp8r_problem *p,
                       int config, const fp8r_pointers *at, void *workspace, size_t workspace_bytes,
                       void *stream)
{
    (void)services, (void)state, (void)config, (void)workspace, (void)workspace_bytes, (void)stream;
    const struct pace *pace = user;
    int64_t start_ns = now_ns();
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t c = 0; c < p->n; c++)
                store(p, at->out, out_index(p, i, r, c), element(p, at, i, r, c), pace->fault,
                      i == 0 && r == 0 && c == 1);
    bool is_slow = pace->fault == UNEVEN && start_ns / UNEVEN_NS % 2 == 1;
    while (now_ns() - start_ns < pace->least_ns * (is_slow ? 3 : 1)) {
    }
    return FP8R_OK;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)config;
    FP8R_REJECT_IF(p->a.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "a", p->a.dtype, FP8R_DTYPE_E4M3);
    FP8R_REJECT_IF(p->out.dtype == FP8R_DTYPE_FP16, reason, DTYPE, "out", p->out.dtype, FP8R_DTYPE_BF16);
    FP8R_REJECT_IF(p->bias.dtype != FP8R_DTYPE_NONE, reason, BIAS, "bias", p->bias.dtype, p->out.dtype);
    return true;
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *p)
{
    (void)user, (void)device, (void)p;
    return 0;
}

static const char *const configs[] = {"loops", NULL};
static const fp8r_capability capability = {.kind = FP8R_DEVICE_CPU};

#define PACED(name_, priority_, pace_)                                                                       \
    {                                                                                                        \
        .abi_version = FP8R_BACKEND_ABI, .priority = (priority_), .struct_size = sizeof(fp8r_backend),       \
        .name = (name_), .description = "loops that take their time", .rev = "1",                            \
        .capabilities = &capability, .capability_count = 1, .configs = configs, .user = (pace_),             \
        .supports = supports, .pick = pick, .run = run,                                                      \
    }
static const fp8r_backend steady = PACED("steady", 7, &paces[0]), rival = PACED("rival", 6, &paces[1]);

static int64_t least_of(const char *name)
{
    const char *text = getenv(name);
    return text ? (int64_t)(1e3 * strtod(text, NULL)) : 0;
}

static int fault_of(const char *text)
{
    static const char *const names[] = {"none", "ulp", "wrong", "number", "hole", "uneven"};
    for (int i = NONE; text && i <= UNEVEN; i++)
        if (strcmp(text, names[i]) == 0) return i;
    return NONE;
}

const fp8r_backend *const *fp8r_backends(void);

const fp8r_backend *const *fp8r_backends(void)
{
    static const fp8r_backend *const list[] = {&steady, &rival, NULL};
    fill_values();
    paces[0] = (struct pace){.least_ns = least_of("PACE_STEADY_US")};
    paces[1] = (struct pace){.least_ns = least_of("PACE_RIVAL_US"), .fault = fault_of(getenv("PACE_FAULT"))};
    return list;
}
