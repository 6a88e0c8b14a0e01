/* Small products of every kind, good and bad, made from the input's bytes: whatever validation lets pass, each row that
 * says that it can run it does so, with the same values as the reference and no byte outside its operands touched (they
 * stand in exactly sized blocks, the sanitizer watches). What is refused leaves out as it was.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/context.h"
#include "base/convert.h"
#include "base/dtype.h"
#include "problem/problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPERANDS = 6, MOST_BYTES = 1 << 16, POISON = 0xFF };

struct input {
    const uint8_t *at, *end;
};

static int64_t take(struct input *input, int64_t below)
{
    return input->at < input->end ? *input->at++ % below : 0;
}

/* Extents mostly small, sometimes at the edge of what 64 bits count. */
static int64_t take_extent(struct input *input)
{
    static const int64_t odd[] = {0, 1, 2, 16, 17, 33, 64, -1, INT64_MAX, (int64_t)1 << 31, (int64_t)1 << 62};
    int64_t kind = take(input, 16);
    return kind < 13 ? take(input, 24) : odd[take(input, 11)];
}

static fp8r_matrix take_matrix(struct input *input, int32_t dtype, int64_t batch, int64_t rows, int64_t cols)
{
    fp8r_matrix matrix = {.dtype = dtype, .batch = batch, .rows = rows, .cols = cols};
    int64_t form = take(input, 8);
    matrix.row_stride = cols > 0 && cols < 1000 ? cols : 1;
    matrix.col_stride = 1;
    if (form == 1 || form == 2) {
        matrix.row_stride = 1;
        matrix.col_stride = rows > 0 && rows < 1000 ? rows : 1;
    }
    if (form == 2 || form == 3)
        matrix.row_stride += take(input, 20);
    if (form == 4) {
        matrix.row_stride = take(input, 40);
        matrix.col_stride = take(input, 40);
    }
    matrix.batch_stride = form == 5 ? take(input, 100) : 1000;
    if (form == 6) /* one field of many spoiled */
        *(take(input, 2) ? &matrix.row_stride : &matrix.batch_stride) = take_extent(input);
    if (form == 7 && take(input, 4) == 0)
        matrix.dtype = (int32_t)take(input, 8) - 1;
    return matrix;
}

static fp8r_matmul take_matmul(struct input *input)
{
    static const int32_t types_a[] = {FP8R_DTYPE_E4M3, FP8R_DTYPE_E5M2, FP8R_DTYPE_BF16, FP8R_DTYPE_FP16, FP8R_DTYPE_FP32};
    fp8r_matmul it = {.struct_size = sizeof it};
    int64_t batch = take(input, 4) ? 1 : take(input, 4), m = take_extent(input), n = take_extent(input), k = take_extent(input);
    int64_t kind_a = take(input, 4), kind_b = take(input, 4), bias = take(input, 4), type_a = take(input, 16);
    it.a = take_matrix(input, types_a[type_a < 12 ? type_a % 4 : type_a == 15 ? 4 : 0], take(input, 8) ? batch : 1, m, k);
    it.b = take_matrix(input, FP8R_DTYPE_E4M3, take(input, 8) ? batch : 1, k, n);
    it.out = take_matrix(input, FP8R_DTYPE_BF16 + (int32_t)take(input, 3), batch, m, n);
    if (kind_a > 0 && (it.a.dtype == FP8R_DTYPE_E4M3 || it.a.dtype == FP8R_DTYPE_E5M2 || take(input, 8) == 0))
        it.scale_a = take_matrix(input, FP8R_DTYPE_FP32, kind_a == 1 ? 1 : batch, kind_a == 3 ? m : 1, 1);
    if (kind_b > 0)
        it.scale_b = take_matrix(input, FP8R_DTYPE_FP32, kind_b == 1 ? 1 : batch, 1, kind_b == 3 ? n : 1);
    if (bias > 0)
        it.bias = take_matrix(input, FP8R_DTYPE_BF16 + (int32_t)bias - 1, batch, 1, n);
    it.accumulation = (int32_t)take(input, 8) == 7;
    it.numerics = (int32_t)take(input, 4) == 3;
    it.flags = (uint32_t)take(input, 32) == 31 ? 2 : 0;
    it.reserved = (uint32_t)take(input, 64) == 63;
    return it;
}

static fp8r_matrix *operand_of(fp8r_matmul *matmul, int i)
{
    fp8r_matrix *const all[] = {&matmul->a, &matmul->b, &matmul->out, &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    return all[i];
}

/* Bytes up to the last element; -1 where that is more than this fuzzer wants. */
static int64_t span_bytes(const fp8r_matrix *matrix)
{
    const int64_t extents[] = {matrix->batch, matrix->rows, matrix->cols};
    const int64_t strides[] = {matrix->batch_stride, matrix->row_stride, matrix->col_stride};
    double last = 0;
    for (int i = 0; i < 3; i++) {
        if (extents[i] == 0)
            return 0;
        if (extents[i] > 1)
            last += (double)(extents[i] - 1) * (double)strides[i];
    }
    double bytes = (last + 1) * (double)fp8r_dtype_bytes(matrix->dtype);
    return bytes <= MOST_BYTES ? (int64_t)bytes : -1;
}

/* Blocks that end with the last element, off alignment by what the input says. */
static bool allocate(fp8r_matmul *matmul, struct input *input, unsigned char *blocks[OPERANDS], int64_t sizes[OPERANDS])
{
    for (int i = 0; i < OPERANDS; i++) {
        fp8r_matrix *matrix = operand_of(matmul, i);
        if (matrix->dtype == FP8R_DTYPE_NONE)
            continue;
        int64_t bytes = span_bytes(matrix), offset = take(input, 5) * fp8r_dtype_bytes(matrix->dtype);
        if (bytes < 0)
            return false;
        sizes[i] = bytes + offset;
        blocks[i] = malloc((size_t)(sizes[i] ? sizes[i] : 1));
        if (!blocks[i])
            return false;
        matrix->data = blocks[i] + offset;
    }
    return true;
}

/* Small integers and a rare NaN in the fp8 operands, powers of two elsewhere: sums are exact in fp32, in any order. */
static void fill(fp8r_matmul *matmul, struct input *input, unsigned char *blocks[OPERANDS], const int64_t sizes[OPERANDS])
{
    for (int i = 0; i < OPERANDS; i++) {
        const fp8r_matrix *matrix = operand_of(matmul, i);
        int64_t bytes = fp8r_dtype_bytes(matrix->dtype), count = bytes ? (blocks[i] + sizes[i] - (unsigned char *)matrix->data) / bytes : 0;
        for (int64_t at = 0; at < count && i != 2; at++) {
            float value = i < 2 ? (float)(take(input, 7) - 3 + at % 2) : ldexpf(1.0f, (int)(take(input, 5) + at % 3) - 3);
            if (i < 2 && take(input, 200) == 199)
                value = NAN;
            if (matrix->dtype == FP8R_DTYPE_E5M2)
                ((uint8_t *)matrix->data)[at] = (uint8_t)(fp8r_to_fp16(value) >> 8);
            else
                fp8r_store(matrix->data, at, matrix->dtype, value);
        }
    }
}

/* The same values, NaN for NaN, and the same bytes between them. */
static bool same(const fp8r_matmul *matmul, const unsigned char *wanted, const unsigned char *got, size_t size)
{
    size_t bytes = (size_t)fp8r_dtype_bytes(matmul->out.dtype);
    for (size_t at = 0; at + bytes <= size; at += bytes) {
        if (memcmp(wanted + at, got + at, bytes) == 0)
            continue;
        float one = fp8r_load(wanted + at, 0, matmul->out.dtype), other = fp8r_load(got + at, 0, matmul->out.dtype);
        if (!isnan(one) || !isnan(other))
            return false;
    }
    return true;
}

static fp8r_context *context(void)
{
    static fp8r_context *made;
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = 1,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    if (!made && fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &made) != FP8R_OK)
        abort();
    return made;
}

static void run_config(const fp8r_matmul *matmul, const fp8r_pointers *pointers, const char *spec)
{
    fp8r_plan *plan = NULL;
    void *space = NULL;
    if (fp8r_plan_create(context(), matmul, spec, &plan) != FP8R_OK) {
        fprintf(stderr, "%s was supported, but: %s\n", spec, fp8r_last_error());
        abort();
    }
    size_t bytes = fp8r_plan_workspace(plan);
    if (posix_memalign(&space, 256, bytes + 1) != 0) abort();
    memset(space, 0x7F, bytes + 1);
    if (fp8r_plan_run(plan, pointers, space, bytes, NULL) != FP8R_OK) {
        fprintf(stderr, "%s was supported, but the run failed: %s\n", spec, fp8r_last_error());
        abort();
    }
    free(space);
    fp8r_plan_destroy(plan);
}

/* Every row and configuration that says yes, against what the reference wrote. */
static void run_all(const fp8r_matmul *matmul, unsigned char *out, size_t size)
{
    const fp8r_context *it = context();
    struct fp8r_product product;
    unsigned char *wanted = malloc(size + 1);
    char spec[160];
    if (!wanted || fp8r_product_init(matmul, FP8R_DATA_USED, &product) != FP8R_OK) abort();
    memset(out, POISON, size);
    run_config(matmul, &product.pointers, "reference");
    memcpy(wanted, out, size);
    for (int row = 0; row < it->registry.count; row++) {
        const struct fp8r_row *candidate = &it->registry.rows[row];
        for (int config = FP8R_CONFIG_ANY; candidate->fits && (config < 0 || candidate->backend.configs[config]); config++) {
            fp8r_reason reason = {0};
            const char *name = config < 0 ? "" : candidate->backend.configs[config];
            if (!fp8r_row_eligible(&it->registry, &it->device, &product.problem, row, config, &reason)) {
                if (reason.code == FP8R_REASON_NONE) abort();
                continue;
            }
            snprintf(spec, sizeof spec, "%s%s%s", candidate->backend.name, config < 0 ? "" : ":", name);
            memset(out, POISON, size);
            run_config(matmul, &product.pointers, spec);
            if (!same(matmul, wanted, out, size)) {
                fprintf(stderr, "%s differs from the reference\n", spec);
                abort();
            }
        }
    }
    free(wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    fp8r_matmul matmul = take_matmul(&input);
    struct fp8r_product product;
    unsigned char *blocks[OPERANDS] = {NULL};
    int64_t sizes[OPERANDS] = {0};
    bool valid = fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product) == FP8R_OK;
    double macs = (double)matmul.out.batch * (double)matmul.a.rows * (double)matmul.a.cols * (double)matmul.b.cols;
    if (!valid) {
        if (fp8r_last_error()[0] == '\0') abort();
        if (fp8r_scaled_mm(context(), &matmul, NULL) == FP8R_OK) abort();
    } else if (macs < 1e5 && allocate(&matmul, &input, blocks, sizes)) {
        fill(&matmul, &input, blocks, sizes);
        memset(blocks[2], POISON, (size_t)sizes[2]);
        fp8r_status status = fp8r_scaled_mm(context(), &matmul, NULL);
        if (status != FP8R_OK) {
            fprintf(stderr, "valid, but: %s\n", fp8r_last_error());
            abort();
        }
        if (macs > 0)
            run_all(&matmul, blocks[2], (size_t)sizes[2]);
    }
    for (int i = 0; i < OPERANDS; i++)
        free(blocks[i]);
    return 0;
}
