/* A backend in a shared object of its own, written against the public headers alone. It takes e4m3 products
 * with fp32 out and no bias, in plain loops; docs/backends.md walks through it and shows how to build it.
 *
 * Use:  fp8route explain 2x3x4:fp32 --plugin ./outside_backend.so      or from a program: outside_host.c
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include <fp8route/backend.h>

struct call {
    const double *values; /* of each e4m3 code: what prepare makes */
    const fp8r_problem *problem;
    const fp8r_pointers *pointers;
};

static float scale_at(const void *scales, const fp8r_operand *of, int64_t batch, int64_t row, int64_t col)
{
    int64_t at = batch * of->batch_stride + row * of->row_stride + col * of->col_stride;
    return scales ? ((const float *)scales)[at] : 1.0f;
}

/* One row of out; a stride of 0 repeats. */
static void run_row(void *argument, int64_t index)
{
    const struct call *call = argument;
    const fp8r_problem *p = call->problem;
    const fp8r_pointers *at = call->pointers;
    int64_t batch = index / p->m, row = index % p->m;
    const uint8_t *a = (const uint8_t *)at->a + batch * p->a.batch_stride + row * p->a.row_stride;
    float *out = (float *)at->out + batch * p->out.batch_stride + row * p->out.row_stride;
    for (int64_t col = 0; col < p->n; col++) {
        const uint8_t *b = (const uint8_t *)at->b + batch * p->b.batch_stride + col * p->b.col_stride;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
            sum += call->values[a[k * p->a.col_stride]] * call->values[b[k * p->b.row_stride]];
        /* scale_b first, each step rounded to fp32: the definition of the product. */
        float result = (float)sum * scale_at(at->scale_b, &p->scale_b, batch, 0, col);
        out[col * p->out.col_stride] = result * scale_at(at->scale_a, &p->scale_a, batch, row, 0);
    }
}

/* A no names the numbers that failed; a yes is a promise that run succeeds. */
static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *p, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)config;
    FP8R_REJECT_IF(p->a.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "a", p->a.dtype, FP8R_DTYPE_E4M3);
    FP8R_REJECT_IF(p->out.dtype != FP8R_DTYPE_FP32, reason, DTYPE, "out", p->out.dtype, FP8R_DTYPE_FP32);
    FP8R_REJECT_IF(p->bias.dtype != FP8R_DTYPE_NONE, reason, BIAS, "bias", p->bias.dtype, p->out.dtype);
    FP8R_REJECT_IF(p->batch > INT64_MAX / p->m, reason, SHAPE_MAX, "batch", p->batch, INT64_MAX / p->m);
    return true;
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user, (void)device, (void)problem;
    return 0;
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **result)
{
    (void)user, (void)services, (void)device, (void)problem, (void)config;
    double *values = malloc(256 * sizeof *values);
    if (!values)
        return FP8R_ERROR_OUT_OF_MEMORY;
    for (int code = 0; code < 256; code++) {
        int exponent = code >> 3 & 15, mantissa = code & 7;
        double size = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
        if ((code & 0x7F) == 0x7F)
            size = NAN;
        values[code] = code & 0x80 ? -size : size;
    }
    *result = values;
    return FP8R_OK;
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state,
                       const fp8r_problem *problem, int config, const fp8r_pointers *pointers,
                       void *space, size_t space_bytes, void *stream)
{
    (void)user, (void)config, (void)space, (void)space_bytes, (void)stream;
    struct call call = {.values = state, .problem = problem, .pointers = pointers};
    services->parallel(services->pool, problem->batch * problem->m, run_row, &call);
    return FP8R_OK;
}

static void destroy(void *user, void *state)
{
    (void)user;
    free(state);
}

static const fp8r_capability any_cpu = {.kind = FP8R_DEVICE_CPU};
static const char *const configs[] = {"plain", NULL};
static const fp8r_backend backend = {
    .abi_version = FP8R_BACKEND_ABI,
    .struct_size = sizeof(fp8r_backend),
    .priority = 10, /* behind fp8route's own rows: it wins where it was measured to be fastest */
    .name = "outside",
    .description = "an example: plain loops over a table of values",
    .rev = "1",
    .capabilities = &any_cpu,
    .capability_count = 1,
    .configs = configs,
    .supports = supports,
    .pick = pick,
    .prepare = prepare,
    .run = run,
    .destroy = destroy,
};

/* The one symbol that a host looks for. */
FP8R_API const fp8r_backend *const *fp8r_backends(void);
FP8R_API const fp8r_backend *const *fp8r_backends(void)
{
    static const fp8r_backend *const list[] = {&backend, NULL};
    return list;
}
