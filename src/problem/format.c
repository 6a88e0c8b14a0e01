/* Writing problem and family text: the shortest that reads back as the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/grammar.h"

struct writer {
    char *text;
    size_t size, used;
};

static void put(struct writer *writer, const char *format, ...) FP8R_PRINTF(2, 3);

static void put(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    size_t left = writer->used < writer->size ? writer->size - writer->used : 0;
    va_start(arguments, format);
    int written = vsnprintf(left ? writer->text + writer->used : NULL, left, format, arguments);
    va_end(arguments);
    writer->used += written > 0 ? (size_t)written : 0;
}

static fp8r_status end(const struct writer *writer)
{
    if (writer->used < writer->size)
        return FP8R_OK;
    if (writer->size > 0)
        writer->text[0] = '\0';
    return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "size is %zu: this problem's text needs %zu bytes", writer->size,
                     writer->used + 1);
}

/* Half a: an absent scale_a is the default there. */
static void put_scales(struct writer *writer, int32_t dtype_a, int32_t scale_a, int32_t scale_b)
{
    static const char *const names[] = {"none", "tensor", "batch", "row"};
    int32_t default_a = fp8r_dtype_is_half(dtype_a) ? FP8R_SCALE_NONE : FP8R_SCALE_ROW;
    if (scale_a == FP8R_SCALE_TENSOR && scale_b == FP8R_SCALE_TENSOR) {
        put(writer, ":tensor");
        return;
    }
    if (scale_a != default_a)
        put(writer, ":sa=%s", names[scale_a]);
    if (scale_b != FP8R_SCALE_ROW)
        put(writer, ":sb=%s", names[scale_b]);
}

static void put_modes(struct writer *writer, int32_t accumulation, int32_t numerics, bool is_static)
{
    if (accumulation == FP8R_ACCUMULATE_PRECISE)
        put(writer, ":precise");
    if (numerics == FP8R_NUMERICS_BATCH_INVARIANT)
        put(writer, ":invariant");
    if (is_static)
        put(writer, ":static");
}

static void put_types(struct writer *writer, int32_t a, int32_t out, int32_t bias)
{
    if (a != FP8R_DTYPE_E4M3)
        put(writer, ":a=%s", fp8r_dtype_name(a));
    if (out != FP8R_DTYPE_BF16)
        put(writer, ":%s", fp8r_dtype_name(out));
    if (bias == out)
        put(writer, ":bias");
    else if (bias != FP8R_DTYPE_NONE)
        put(writer, ":bias=%s", fp8r_dtype_name(bias));
}

/* One operand's strides. inner_extent along its natural contiguous dimension. */
static void put_layout(struct writer *writer, const char *name, int32_t layout, const fp8r_operand *operand,
                       bool inner_is_col, const int64_t extents[3])
{
    int64_t inner = inner_is_col ? operand->col_stride : operand->row_stride;
    int64_t outer = inner_is_col ? operand->row_stride : operand->col_stride;
    int64_t line = inner_is_col ? extents[2] : extents[1], lines = inner_is_col ? extents[1] : extents[2];
    bool is_outer = layout == FP8R_LAYOUT_OUTER || layout == FP8R_LAYOUT_OUTER_PADDED;
    if (is_outer) {
        put(writer, ":t%s", name);
        int64_t swap = inner;
        inner = outer;
        outer = swap;
        swap = line;
        line = lines;
        lines = swap;
    }
    if (inner != 1)
        put(writer, ":i%s=%lld", name, (long long)inner);
    if (outer != line * inner)
        put(writer, ":ld%s=%lld", name, (long long)outer);
    if (extents[0] > 1 && operand->batch_stride != outer * lines)
        put(writer, ":b%s=%lld", name, (long long)operand->batch_stride);
}

/* The alignment to write: of the pointers, where they limit it. Found by reading the text back without any. */
static fp8r_status put_align(struct writer *writer, const fp8r_problem *problem)
{
    fp8r_matmul matmul;
    struct fp8r_product plain;
    int64_t align = 256;
    FP8R_TRY(end(writer));
    FP8R_TRY(fp8r_matmul_parse(writer->text, &matmul));
    FP8R_TRY(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &plain));
    const fp8r_operand *operands[3] = {&problem->a, &problem->b, &problem->out};
    const fp8r_operand *limits[3] = {&plain.problem.a, &plain.problem.b, &plain.problem.out};
    for (int i = 0; i < 3; i++)
        if (operands[i]->align_bytes < limits[i]->align_bytes)
            align = fp8r_size_min(align, operands[i]->align_bytes);
    if (align < 256)
        put(writer, ":align=%lld", (long long)align);
    return FP8R_OK;
}

fp8r_status fp8r_problem_format(const fp8r_problem *problem, char *text, size_t size)
{
    struct writer writer = {text, size, 0};
    const int64_t a[3] = {problem->batch, problem->m, problem->k}, b[3] = {problem->batch, problem->k, problem->n};
    const int64_t out[3] = {problem->batch, problem->m, problem->n};
    if (problem->batch != 1)
        put(&writer, "%lld*", (long long)problem->batch);
    put(&writer, "%lldx%lldx%lld", (long long)problem->m, (long long)problem->n, (long long)problem->k);
    put_types(&writer, problem->a.dtype, problem->out.dtype, problem->bias.dtype);
    put_scales(&writer, problem->a.dtype, problem->scale_a_kind, problem->scale_b_kind);
    put_modes(&writer, problem->accumulation, problem->numerics, problem->flags & FP8R_WEIGHTS_STATIC);
    if (!fp8r_problem_is_empty(problem) && problem->k > 0) {
        put_layout(&writer, "a", problem->layout_a, &problem->a, true, a);
        put_layout(&writer, "b", problem->layout_b, &problem->b, false, b);
        put_layout(&writer, "o", problem->layout_out, &problem->out, true, out);
        FP8R_TRY(put_align(&writer, problem));
    }
    return end(&writer);
}

fp8r_status fp8r_matmul_format(const fp8r_matmul *matmul, char *text, size_t size)
{
    struct fp8r_product product;
    if (!text)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "text is NULL");
    if (size > 0)
        text[0] = '\0';
    FP8R_TRY(fp8r_product_init(matmul, FP8R_DATA_IGNORED, &product));
    return fp8r_problem_format(&product.problem, text, size);
}

static void put_class(struct writer *writer, const char *name, uint8_t layout)
{
    if (layout == FP8R_LAYOUT_OUTER || layout == FP8R_LAYOUT_OUTER_PADDED)
        put(writer, ":t%s", name);
    if (layout == FP8R_LAYOUT_STRIDED)
        put(writer, ":i%s=any", name);
    if (layout == FP8R_LAYOUT_INNER_PADDED || layout == FP8R_LAYOUT_OUTER_PADDED)
        put(writer, ":ld%s=pad", name);
}

fp8r_status fp8r_family_format(const struct fp8r_key *key, char *text, size_t size)
{
    struct writer writer = {text, size, 0};
    if (key->batch != 1)
        put(&writer, "%lld*", (long long)key->batch);
    put(&writer, "Mx%lldx%lld", (long long)key->n, (long long)key->k);
    put_types(&writer, key->dtype_a, key->dtype_out, key->dtype_bias);
    put_scales(&writer, key->dtype_a, key->scale_a, key->scale_b);
    put_modes(&writer, key->accumulation, key->numerics, key->weights_static);
    put_class(&writer, "a", key->layout_a);
    put_class(&writer, "b", key->layout_b);
    put_class(&writer, "o", key->layout_out);
    FP8R_TRY(end(&writer));
    struct fp8r_key plain;
    FP8R_TRY(fp8r_family_parse(text, key->mode, &plain));
    if (plain.align_bytes != key->align_bytes)
        put(&writer, ":align=%d", (int)key->align_bytes);
    return end(&writer);
}
