/* Validation: turns a user's product into a normalised problem or into one line that says what is wrong with which
 * argument. Knows nothing of devices and backends.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/conversion.h"
#include "problem/problem.h"

/* No later version's struct is larger than this. */
enum { STRUCT_BYTES_MOST = 4096 };

#define INVALID(...) fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

enum { A, B, OUT, SCALE_A, SCALE_B, BIAS, OPERANDS };

static const struct fp8r_reach reaches_nothing = {.first = UINTPTR_MAX, .last = 0};

/* Looked for once it is known that there is one. */
FP8R_COLD static fp8r_status refuse_negative(const char *name, const fp8r_matrix *matrix)
{
    const int64_t extents[3] = {matrix->batch, matrix->rows, matrix->cols};
    const int64_t strides[3] = {matrix->batch_stride, matrix->row_stride, matrix->col_stride};
    static const char *const labels[3] = {"batch", "rows", "cols"};
    static const char *const stride_labels[3] = {"batch_stride", "row_stride", "col_stride"};
    int i = 0;
    while (i < 2 && extents[i] >= 0 && strides[i] >= 0)
        i++;
    if (extents[i] < 0)
        return INVALID("%s.%s is %lld: it must not be negative", name, labels[i], (long long)extents[i]);
    return INVALID("%s.%s is %lld: strides must not be negative", name, stride_labels[i], (long long)strides[i]);
}

/* Also says where the matrix reaches: nowhere where it has no elements. */
static inline fp8r_status check_matrix(const char *name, const fp8r_matrix *matrix, struct fp8r_reach *reach)
{
    const int64_t bytes = fp8r_dtype_bytes(matrix->dtype);
    int64_t size;
    *reach = reaches_nothing;
    if (matrix->reserved != 0)
        return INVALID("%s.reserved is %d: it must be 0", name, (int)matrix->reserved);
    if ((matrix->batch | matrix->rows | matrix->cols | matrix->batch_stride | matrix->row_stride | matrix->col_stride) < 0)
        return refuse_negative(name, matrix);
    if (matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0)
        return FP8R_OK;
    if (!fp8r_size_last((const int64_t[3]){matrix->batch, matrix->rows, matrix->cols},
                        (const int64_t[3]){matrix->batch_stride, matrix->row_stride, matrix->col_stride}, &size) ||
        !fp8r_size_add(size, 1, &size) || !fp8r_size_mul(size, bytes, &size))
        return INVALID("%s spans more bytes than 64 bits count: its extents and strides are too large", name);
    const uintptr_t first = (uintptr_t)matrix->data;
    if ((first & (uintptr_t)(bytes - 1)) != 0)
        return INVALID("%s.data is not aligned to its element of %lld bytes", name, (long long)bytes);
    *reach = (struct fp8r_reach){.first = first, .last = first + (uintptr_t)size - 1};
    return FP8R_OK;
}

fp8r_status fp8r_matrix_check(const char *name, const fp8r_matrix *matrix)
{
    struct fp8r_reach reach;
    return check_matrix(name, matrix, &reach);
}

static fp8r_status check_types(const fp8r_matmul *matmul)
{
    int32_t a = matmul->a.dtype, out = matmul->out.dtype, bias = matmul->bias.dtype;
    if (!fp8r_dtype_is_fp8(a) && !fp8r_dtype_is_half(a))
        return INVALID("a.dtype is %s: it must be e4m3, e5m2, bf16 or fp16", fp8r_dtype_name(a));
    if (matmul->b.dtype != FP8R_DTYPE_E4M3)
        return INVALID("b.dtype is %s: it must be e4m3", fp8r_dtype_name(matmul->b.dtype));
    if (!fp8r_dtype_is_wide(out))
        return INVALID("out.dtype is %s: it must be bf16, fp16 or fp32", fp8r_dtype_name(out));
    if (bias != FP8R_DTYPE_NONE && !fp8r_dtype_is_wide(bias))
        return INVALID("bias.dtype is %s: it must be bf16, fp16 or fp32, or NONE for no bias", fp8r_dtype_name(bias));
    const fp8r_matrix *scales[2] = {&matmul->scale_a, &matmul->scale_b};
    for (int i = 0; i < 2; i++)
        if (scales[i]->dtype != FP8R_DTYPE_NONE && scales[i]->dtype != FP8R_DTYPE_FP32)
            return INVALID("scale_%c.dtype is %s: scales must be fp32, or NONE for 1", 'a' + i,
                           fp8r_dtype_name(scales[i]->dtype));
    if (fp8r_dtype_is_half(a) && matmul->scale_a.dtype != FP8R_DTYPE_NONE)
        return INVALID("scale_a is given, but a is %s and is quantised with scales of its own: scale_a must be NONE",
                       fp8r_dtype_name(a));
    return FP8R_OK;
}

static fp8r_status check_modes(const fp8r_matmul *matmul)
{
    if (matmul->accumulation != FP8R_ACCUMULATE_FAST && matmul->accumulation != FP8R_ACCUMULATE_PRECISE)
        return INVALID("accumulation is %d: it must be FP8R_ACCUMULATE_FAST or _PRECISE", (int)matmul->accumulation);
    if (matmul->numerics != FP8R_NUMERICS_ANY && matmul->numerics != FP8R_NUMERICS_BATCH_INVARIANT)
        return INVALID("numerics is %d: it must be FP8R_NUMERICS_ANY or _BATCH_INVARIANT", (int)matmul->numerics);
    if (matmul->flags & ~(uint32_t)FP8R_WEIGHTS_STATIC)
        return INVALID("flags is 0x%x: the one flag known is FP8R_WEIGHTS_STATIC", (unsigned)matmul->flags);
    if (matmul->reserved != 0)
        return INVALID("reserved is %u: it must be 0", (unsigned)matmul->reserved);
    return FP8R_OK;
}

static fp8r_status check_struct(const fp8r_matmul *matmul)
{
    if (!matmul)
        return INVALID("matmul is NULL");
    if (matmul->struct_size == sizeof *matmul)
        return FP8R_OK;
    if (matmul->struct_size < sizeof *matmul)
        return INVALID("matmul.struct_size is %zu: set it to sizeof(fp8r_matmul), %zu", matmul->struct_size,
                       sizeof *matmul);
    if (matmul->struct_size > STRUCT_BYTES_MOST) /* garbage, not a newer header */
        return INVALID("matmul.struct_size is %zu: set it to sizeof(fp8r_matmul), %zu", matmul->struct_size,
                       sizeof *matmul);
    const unsigned char *bytes = (const unsigned char *)matmul;
    for (size_t i = sizeof *matmul; i < matmul->struct_size; i++)
        if (bytes[i] != 0)
            return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "matmul uses a field of a newer fp8route than this library (%u)",
                             (unsigned)fp8r_version());
    return FP8R_OK;
}

FP8R_COLD static fp8r_status refuse_extent(const char *name, const char *field, int64_t extent, int64_t full,
                                           bool broadcasts, const char *meaning)
{
    return INVALID("%s.%s is %lld: it must be %lld (%s)%s", name, field, (long long)extent, (long long)full, meaning,
                   broadcasts && full != 1 ? " or 1" : "");
}

/* extent must be `full`, or 1 where it may broadcast. */
static inline fp8r_status check_extent(const char *name, const char *field, int64_t extent, int64_t full, bool broadcasts,
                                       const char *meaning)
{
    if (FP8R_LIKELY((extent == full) | (broadcasts & (extent == 1))))
        return FP8R_OK;
    return refuse_extent(name, field, extent, full, broadcasts, meaning);
}

static fp8r_status check_extents(const fp8r_matmul *matmul)
{
    int64_t batch = matmul->out.batch, m = matmul->a.rows, k = matmul->a.cols, n = matmul->b.cols;
    FP8R_TRY(check_extent("a", "batch", matmul->a.batch, batch, true, "out.batch"));
    FP8R_TRY(check_extent("b", "batch", matmul->b.batch, batch, true, "out.batch"));
    FP8R_TRY(check_extent("b", "rows", matmul->b.rows, k, false, "K, a.cols"));
    FP8R_TRY(check_extent("out", "rows", matmul->out.rows, m, false, "M, a.rows"));
    FP8R_TRY(check_extent("out", "cols", matmul->out.cols, n, false, "N, b.cols"));
    if (FP8R_LIKELY(matmul->scale_a.dtype != FP8R_DTYPE_NONE)) {
        FP8R_TRY(check_extent("scale_a", "batch", matmul->scale_a.batch, batch, true, "out.batch"));
        FP8R_TRY(check_extent("scale_a", "rows", matmul->scale_a.rows, m, true, "M, a.rows"));
        FP8R_TRY(check_extent("scale_a", "cols", matmul->scale_a.cols, 1, false, "one scale a row of a"));
    }
    if (FP8R_LIKELY(matmul->scale_b.dtype != FP8R_DTYPE_NONE)) {
        FP8R_TRY(check_extent("scale_b", "batch", matmul->scale_b.batch, batch, true, "out.batch"));
        FP8R_TRY(check_extent("scale_b", "rows", matmul->scale_b.rows, 1, false, "one scale a column of b"));
        FP8R_TRY(check_extent("scale_b", "cols", matmul->scale_b.cols, n, true, "N, b.cols"));
    }
    if (matmul->bias.dtype != FP8R_DTYPE_NONE) {
        FP8R_TRY(check_extent("bias", "batch", matmul->bias.batch, batch, true, "out.batch"));
        FP8R_TRY(check_extent("bias", "rows", matmul->bias.rows, 1, false, "one value a column of out"));
        FP8R_TRY(check_extent("bias", "cols", matmul->bias.cols, n, false, "N, b.cols"));
    }
    return FP8R_OK;
}

static fp8r_status check_matrices(const fp8r_matmul *matmul, struct fp8r_reach reaches[OPERANDS])
{
    static const char *const names[OPERANDS] = {"a", "b", "out", "scale_a", "scale_b", "bias"};
    const fp8r_matrix *const matrices[OPERANDS] = {&matmul->a,       &matmul->b,       &matmul->out,
                                                   &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    for (int i = 0; i < OPERANDS; i++) {
        reaches[i] = reaches_nothing;
        if (matrices[i]->dtype != FP8R_DTYPE_NONE)
            FP8R_TRY(check_matrix(names[i], matrices[i], &reaches[i]));
        else if (matrices[i]->data)
            return INVALID("%s.data is given but %s.dtype is NONE: set the type, or the pointer to NULL", names[i],
                           names[i]);
    }
    return FP8R_OK;
}

/* Has every operand with elements its data, and does no input reach into out? */
static bool is_apart(const struct fp8r_reach reaches[OPERANDS])
{
    int missing = 0, met = 0;
    for (int i = 0; i < OPERANDS; i++) {
        missing += reaches[i].first == 0;
        met += fp8r_reach_meets(&reaches[OUT], &reaches[i]);
    }
    return missing == 0 && met == 1; /* out itself */
}

/* Row by row, matrix by matrix: the order that nearly every output has. */
static bool is_in_order(const fp8r_matrix *out)
{
    const int64_t row_reach = (out->cols - 1) * out->col_stride;
    return out->col_stride > 0 && (out->rows == 1 || out->row_stride > row_reach) &&
           (out->batch == 1 || out->batch_stride > row_reach + (out->rows - 1) * out->row_stride);
}

/* Strides that do not overlap themselves: sorted, each must step over all that the smaller ones reach. */
fp8r_status fp8r_matrix_check_written(const char *name, const fp8r_matrix *out)
{
    if (is_in_order(out))
        return FP8R_OK;
    int64_t extents[3] = {out->batch, out->rows, out->cols};
    int64_t strides[3] = {out->batch_stride, out->row_stride, out->col_stride};
    int64_t reach = 0; /* largest offset of the dimensions looked at; fp8r_matrix_check has bounded the sum */
    for (int done = 0; done < 3; done++) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (extents[i] > 1 && (next < 0 || strides[i] < strides[next]))
                next = i;
        if (next < 0)
            return FP8R_OK;
        if (strides[next] <= reach)
            return INVALID("%s's strides (batch %lld, row %lld, col %lld) make its elements overlap each other", name,
                           (long long)out->batch_stride, (long long)out->row_stride, (long long)out->col_stride);
        reach += (extents[next] - 1) * strides[next];
        extents[next] = 1;
    }
    return FP8R_OK;
}

/* Where memory order and alignment come from. inner_is_col: the natural contiguous dimension is the columns. The operand is
 * aligned as its address and its steps are; an element's bytes are a power of two, and a step of 0 goes nowhere. */
static int32_t normalise_operand(const fp8r_matrix *matrix, bool inner_is_col, fp8r_operand *operand)
{
    int64_t inner_extent = inner_is_col ? matrix->cols : matrix->rows;
    int64_t outer_extent = inner_is_col ? matrix->rows : matrix->cols;
    int64_t inner = inner_is_col ? matrix->col_stride : matrix->row_stride;
    int64_t outer = inner_is_col ? matrix->row_stride : matrix->col_stride;
    if (inner_extent == 1)
        inner = 1;
    if (outer_extent == 1) /* one line: of the natural order where it is contiguous */
        outer = inner == 1 ? inner_extent : 1;
    int32_t layout = FP8R_LAYOUT_STRIDED;
    if (inner == 1 && outer >= inner_extent)
        layout = outer == inner_extent ? FP8R_LAYOUT_INNER : FP8R_LAYOUT_INNER_PADDED;
    else if (outer == 1 && inner >= outer_extent)
        layout = inner == outer_extent ? FP8R_LAYOUT_OUTER : FP8R_LAYOUT_OUTER_PADDED;
    operand->batch_stride = matrix->batch == 1 ? 0 : matrix->batch_stride;
    operand->row_stride = inner_is_col ? outer : inner;
    operand->col_stride = inner_is_col ? inner : outer;
    operand->dtype = matrix->dtype;
    const int64_t pitch = layout == FP8R_LAYOUT_OUTER || layout == FP8R_LAYOUT_OUTER_PADDED ? inner : outer;
    const int64_t steps = operand->batch_stride | pitch | (layout == FP8R_LAYOUT_STRIDED && inner != 1 ? inner : 0);
    const uintptr_t bytes = (uintptr_t)steps * (uintptr_t)fp8r_dtype_bytes(matrix->dtype);
    operand->align_bytes = fp8r_pointer_align((const void *)((uintptr_t)matrix->data | bytes));
    return layout;
}

/* A scale's or the bias's line: stride along its dimension, 0 where one value serves all. */
static void normalise_line(const fp8r_matrix *matrix, bool along_cols, fp8r_operand *operand)
{
    int64_t extent = along_cols ? matrix->cols : matrix->rows;
    int64_t stride = along_cols ? matrix->col_stride : matrix->row_stride;
    memset(operand, 0, sizeof *operand);
    if (matrix->dtype == FP8R_DTYPE_NONE)
        return;
    operand->dtype = matrix->dtype;
    operand->batch_stride = matrix->batch == 1 ? 0 : matrix->batch_stride;
    *(along_cols ? &operand->col_stride : &operand->row_stride) = extent == 1 ? 0 : stride;
    operand->align_bytes = fp8r_pointer_align(matrix->data);
}

/* The kind that the extents say. Where the dimension itself is 1 they cannot say it: -1. */
static int32_t scale_kind(const fp8r_matrix *scale, int64_t extent, int64_t full)
{
    if (scale->dtype == FP8R_DTYPE_NONE)
        return FP8R_SCALE_NONE;
    if (full == 1)
        return -1;
    if (extent == full)
        return FP8R_SCALE_ROW;
    return scale->batch > 1 ? FP8R_SCALE_BATCH : FP8R_SCALE_TENSOR;
}

/* The kind where neither scale says it. */
static int32_t unsaid_kind(const fp8r_matmul *matmul)
{
    bool one_a = matmul->scale_a.dtype == FP8R_DTYPE_NONE || matmul->scale_a.batch == 1;
    bool one_b = matmul->scale_b.dtype == FP8R_DTYPE_NONE || matmul->scale_b.batch == 1;
    return matmul->out.batch > 1 && one_a && one_b ? FP8R_SCALE_TENSOR : FP8R_SCALE_ROW;
}

/* With M = 1 a row-wise scale_a looks like any other; it then is of scale_b's kind, so that one family has one key for
 * every M. The same for N = 1, and 1 x 1 counts as row-wise, but where one scale of each serves a whole batch. */
static void set_scale_kinds(const fp8r_matmul *matmul, fp8r_problem *problem)
{
    int32_t a = scale_kind(&matmul->scale_a, matmul->scale_a.rows, problem->m);
    int32_t b = scale_kind(&matmul->scale_b, matmul->scale_b.cols, problem->n);
    int32_t kind_a = a >= 0 ? a : b > FP8R_SCALE_NONE ? b : unsaid_kind(matmul);
    int32_t kind_b = b >= 0 ? b : a > FP8R_SCALE_NONE ? a : unsaid_kind(matmul);
    bool per_batch_a = a < 0 && kind_a != FP8R_SCALE_ROW, per_batch_b = b < 0 && kind_b != FP8R_SCALE_ROW;
    if (per_batch_a)
        kind_a = matmul->scale_a.batch > 1 ? FP8R_SCALE_BATCH : FP8R_SCALE_TENSOR;
    if (per_batch_b)
        kind_b = matmul->scale_b.batch > 1 ? FP8R_SCALE_BATCH : FP8R_SCALE_TENSOR;
    problem->scale_a_kind = kind_a;
    problem->scale_b_kind = kind_b;
}

static void normalise(const fp8r_matmul *matmul, struct fp8r_product *product)
{
    fp8r_problem *problem = &product->problem;
    problem->batch = matmul->out.batch;
    problem->m = matmul->a.rows;
    problem->n = matmul->b.cols;
    problem->k = matmul->a.cols;
    problem->layout_a = normalise_operand(&matmul->a, true, &problem->a);
    problem->layout_b = normalise_operand(&matmul->b, false, &problem->b);
    problem->layout_out = normalise_operand(&matmul->out, true, &problem->out);
    normalise_line(&matmul->scale_a, false, &problem->scale_a);
    normalise_line(&matmul->scale_b, true, &problem->scale_b);
    normalise_line(&matmul->bias, true, &problem->bias);
    set_scale_kinds(matmul, problem);
    problem->accumulation = matmul->accumulation;
    problem->numerics = matmul->numerics;
    problem->flags = matmul->flags;
    product->pointers = (fp8r_pointers){
        .struct_size = sizeof(fp8r_pointers), .m = problem->m,           .a = matmul->a.data,
        .b = matmul->b.data,                  .out = matmul->out.data,   .scale_a = matmul->scale_a.data,
        .scale_b = matmul->scale_b.data,      .bias = matmul->bias.data,
    };
}

fp8r_status fp8r_product_init(const fp8r_matmul *matmul, enum fp8r_data data, struct fp8r_product *product)
{
    struct fp8r_reach reaches[OPERANDS];
    FP8R_TRY(check_struct(matmul));
    FP8R_TRY(check_types(matmul));
    FP8R_TRY(check_modes(matmul));
    FP8R_TRY(check_matrices(matmul, reaches));
    FP8R_TRY(check_extents(matmul));
    if (FP8R_LIKELY(matmul->out.batch > 0 && matmul->out.rows > 0 && matmul->out.cols > 0))
        FP8R_TRY(fp8r_matrix_check_written("out", &matmul->out));
    normalise(matmul, product);
    if (data == FP8R_DATA_IGNORED || fp8r_problem_is_empty(&product->problem) || is_apart(reaches))
        return FP8R_OK;
    return fp8r_data_check(&product->problem, product->problem.m, &product->pointers);
}
