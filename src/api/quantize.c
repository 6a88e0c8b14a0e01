/* quantize and dequantize on a CPU: a line of in at a time where a scale serves the whole line, a window of columns at a
 * time where every column has its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/quantize.h"

#include <math.h>

#include "api/call.h"
#include "backend/steps.h"
#include "base/convert.h"
#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/conversion.h"

enum { WINDOW_COLS = 256 };

/* A conversion on a CPU, and what quantises a line of it there. */
struct host_work {
    struct fp8r_conversion conversion;
    const struct fp8r_quantizer *quantizer;
};

static int64_t place(const fp8r_matrix *matrix, int64_t batch, int64_t row, int64_t col)
{
    return batch * matrix->batch_stride + row * matrix->row_stride + col * matrix->col_stride;
}

static const void *line_of(const fp8r_matrix *matrix, int64_t batch, int64_t row)
{
    return (const unsigned char *)matrix->data + place(matrix, batch, row, 0) * fp8r_dtype_bytes(matrix->dtype);
}

static float *scale_at(const fp8r_matrix *scale, int64_t batch, int64_t row, int64_t col)
{
    return (float *)scale->data + place(scale, batch, row, col);
}

/* Several lines may share a group: magnitudes order like their bits, so the largest wins in any order. */
static void raise_to(float *amax, float value)
{
    uint32_t wanted = fp8r_float_bits(value), seen;
    __atomic_load((uint32_t *)(void *)amax, &seen, __ATOMIC_RELAXED);
    while (wanted > seen && !__atomic_compare_exchange((uint32_t *)(void *)amax, &seen, &wanted, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        continue;
}

static void line_amax(void *argument, int64_t index)
{
    const struct host_work *work = argument;
    const struct fp8r_conversion *it = &work->conversion;
    int64_t batch = index / it->in.rows, row = index % it->in.rows;
    raise_to(scale_at(&it->scale, batch, row, 0),
             work->quantizer->amax(line_of(&it->in, batch, row), it->in.dtype, it->in.col_stride, it->in.cols, 0.0f));
}

static void line_codes(void *argument, int64_t index)
{
    const struct host_work *work = argument;
    const struct fp8r_conversion *it = &work->conversion;
    int64_t batch = index / it->in.rows, row = index % it->in.rows;
    work->quantizer->codes(line_of(&it->in, batch, row), it->in.dtype, it->in.col_stride, it->in.cols,
                           1.0f / *scale_at(&it->scale, batch, row, 0),
                           (uint8_t *)it->out.data + place(&it->out, batch, row, 0), it->out.col_stride);
}

/* Calls step for every element of a window of columns; a window's groups belong to its task alone. */
static void walk_window(const struct fp8r_conversion *it, int64_t index, void (*step)(const struct fp8r_conversion *,
                        int64_t batch, int64_t row, int64_t col))
{
    int64_t first = index * WINDOW_COLS, last = fp8r_size_min(first + WINDOW_COLS, it->in.cols);
    for (int64_t batch = 0; batch < it->in.batch; batch++)
        for (int64_t row = 0; row < it->in.rows; row++)
            for (int64_t col = first; col < last; col++)
                step(it, batch, row, col);
}

static void raise_element(const struct fp8r_conversion *it, int64_t batch, int64_t row, int64_t col)
{
    float value = fabsf(fp8r_load(it->in.data, place(&it->in, batch, row, col), it->in.dtype));
    float *amax = scale_at(&it->scale, batch, row, col);
    if (value > *amax) /* false for NaN, which does not count */
        *amax = value;
}

static void code_element(const struct fp8r_conversion *it, int64_t batch, int64_t row, int64_t col)
{
    float inverse = 1.0f / *scale_at(&it->scale, batch, row, col);
    float value = fp8r_load(it->in.data, place(&it->in, batch, row, col), it->in.dtype);
    ((uint8_t *)it->out.data)[place(&it->out, batch, row, col)] = fp8r_quantize_code(value * inverse);
}

static void window_amax(void *argument, int64_t index)
{
    const struct host_work *work = argument;
    walk_window(&work->conversion, index, raise_element);
}

static void window_codes(void *argument, int64_t index)
{
    const struct host_work *work = argument;
    walk_window(&work->conversion, index, code_element);
}

static void each_scale(const fp8r_matrix *scale, void (*change)(float *))
{
    for (int64_t batch = 0; batch < scale->batch; batch++)
        for (int64_t row = 0; row < scale->rows; row++)
            for (int64_t col = 0; col < scale->cols; col++)
                change(scale_at(scale, batch, row, col));
}

static void set_zero(float *scale)
{
    *scale = 0.0f;
}

static void amax_to_scale(float *scale)
{
    *scale = fp8r_quantize_scale(*scale);
}

static void quantize_on_host(struct fp8r_context *context, const struct fp8r_conversion *conversion, int32_t scaling)
{
    struct host_work work = {*conversion, fp8r_quantizer_of(context->device.cpu_features)};
    const fp8r_matrix *in = &conversion->in;
    int64_t lines = in->batch * in->rows, windows = (in->cols - 1) / WINDOW_COLS + 1;
    bool by_line = conversion->scale.cols == 1;
    if (scaling == FP8R_SCALING_COMPUTE) {
        each_scale(&conversion->scale, set_zero);
        fp8r_pool_parallel(context->pool, by_line ? lines : windows, by_line ? line_amax : window_amax, &work);
        each_scale(&conversion->scale, amax_to_scale);
    }
    fp8r_pool_parallel(context->pool, by_line ? lines : windows, by_line ? line_codes : window_codes, &work);
}

/* An empty matrix has nothing that bounds its other extents. */
static bool is_empty(const fp8r_matrix *matrix)
{
    return matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0;
}

fp8r_status fp8r_quantize(fp8r_context *context, const fp8r_matrix *in, const fp8r_matrix *out, const fp8r_matrix *scale,
                          int32_t scaling, void *stream)
{
    struct fp8r_conversion conversion;
    struct fp8r_call call;
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    FP8R_TRY(fp8r_quantize_check(in, out, scale, scaling, &conversion));
    if (is_empty(in))
        return FP8R_OK;
    if (!context->cuda) {
        quantize_on_host(context, &conversion, scaling);
        return FP8R_OK;
    }
    FP8R_TRY(fp8r_call_begin(context, &call));
    fp8r_status status =
        fp8r_step_quantize(&context->device, context->services.flags, &conversion.in, &conversion.out, &conversion.scale,
                           scaling, stream);
    fp8r_call_end(&call);
    return status;
}

static void line_values(void *argument, int64_t index)
{
    const struct fp8r_conversion *it = argument;
    int64_t batch = index / it->in.rows, row = index % it->in.rows;
    bool has_scale = it->scale.dtype != FP8R_DTYPE_NONE;
    for (int64_t col = 0; col < it->in.cols; col++) {
        float value = fp8r_load(it->in.data, place(&it->in, batch, row, col), it->in.dtype);
        float scale = has_scale ? *scale_at(&it->scale, batch, row, col) : 1.0f;
        fp8r_store(it->out.data, place(&it->out, batch, row, col), it->out.dtype, value * scale);
    }
}

fp8r_status fp8r_dequantize(fp8r_context *context, const fp8r_matrix *in, const fp8r_matrix *scale,
                            const fp8r_matrix *out, void *stream)
{
    struct fp8r_conversion conversion;
    struct fp8r_call call;
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    FP8R_TRY(fp8r_dequantize_check(in, scale, out, &conversion));
    if (is_empty(in))
        return FP8R_OK;
    if (!context->cuda) {
        fp8r_pool_parallel(context->pool, in->batch * in->rows, line_values, &conversion);
        return FP8R_OK;
    }
    FP8R_TRY(fp8r_call_begin(context, &call));
    fp8r_status status =
        fp8r_step_dequantize(&context->device, context->services.flags, &conversion.in, &conversion.scale,
                             &conversion.out, stream);
    fp8r_call_end(&call);
    return status;
}
