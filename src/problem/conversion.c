/* Judging the arguments of quantize and dequantize.
 * SPDX-License-Identifier: Apache-2.0 */
#include "problem/conversion.h"

#include "base/dtype.h"
#include "base/status.h"
#include "problem/problem.h"

#define INVALID(...) fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

static fp8r_operand operand_of(const fp8r_matrix *matrix)
{
    return (fp8r_operand){.batch_stride = matrix->batch_stride,
                          .row_stride = matrix->row_stride,
                          .col_stride = matrix->col_stride,
                          .dtype = matrix->dtype};
}

static bool overlap(const fp8r_matrix *out, const fp8r_matrix *in)
{
    fp8r_operand out_operand = operand_of(out), in_operand = operand_of(in);
    const int64_t out_extents[3] = {out->batch, out->rows, out->cols}, in_extents[3] = {in->batch, in->rows, in->cols};
    return fp8r_overlap_certain(out->data, &out_operand, in->data, &in_operand, out_extents, in_extents);
}

static fp8r_status check_scale(const fp8r_matrix *scale, const fp8r_matrix *in)
{
    const int64_t extents[3] = {scale->batch, scale->rows, scale->cols}, full[3] = {in->batch, in->rows, in->cols};
    static const char *const labels[3] = {"batch", "rows", "cols"};
    if (scale->dtype != FP8R_DTYPE_FP32)
        return INVALID("scale.dtype is %s: it must be fp32", fp8r_dtype_name(scale->dtype));
    for (int i = 0; i < 3; i++)
        if (extents[i] != full[i] && extents[i] != 1)
            return INVALID("scale.%s is %lld: it must be in.%s, %lld, or 1", labels[i], (long long)extents[i], labels[i],
                           (long long)full[i]);
    return fp8r_matrix_check("scale", scale);
}

static void normalise_scale(fp8r_matrix *scale)
{
    scale->batch_stride = scale->batch == 1 ? 0 : scale->batch_stride;
    scale->row_stride = scale->rows == 1 ? 0 : scale->row_stride;
    scale->col_stride = scale->cols == 1 ? 0 : scale->col_stride;
}

static bool is_empty(const fp8r_matrix *matrix)
{
    return matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0;
}

/* What both ways share, once the types are known to be right. */
static fp8r_status check_shapes(const fp8r_matrix *in, const fp8r_matrix *scale, const fp8r_matrix *out,
                                bool scale_is_written, struct fp8r_conversion *conversion)
{
    bool has_scale = scale && scale->dtype != FP8R_DTYPE_NONE;
    FP8R_TRY(fp8r_matrix_check("in", in));
    FP8R_TRY(fp8r_matrix_check("out", out));
    if (in->batch != out->batch || in->rows != out->rows || in->cols != out->cols)
        return INVALID("out is %lld x %lld x %lld: it must have in's extents, %lld x %lld x %lld", (long long)out->batch,
                       (long long)out->rows, (long long)out->cols, (long long)in->batch, (long long)in->rows,
                       (long long)in->cols);
    if (has_scale)
        FP8R_TRY(check_scale(scale, in));
    *conversion = (struct fp8r_conversion){.in = *in, .out = *out};
    if (has_scale)
        conversion->scale = *scale;
    normalise_scale(&conversion->scale);
    if (is_empty(in))
        return FP8R_OK;
    FP8R_TRY(fp8r_matrix_check_written("out", out));
    return scale_is_written ? fp8r_matrix_check_written("scale", scale) : FP8R_OK;
}

static fp8r_status check_data(const fp8r_matrix *in, const fp8r_matrix *scale, const fp8r_matrix *out,
                              bool scale_is_written)
{
    bool has_scale = scale && scale->dtype != FP8R_DTYPE_NONE;
    if (is_empty(in))
        return FP8R_OK;
    if (!in->data || !out->data || (has_scale && !scale->data))
        return INVALID("%s.data is NULL", !in->data ? "in" : !out->data ? "out" : "scale");
    if (overlap(out, in) || (has_scale && overlap(out, scale)))
        return INVALID("out overlaps %s in memory", overlap(out, in) ? "in" : "scale");
    if (scale_is_written && overlap(scale, in))
        return INVALID("scale overlaps in in memory, and is written");
    return FP8R_OK;
}

fp8r_status fp8r_quantize_check_shapes(const fp8r_matrix *in, const fp8r_matrix *out, const fp8r_matrix *scale,
                                       int32_t scaling, struct fp8r_conversion *conversion)
{
    if (!in || !out || !scale)
        return INVALID("%s is NULL", !in ? "in" : !out ? "out" : "scale");
    if (!fp8r_dtype_is_wide(in->dtype))
        return INVALID("in.dtype is %s: it must be bf16, fp16 or fp32", fp8r_dtype_name(in->dtype));
    if (out->dtype != FP8R_DTYPE_E4M3)
        return INVALID("out.dtype is %s: it must be e4m3", fp8r_dtype_name(out->dtype));
    if (scaling != FP8R_SCALING_COMPUTE && scaling != FP8R_SCALING_GIVEN)
        return INVALID("scaling is %d: it must be FP8R_SCALING_COMPUTE or FP8R_SCALING_GIVEN", (int)scaling);
    if (scale->dtype == FP8R_DTYPE_NONE)
        return INVALID("scale.dtype is none: it must be fp32");
    return check_shapes(in, scale, out, scaling == FP8R_SCALING_COMPUTE, conversion);
}

fp8r_status fp8r_quantize_check(const fp8r_matrix *in, const fp8r_matrix *out, const fp8r_matrix *scale,
                                int32_t scaling, struct fp8r_conversion *conversion)
{
    FP8R_TRY(fp8r_quantize_check_shapes(in, out, scale, scaling, conversion));
    return check_data(in, scale, out, scaling == FP8R_SCALING_COMPUTE);
}

fp8r_status fp8r_dequantize_check(const fp8r_matrix *in, const fp8r_matrix *scale, const fp8r_matrix *out,
                                  struct fp8r_conversion *conversion)
{
    if (!in || !out)
        return INVALID("%s is NULL", !in ? "in" : "out");
    if (!fp8r_dtype_is_fp8(in->dtype))
        return INVALID("in.dtype is %s: it must be e4m3 or e5m2", fp8r_dtype_name(in->dtype));
    if (!fp8r_dtype_is_wide(out->dtype))
        return INVALID("out.dtype is %s: it must be bf16, fp16 or fp32", fp8r_dtype_name(out->dtype));
    FP8R_TRY(check_shapes(in, scale, out, false, conversion));
    return check_data(in, scale, out, false);
}
