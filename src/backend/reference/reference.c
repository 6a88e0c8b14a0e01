/* The reference backend: every product in double, in the order of k, one thread-independent sum an element. Takes every
 * layout, type, scale and bias form, and is what the other backends are judged by.
 *
 * A product of two fp8 values is exact in double, and so are sums of up to 2^20 and more of them in practice; the one
 * rounding to fp32 at the end is where the definition's `acc` comes from.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <fp8route/backend.h>

#include "base/dtype.h"
#include "base/epilogue.h"
#include "base/quantize.h"
#include "base/sizes.h"

static const char *const configs[] = {"double", NULL};

/* One call, as its tasks see it. */
struct call {
    const fp8r_problem *problem;
    const fp8r_pointers *pointers;
    uint8_t *codes; /* half a: quantised rows, packed [batch * m][k] */
    float *scales;  /* half a: one a row */
};

static float line_value(const void *data, const fp8r_operand *operand, int64_t batch, int64_t row, int64_t col)
{
    int64_t index = batch * operand->batch_stride + row * operand->row_stride + col * operand->col_stride;
    return data ? fp8r_load(data, index, operand->dtype) : 1.0f;
}

static double dot(const struct call *call, int64_t batch, int64_t row, int64_t col)
{
    const fp8r_problem *p = call->problem;
    const void *a = call->codes ? call->codes : call->pointers->a;
    int32_t dtype_a = call->codes ? FP8R_DTYPE_E4M3 : p->a.dtype;
    int64_t a_at = call->codes ? (batch * p->m + row) * p->k : batch * p->a.batch_stride + row * p->a.row_stride;
    int64_t a_step = call->codes ? 1 : p->a.col_stride;
    int64_t b_at = batch * p->b.batch_stride + col * p->b.col_stride;
    double sum = 0;
    for (int64_t k = 0; k < p->k; k++, a_at += a_step, b_at += p->b.row_stride)
        sum += (double)fp8r_load(a, a_at, dtype_a) * (double)fp8r_load(call->pointers->b, b_at, FP8R_DTYPE_E4M3);
    return sum;
}

/* One row of out. */
static void run_row(void *argument, int64_t index)
{
    const struct call *call = argument;
    const fp8r_problem *p = call->problem;
    const fp8r_pointers *at = call->pointers;
    int64_t batch = index / p->m, row = index % p->m;
    float scale_a = call->scales ? call->scales[index] : line_value(at->scale_a, &p->scale_a, batch, row, 0);
    for (int64_t col = 0; col < p->n; col++) {
        float scale_b = line_value(at->scale_b, &p->scale_b, batch, 0, col);
        float bias = line_value(at->bias, &p->bias, batch, 0, col);
        float sum = (float)dot(call, batch, row, col);
        fp8r_store(at->out, batch * p->out.batch_stride + row * p->out.row_stride + col * p->out.col_stride,
                   p->out.dtype, fp8r_epilogue(sum, scale_b, scale_a, at->bias ? &bias : NULL));
    }
}

static void quantize_row(void *argument, int64_t index)
{
    const struct call *call = argument;
    const fp8r_problem *p = call->problem;
    int64_t at = index / p->m * p->a.batch_stride + index % p->m * p->a.row_stride;
    const uint8_t *row = (const uint8_t *)call->pointers->a + at * fp8r_dtype_bytes(p->a.dtype);
    call->scales[index] = fp8r_quantize_row(row, p->a.dtype, p->a.col_stride, p->k, call->codes + index * p->k);
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)config;
    int64_t rows, bytes;
    bool counts = fp8r_size_mul(problem->batch, problem->m, &rows) && fp8r_size_mul(rows, problem->k, &bytes) &&
                  fp8r_size_mul(rows, (int64_t)sizeof(float), &rows) && fp8r_size_add(bytes, rows, &bytes) &&
                  fp8r_size_add(bytes, 512, &bytes);
    FP8R_REJECT_IF(!counts, reason, SHAPE_MAX, "B * M * K", INT64_MAX, INT64_MAX);
    return true;
}

static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user, (void)device, (void)problem, (void)config;
    return "reference";
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user, (void)device, (void)problem;
    return 0;
}

static int64_t scales_bytes(const fp8r_problem *problem)
{
    return fp8r_size_round_up(problem->batch * problem->m * (int64_t)sizeof(float), 256);
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user, (void)device, (void)config;
    if (!fp8r_dtype_is_half(problem->a.dtype))
        return 0;
    return (size_t)(scales_bytes(problem) + problem->batch * problem->m * problem->k);
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state, const fp8r_problem *problem,
                       int config, const fp8r_pointers *pointers, void *space, size_t space_bytes, void *stream)
{
    (void)user, (void)state, (void)config, (void)space_bytes, (void)stream;
    struct call call = {.problem = problem, .pointers = pointers};
    int64_t rows = problem->batch * problem->m;
    if (fp8r_dtype_is_half(problem->a.dtype)) {
        call.scales = space;
        call.codes = (uint8_t *)space + scales_bytes(problem);
        services->parallel(services->pool, rows, quantize_row, &call);
    }
    services->parallel(services->pool, rows, run_row, &call);
    return FP8R_OK;
}

const fp8r_backend fp8r_backend_reference = {
    .configs = configs,
    .supports = supports,
    .numerics = numerics,
    .pick = pick,
    .workspace = workspace,
    .run = run,
};
