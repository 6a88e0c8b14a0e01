/* From the arrays of a framework to a product: which extents are M, N, K and the batch, and what a scale's shape means.
 * Knows shapes only; what they must be to one another is validation's to say, but where a line should hold the names and
 * shapes that the caller sees.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/conversion.h"
#include "problem/problem.h"

enum { RANK_MOST = 64, SHAPE_BYTES = 128 };

#define INVALID(...) fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

static bool is_given(const fp8r_array *array)
{
    return array->extents || array->rank > 0 || array->dtype != FP8R_DTYPE_NONE;
}

/* "[2, 3]", for error lines; long ones end in "...". */
static const char *shape_of(const fp8r_array *array, char text[SHAPE_BYTES])
{
    size_t used = 1;
    text[0] = '[';
    for (int i = 0; i < array->rank && used < SHAPE_BYTES - 32; i++)
        used += (size_t)snprintf(text + used, SHAPE_BYTES - used, "%s%lld", i ? ", " : "", (long long)array->extents[i]);
    snprintf(text + used, SHAPE_BYTES - used, used < SHAPE_BYTES - 32 ? "]" : ", ...]");
    return text;
}

static fp8r_status check_array(const char *name, const fp8r_array *array, int rank_least, int rank_most)
{
    char shape[SHAPE_BYTES];
    if (array->rank < 0 || array->rank > RANK_MOST || (array->rank > 0 && (!array->extents || !array->strides)))
        return INVALID("%s has rank %d and %s: it must have 0 to %d, each with an extent and a stride", name,
                       (int)array->rank, array->extents && array->strides ? "extents" : "no extents", (int)RANK_MOST);
    for (int i = 0; i < array->rank; i++)
        if (array->extents[i] < 0)
            return INVALID("%s has an extent of %lld: extents must not be negative", name, (long long)array->extents[i]);
    if (array->rank >= rank_least && array->rank <= rank_most)
        return FP8R_OK;
    if (rank_least == rank_most)
        return INVALID("%s has shape %s: it must have %d dimensions", name, shape_of(array, shape), rank_least);
    return INVALID("%s has shape %s: it must have %d dimension or more", name, shape_of(array, shape), rank_least);
}

static bool count_of(const fp8r_array *array, int rank, int64_t *count)
{
    *count = 1;
    for (int i = 0; i < rank; i++)
        if (array->extents[i] == 0)
            return *count = 0, true;
    for (int i = 0; i < rank; i++)
        if (!fp8r_size_mul(*count, array->extents[i], count))
            return false;
    return true;
}

/* The first `rank` dimensions as one. False where no single stride walks them. */
static bool join(const fp8r_array *array, int rank, int64_t rows, int64_t *stride)
{
    int64_t joined = 1, expected;
    *stride = 0;
    if (rows == 0)
        return true;
    for (int i = rank - 1; i >= 0; i--) {
        if (array->extents[i] == 1)
            continue;
        if (joined == 1)
            *stride = array->strides[i];
        else if (!fp8r_size_mul(*stride, joined, &expected) || array->strides[i] != expected)
            return false;
        joined *= array->extents[i];
    }
    return true;
}

static fp8r_status rows_of(const char *name, const fp8r_array *array, int rank, int64_t *rows, int64_t *stride)
{
    char shape[SHAPE_BYTES];
    if (!count_of(array, rank, rows))
        return INVALID("%s has shape %s: its rows are more than 64 bits count", name, shape_of(array, shape));
    if (!join(array, rank, *rows, stride))
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "%s has shape %s, and its rows are not at one stride: copy it first",
                         name, shape_of(array, shape));
    return FP8R_OK;
}

/* Leading dimensions are rows, the last is columns. The strides of rows without elements say nothing. */
static fp8r_status flat(const char *name, const fp8r_array *array, fp8r_matrix *matrix)
{
    int last = array->rank - 1;
    *matrix = (fp8r_matrix){.data = array->data, .dtype = array->dtype, .batch = 1, .cols = array->extents[last],
                            .col_stride = array->strides[last]};
    if (matrix->cols == 0 && count_of(array, last, &matrix->rows))
        return FP8R_OK;
    return rows_of(name, array, last, &matrix->rows, &matrix->row_stride);
}

static fp8r_matrix deep(const fp8r_array *array)
{
    const int64_t *extents = array->extents, *strides = array->strides;
    return (fp8r_matrix){.data = array->data, .dtype = array->dtype, .batch = extents[0], .rows = extents[1],
                         .cols = extents[2], .batch_stride = strides[0], .row_stride = strides[1],
                         .col_stride = strides[2]};
}

static void transpose(fp8r_matrix *matrix)
{
    int64_t extent = matrix->rows, stride = matrix->row_stride;
    matrix->rows = matrix->cols;
    matrix->row_stride = matrix->col_stride;
    matrix->cols = extent;
    matrix->col_stride = stride;
}

static bool is_single(const fp8r_array *array)
{
    int64_t count;
    return count_of(array, array->rank, &count) && count == 1;
}

static fp8r_matrix single(const fp8r_array *array)
{
    return (fp8r_matrix){.data = array->data, .dtype = array->dtype, .batch = 1, .rows = 1, .cols = 1};
}

/* Does it have the first `rank` extents of the other, and then nothing or ones? */
static bool leads_like(const fp8r_array *array, const fp8r_array *other, int rank)
{
    if (array->rank != rank && !(array->rank == rank + 1 && array->extents[rank] == 1))
        return false;
    return rank == 0 || memcmp(array->extents, other->extents, (size_t)rank * sizeof *array->extents) == 0;
}

/* One value a row: one element; the leading extents, or all rows flattened, with or without a last 1. */
static fp8r_status set_upright(const char *name, const fp8r_array *scale, const char *whose, const fp8r_array *array,
                               int64_t rows, fp8r_matrix *matrix)
{
    char shape[SHAPE_BYTES], of_array[SHAPE_BYTES];
    if (is_single(scale)) {
        *matrix = single(scale);
        return FP8R_OK;
    }
    const fp8r_array flattened = {.extents = &rows, .rank = 1};
    int lead = array->rank - 1;
    int rank = leads_like(scale, array, lead) ? lead : leads_like(scale, &flattened, 1) ? 1 : -1;
    if (rank < 0)
        return INVALID("%s has shape %s, %s %s: it must have one element, or one a row", name, shape_of(scale, shape),
                       whose, shape_of(array, of_array));
    *matrix = (fp8r_matrix){.data = scale->data, .dtype = scale->dtype, .batch = 1, .cols = 1};
    return rows_of(name, scale, rank, &matrix->rows, &matrix->row_stride);
}

/* One value a column of out: [N], [1, N], or [N, 1], as layers keep the scales of a weight. */
static fp8r_status set_line(const char *name, const fp8r_array *array, int64_t n, bool may_be_single,
                            fp8r_matrix *matrix)
{
    char shape[SHAPE_BYTES];
    int last = array->rank - 1, at = -1;
    if (may_be_single && is_single(array)) {
        *matrix = single(array);
        return FP8R_OK;
    }
    if (array->rank == 1 || (array->rank == 2 && array->extents[0] == 1))
        at = last;
    else if (array->rank == 2 && array->extents[1] == 1)
        at = 0;
    if (at < 0 || array->extents[at] != n)
        return INVALID("%s has shape %s: it must have %sone element a column of out, [%lld]", name,
                       shape_of(array, shape), may_be_single ? "one element, or " : "", (long long)n);
    *matrix = (fp8r_matrix){.data = array->data, .dtype = array->dtype, .batch = 1, .rows = 1, .cols = n,
                            .col_stride = array->strides[at]};
    return FP8R_OK;
}

/* A scale or bias of a batched product: one element, a line of N (bias), or three dimensions. */
static fp8r_status set_deep(const char *name, const fp8r_array *array, bool is_bias, int64_t n, fp8r_matrix *matrix)
{
    if (is_bias && array->rank == 1)
        return set_line(name, array, n, false, matrix);
    if (!is_bias && is_single(array)) {
        *matrix = single(array);
        return FP8R_OK;
    }
    FP8R_TRY(check_array(name, array, 3, 3));
    *matrix = deep(array);
    return FP8R_OK;
}

/* A linear layer's callers know these arguments by other names than a, b and their scales. */
static fp8r_status check_linear_types(const fp8r_arrays *arrays)
{
    int32_t x = arrays->a.dtype, weight = arrays->b.dtype;
    const struct {
        const char *name;
        int32_t dtype;
    } scales[] = {{"x_scale", arrays->scale_a.dtype}, {"weight_scale", arrays->scale_b.dtype}};
    if (!fp8r_dtype_is_fp8(x) && !fp8r_dtype_is_half(x))
        return INVALID("x.dtype is %s: it must be e4m3, e5m2, bf16 or fp16", fp8r_dtype_name(x));
    if (weight != FP8R_DTYPE_E4M3)
        return INVALID("weight.dtype is %s: it must be e4m3", fp8r_dtype_name(weight));
    for (int i = 0; i < 2; i++)
        if (scales[i].dtype != FP8R_DTYPE_NONE && scales[i].dtype != FP8R_DTYPE_FP32)
            return INVALID("%s.dtype is %s: scales must be fp32, or NONE for 1", scales[i].name,
                           fp8r_dtype_name(scales[i].dtype));
    if (fp8r_dtype_is_half(x) && is_given(&arrays->scale_a))
        return INVALID("x_scale is given, but x is %s and is quantised with scales of its own: x_scale must be NONE",
                       fp8r_dtype_name(x));
    return FP8R_OK;
}

/* Here, where the shapes are known that the caller sees: a weight that should have been transposed is often met. */
static fp8r_status check_inner(const fp8r_arrays *arrays, const fp8r_matmul *matmul)
{
    bool is_linear = arrays->form == FP8R_FORM_LINEAR;
    char shape[SHAPE_BYTES], of_a[SHAPE_BYTES];
    if (matmul->a.cols == matmul->b.rows)
        return FP8R_OK;
    return INVALID("%s has shape %s, %s %s: it must have %lld %s, as many as %s has columns", is_linear ? "weight" : "b",
                   shape_of(&arrays->b, shape), is_linear ? "x" : "a", shape_of(&arrays->a, of_a),
                   (long long)matmul->a.cols, is_linear ? "columns" : "rows", is_linear ? "x" : "a");
}

static fp8r_status set_factors(const fp8r_arrays *arrays, fp8r_matmul *matmul)
{
    bool is_deep = arrays->form == FP8R_FORM_BATCHED, is_linear = arrays->form == FP8R_FORM_LINEAR;
    const char *a = is_linear ? "x" : "a", *b = is_linear ? "weight" : "b";
    FP8R_TRY(check_array(a, &arrays->a, is_deep ? 3 : 1, is_deep ? 3 : RANK_MOST));
    FP8R_TRY(check_array(b, &arrays->b, is_deep ? 3 : 2, is_deep ? 3 : 2));
    if (is_deep) {
        matmul->a = deep(&arrays->a);
        matmul->b = deep(&arrays->b);
        return FP8R_OK;
    }
    FP8R_TRY(flat(b, &arrays->b, &matmul->b));
    if (is_linear) {
        FP8R_TRY(check_linear_types(arrays));
        transpose(&matmul->b);
    }
    FP8R_TRY(flat(a, &arrays->a, &matmul->a));
    return check_inner(arrays, matmul);
}

/* An out that is not there yet is packed. */
static fp8r_status set_out(const fp8r_arrays *arrays, fp8r_matmul *matmul)
{
    const fp8r_array *out = &arrays->out;
    bool is_deep = arrays->form == FP8R_FORM_BATCHED;
    int64_t batch = matmul->a.batch != 1 ? matmul->a.batch : matmul->b.batch;
    char shape[SHAPE_BYTES], of_a[SHAPE_BYTES];
    if (!out->extents) {
        int64_t m = matmul->a.rows, n = matmul->b.cols, step;
        if (!fp8r_size_mul(m, n, &step))
            return INVALID("out's %lld rows of %lld elements are more than 64 bits count", (long long)m, (long long)n);
        matmul->out = (fp8r_matrix){.data = out->data, .dtype = out->dtype, .batch = batch, .rows = m, .cols = n,
                                    .batch_stride = step, .row_stride = n, .col_stride = 1};
        return FP8R_OK;
    }
    FP8R_TRY(check_array("out", out, arrays->a.rank, arrays->a.rank));
    if (is_deep) {
        matmul->out = deep(out);
        return FP8R_OK;
    }
    if (!leads_like(&(fp8r_array){.extents = out->extents, .rank = out->rank - 1}, &arrays->a, out->rank - 1))
        return INVALID("out has shape %s, %s %s: all but the last extent must be equal", shape_of(out, shape),
                       arrays->form == FP8R_FORM_LINEAR ? "x" : "a", shape_of(&arrays->a, of_a));
    return flat("out", out, &matmul->out);
}

static fp8r_status set_rest(const fp8r_arrays *arrays, fp8r_matmul *matmul)
{
    bool is_deep = arrays->form == FP8R_FORM_BATCHED, is_linear = arrays->form == FP8R_FORM_LINEAR;
    const char *a = is_linear ? "x" : "a", *scale_a = is_linear ? "x_scale" : "scale_a";
    const char *scale_b = is_linear ? "weight_scale" : "scale_b";
    int64_t n = matmul->b.cols;
    if (is_given(&arrays->scale_a))
        FP8R_TRY(check_array(scale_a, &arrays->scale_a, 0, RANK_MOST));
    if (is_given(&arrays->scale_b))
        FP8R_TRY(check_array(scale_b, &arrays->scale_b, 0, RANK_MOST));
    if (is_given(&arrays->bias))
        FP8R_TRY(check_array("bias", &arrays->bias, 1, RANK_MOST));
    if (is_given(&arrays->scale_a))
        FP8R_TRY(is_deep ? set_deep(scale_a, &arrays->scale_a, false, n, &matmul->scale_a)
                         : set_upright(scale_a, &arrays->scale_a, a, &arrays->a, matmul->a.rows, &matmul->scale_a));
    if (is_given(&arrays->scale_b))
        FP8R_TRY(is_deep ? set_deep(scale_b, &arrays->scale_b, false, n, &matmul->scale_b)
                         : set_line(scale_b, &arrays->scale_b, n, true, &matmul->scale_b));
    if (is_given(&arrays->bias))
        FP8R_TRY(is_deep ? set_deep("bias", &arrays->bias, true, n, &matmul->bias)
                         : set_line("bias", &arrays->bias, n, false, &matmul->bias));
    return FP8R_OK;
}

fp8r_status fp8r_matmul_from_arrays(const fp8r_arrays *arrays, fp8r_matmul *matmul)
{
    if (!arrays)
        return INVALID("arrays is NULL");
    if (arrays->struct_size != sizeof *arrays)
        return INVALID("arrays.struct_size is %zu: set it to sizeof(fp8r_arrays), %zu", arrays->struct_size,
                       sizeof *arrays);
    if (arrays->form < FP8R_FORM_PLAIN || arrays->form > FP8R_FORM_BATCHED)
        return INVALID("arrays.form is %d: it must be FP8R_FORM_PLAIN, _LINEAR or _BATCHED", (int)arrays->form);
    if (!matmul)
        return INVALID("matmul is NULL");
    fp8r_matmul made = {.struct_size = sizeof made, .accumulation = arrays->accumulation, .numerics = arrays->numerics,
                        .flags = arrays->flags};
    struct fp8r_product product;
    FP8R_TRY(set_factors(arrays, &made));
    FP8R_TRY(set_out(arrays, &made));
    FP8R_TRY(set_rest(arrays, &made));
    FP8R_TRY(fp8r_product_init(&made, FP8R_DATA_IGNORED, &product));
    *matmul = made;
    return FP8R_OK;
}

fp8r_status fp8r_quantize_from_arrays(const fp8r_array *in, const fp8r_array *out, const fp8r_array *scale,
                                      int32_t scaling, fp8r_matrix *in_matrix, fp8r_matrix *out_matrix,
                                      fp8r_matrix *scale_matrix)
{
    fp8r_matrix x, q, s;
    struct fp8r_conversion conversion;
    char shape[SHAPE_BYTES], of_in[SHAPE_BYTES];
    if (!in || !out || !scale || !in_matrix || !out_matrix || !scale_matrix)
        return INVALID("an array or a matrix is NULL: all six must be given");
    FP8R_TRY(check_array("in", in, 1, RANK_MOST));
    FP8R_TRY(check_array("out", out, in->rank, in->rank));
    FP8R_TRY(check_array("scale", scale, 0, RANK_MOST));
    if (memcmp(in->extents, out->extents, (size_t)in->rank * sizeof *in->extents) != 0)
        return INVALID("out has shape %s, in %s: they must be equal", shape_of(out, shape), shape_of(in, of_in));
    FP8R_TRY(flat("in", in, &x));
    FP8R_TRY(flat("out", out, &q));
    bool is_line = in->rank == 2 && scale->rank == 2 && scale->extents[0] == 1 && scale->extents[1] == in->extents[1];
    if (is_line && !is_single(scale))
        s = (fp8r_matrix){.data = scale->data, .dtype = scale->dtype, .batch = 1, .rows = 1, .cols = scale->extents[1],
                          .col_stride = scale->strides[1]};
    else
        FP8R_TRY(set_upright("scale", scale, "in", in, x.rows, &s));
    FP8R_TRY(fp8r_quantize_check_shapes(&x, &q, &s, scaling, &conversion));
    *in_matrix = x;
    *out_matrix = q;
    *scale_matrix = s;
    return FP8R_OK;
}
