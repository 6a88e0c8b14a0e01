/* Making the yardstick, checking it, and comparing.
 *
 * An element's bound needs the root of the sum of its terms' squares, sqrt(sum a^2 b^2). It is replaced by something that
 * is never smaller and belongs to a row and a column alone: sqrt(sum a^4) sqrt(sum b^4) under one more root
 * (Cauchy-Schwarz). For normal operands that is 1.7 times as much.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/yardstick.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"
#include "measure/area.h"
#include "measure/judge.h"
#include "tool_status.h"

/* Of one addition in the portable row: the sums of its tensor core instructions are fp32, cut instead of rounded. */
static const double portable_unit = 0x1p-23;

struct fp8r_yardstick {
    const struct fp8r_measure_device *device;
    struct fp8r_comparison comparison; /* but for out's data */
    float *expected, *spread_a, *spread_b;
};

void fp8r_yardstick_destroy(struct fp8r_yardstick *yardstick)
{
    if (!yardstick) return;
    const struct fp8r_measure_device *device = yardstick->device;
    device->release(device->user, yardstick->expected);
    device->release(device->user, yardstick->spread_a);
    device->release(device->user, yardstick->spread_b);
    free(yardstick);
}

static fp8r_matrix on_device(const fp8r_matrix *matrix, const void *data)
{
    fp8r_matrix there = *matrix;
    memcpy(&there.data, &data, sizeof data); /* nothing writes through it */
    return there;
}

/* The product in fp32, its result packed. */
static fp8r_matmul in_fp32(const fp8r_matmul *member, const fp8r_pointers *pointers)
{
    fp8r_matmul product = *member;
    product.a = on_device(&member->a, pointers->a);
    product.b = on_device(&member->b, pointers->b);
    product.scale_a = on_device(&member->scale_a, pointers->scale_a);
    product.scale_b = on_device(&member->scale_b, pointers->scale_b);
    product.bias = on_device(&member->bias, pointers->bias);
    product.out = (fp8r_matrix){.dtype = FP8R_DTYPE_FP32,
                                .batch = member->out.batch,
                                .rows = member->out.rows,
                                .cols = member->out.cols,
                                .batch_stride = member->out.rows * member->out.cols,
                                .row_stride = member->out.cols,
                                .col_stride = 1};
    product.numerics = FP8R_NUMERICS_ANY;
    product.flags = 0;
    return product;
}

/* ---- Running the portable row ---- */

struct call {
    const fp8r_plan *plan;
    fp8r_pointers pointers;
    void *workspace;
};

static fp8r_status make_call(void *arg, void *stream)
{
    const struct call *call = arg;
    return fp8r_plan_run(call->plan, &call->pointers, call->workspace, fp8r_plan_workspace(call->plan), stream);
}

static fp8r_status run(const struct fp8r_measure_device *device, struct call *call)
{
    struct fp8r_recording *recording = NULL;
    int64_t ignored_ns;
    const size_t bytes = fp8r_plan_workspace(call->plan);
    call->workspace = bytes > 0 ? device->allocate(device->user, bytes) : NULL;
    if (bytes > 0 && !call->workspace) return fp8r_fail_memory("a workspace on the device");
    fp8r_status status = device->record(device->user, 1, make_call, call, &recording);
    if (status == FP8R_OK) status = device->time(device->user, recording, &ignored_ns);
    if (recording) device->forget(device->user, recording);
    device->release(device->user, call->workspace);
    return status;
}

static fp8r_status compute(fp8r_context *context, const struct fp8r_measure_device *device,
                           const fp8r_matmul *product, const fp8r_pointers *pointers, float *out, size_t bytes)
{
    struct call call = {.pointers = *pointers};
    fp8r_plan *plan = NULL;
    FP8R_TRY(fp8r_plan_create(context, product, "cuda", &plan));
    call.plan = plan;
    call.pointers.out = out;
    fp8r_status status = device->judge->fill(device->user, out, FP8R_POISON, bytes);
    if (status == FP8R_OK) status = run(device, &call);
    fp8r_plan_destroy(plan);
    return status;
}

/* ---- Checking it ---- */

static int64_t index_of(const fp8r_matrix *out, const struct fp8r_place *place)
{
    return (place->batch * out->rows + place->row) * out->cols + place->col;
}

/* The elements that are looked at, in the host's memory; NULL when there is none. */
static float *fetch(const struct fp8r_measure_device *device, const struct fp8r_verifier *verifier,
                    const fp8r_matrix *out, const float *expected, fp8r_status *status)
{
    size_t count = 0;
    const struct fp8r_place *places = fp8r_verifier_places(verifier, &count);
    const size_t all = (size_t)(out->batch * out->rows * out->cols);
    float *values = malloc((places ? count : all) * sizeof *values);
    int64_t *indices = places ? malloc(count * sizeof *indices) : NULL;
    if (values && places && indices) {
        for (size_t i = 0; i < count; i++)
            indices[i] = index_of(out, &places[i]);
        *status = device->judge->gather(device->user, expected, indices, count, values);
    } else if (values && !places) {
        *status = device->copy_out(device->user, values, expected, all * sizeof *values);
    } else {
        free(values);
        values = NULL;
    }
    free(indices);
    return values;
}

static int check(const struct fp8r_measure_device *device, const fp8r_matmul *member, const fp8r_matrix *out,
                 const float *expected, const struct fp8r_verify_options *options, bool *is_good,
                 struct fp8r_tool_error *error)
{
    struct fp8r_verify_options strict = *options;
    struct fp8r_verifier *verifier = NULL;
    struct fp8r_verdict verdict;
    fp8r_matmul product = *member;
    fp8r_status status = FP8R_OK;
    size_t count;
    product.out = *out;
    strict.has_tensor_cores = false;
    strict.accumulate_unit = portable_unit;
    int code = fp8r_verifier_create(&product, &strict, &verifier, error);
    if (code != FP8R_EXIT_GOOD) return code;
    float *values = fetch(device, verifier, out, expected, &status);
    code = values ? fp8r_tool_status(error, status) : fp8r_tool_error_memory(error, "the elements to check");
    if (code == FP8R_EXIT_GOOD) {
        if (fp8r_verifier_places(verifier, &count))
            fp8r_verify_values(verifier, values, &verdict);
        else
            fp8r_verify(verifier, values, &verdict);
        *is_good = verdict.is_good;
    }
    free(values);
    fp8r_verifier_destroy(verifier);
    return code;
}

/* ---- Making ---- */

static void set_comparison(struct fp8r_yardstick *yardstick, const fp8r_matmul *member, const fp8r_pointers *pointers)
{
    const struct fp8r_error_shares shares = fp8r_error_shares_of(member, portable_unit);
    yardstick->comparison = (struct fp8r_comparison){.out = member->out,
                                                     .scale_a = on_device(&member->scale_a, pointers->scale_a),
                                                     .scale_b = on_device(&member->scale_b, pointers->scale_b),
                                                     .bias = on_device(&member->bias, pointers->bias),
                                                     .expected = yardstick->expected,
                                                     .spread_a = yardstick->spread_a,
                                                     .spread_b = yardstick->spread_b,
                                                     .sum_share = shares.sum,
                                                     .spread_share = shares.spread,
                                                     .value_share = shares.value,
                                                     .least = 8 * (double)FLT_TRUE_MIN};
}

static bool allocate(struct fp8r_yardstick *yardstick, const fp8r_matrix *out, size_t *bytes)
{
    const struct fp8r_measure_device *device = yardstick->device;
    const size_t size = sizeof(float);
    *bytes = (size_t)(out->batch * out->rows * out->cols) * size;
    yardstick->expected = device->allocate(device->user, *bytes);
    yardstick->spread_a = device->allocate(device->user, (size_t)(out->batch * out->rows) * size);
    yardstick->spread_b = device->allocate(device->user, (size_t)(out->batch * out->cols) * size);
    return yardstick->expected && yardstick->spread_a && yardstick->spread_b;
}

/* Expected values and the spread of all lines. */
static fp8r_status measure(struct fp8r_yardstick *yardstick, fp8r_context *context, const fp8r_matmul *product,
                           const fp8r_pointers *pointers, size_t bytes)
{
    const struct fp8r_measure_device *device = yardstick->device;
    const int64_t batch = product->out.batch;
    FP8R_TRY(compute(context, device, product, pointers, yardstick->expected, bytes));
    FP8R_TRY(device->judge->spread(device->user, &product->a, batch, true, yardstick->spread_a));
    return device->judge->spread(device->user, &product->b, batch, false, yardstick->spread_b);
}

int fp8r_yardstick_create(fp8r_context *context, const struct fp8r_measure_device *device, const fp8r_matmul *member,
                          const fp8r_pointers *pointers, const struct fp8r_verify_options *options,
                          struct fp8r_yardstick **yardstick, struct fp8r_tool_error *error)
{
    bool is_good = false;
    size_t bytes = 0;
    int code = FP8R_EXIT_GOOD;
    *yardstick = NULL;
    if (!device->judge || !fp8r_dtype_is_fp8(member->a.dtype) || member->a.cols == 0) return FP8R_EXIT_GOOD;
    struct fp8r_yardstick *made = calloc(1, sizeof *made);
    if (!made) return fp8r_tool_error_memory(error, "the expected result");
    made->device = device;
    const fp8r_matmul product = in_fp32(member, pointers);
    fp8r_status status = allocate(made, &product.out, &bytes) ? measure(made, context, &product, pointers, bytes)
                                                              : FP8R_ERROR_OUT_OF_MEMORY;
    if (status == FP8R_ERROR_DEVICE) code = fp8r_tool_status(error, status);
    if (status == FP8R_OK) code = check(device, member, &product.out, made->expected, options, &is_good, error);
    if (is_good) {
        set_comparison(made, member, pointers);
        *yardstick = made;
    } else {
        fp8r_yardstick_destroy(made);
    }
    return code;
}

/* ---- Judging ---- */

/* The first wrong element in words. */
static int describe(const struct fp8r_yardstick *yardstick, const fp8r_matrix *out, uint64_t first,
                    struct fp8r_verdict *verdict, struct fp8r_tool_error *error)
{
    const struct fp8r_measure_device *device = yardstick->device;
    const int64_t at = (int64_t)first, row = at / out->cols;
    const struct fp8r_place place = {row / out->rows, row % out->rows, at % out->cols};
    const int64_t offset = place.batch * out->batch_stride + place.row * out->row_stride + place.col * out->col_stride;
    const size_t bytes = (size_t)fp8r_dtype_bytes(out->dtype);
    uint32_t element = 0;
    float expected = 0;
    fp8r_status status = device->copy_out(device->user, &element, (const uint8_t *)out->data + (size_t)offset * bytes, bytes);
    if (status == FP8R_OK)
        status = device->copy_out(device->user, &expected, yardstick->expected + at, sizeof expected);
    snprintf(verdict->text, sizeof verdict->text, "out[%lld,%lld,%lld] is %.9g: it must be %.9g or near it",
             (long long)place.batch, (long long)place.row, (long long)place.col,
             (double)fp8r_load(&element, 0, out->dtype), (double)expected);
    return fp8r_tool_status(error, status);
}

int fp8r_yardstick_judge(const struct fp8r_yardstick *yardstick, void *out, struct fp8r_verdict *verdict,
                         struct fp8r_tool_error *error)
{
    const struct fp8r_measure_device *device = yardstick->device;
    struct fp8r_comparison comparison = yardstick->comparison;
    struct fp8r_comparison_result result;
    comparison.out.data = out;
    int code = fp8r_tool_status(error, device->judge->compare(device->user, &comparison, &result));
    if (code != FP8R_EXIT_GOOD) return code;
    *verdict = (struct fp8r_verdict){.is_good = result.wrong == 0,
                                     .is_whole = true,
                                     .checked = comparison.out.batch * comparison.out.rows * comparison.out.cols,
                                     .wrong = (int64_t)result.wrong};
    return result.wrong > 0 ? describe(yardstick, &comparison.out, result.first, verdict, error) : FP8R_EXIT_GOOD;
}
