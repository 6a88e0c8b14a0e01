/* Decoding and multiplying lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/lines.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/convert.h"
#include "base/dtype.h"
#include "base/quantize.h"
#include "base/sizes.h"

enum { KEPT_BYTES = 64 << 20, LANES = 16 };

struct fp8r_lines {
    fp8r_matrix a, b;
    int64_t k, slots;
    float *rows;       /* slots x k: row r of the current batch item in slot r % slots */
    int64_t *row_of;   /* which row a slot holds, -1 none */
    float *row_scales; /* a slot */
    float *col;
    uint8_t *codes; /* one row that is quantised on the way */
    int64_t batch, col_index;
};

void fp8r_lines_destroy(struct fp8r_lines *lines)
{
    if (!lines) return;
    free(lines->rows);
    free(lines->row_of);
    free(lines->row_scales);
    free(lines->col);
    free(lines->codes);
    free(lines);
}

static void forget_rows(struct fp8r_lines *lines)
{
    for (int64_t i = 0; i < lines->slots; i++)
        lines->row_of[i] = -1;
}

struct fp8r_lines *fp8r_lines_create(const fp8r_matmul *matmul)
{
    int64_t k = matmul->a.cols, line_bytes = 0;
    struct fp8r_lines *lines = calloc(1, sizeof *lines);
    if (!lines || !fp8r_size_mul(fp8r_size_max(k, 1), (int64_t)sizeof(float), &line_bytes)) {
        free(lines);
        return NULL;
    }
    int64_t slots = fp8r_size_max(1, fp8r_size_min(matmul->a.rows, KEPT_BYTES / line_bytes));
    struct fp8r_lines made = {
        .a = matmul->a, .b = matmul->b, .k = k, .slots = slots, .batch = -1, .col_index = -1};
    made.rows = malloc((size_t)(slots * line_bytes));
    made.row_of = malloc((size_t)slots * sizeof *made.row_of);
    made.row_scales = malloc((size_t)slots * sizeof *made.row_scales);
    made.col = malloc((size_t)line_bytes);
    made.codes = malloc((size_t)fp8r_size_max(k, 1));
    *lines = made;
    if (made.rows && made.row_of && made.row_scales && made.col && made.codes) {
        forget_rows(lines);
        return lines;
    }
    fp8r_lines_destroy(lines);
    return NULL;
}

static void decode(const fp8r_matrix *matrix, int64_t at, int64_t step, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++, at += step)
        to[i] = fp8r_load(matrix->data, at, matrix->dtype);
}

/* Batch items of extent 1 are repeated. */
static int64_t batch_at(const fp8r_matrix *matrix, int64_t batch)
{
    return matrix->batch > 1 ? batch * matrix->batch_stride : 0;
}

static const float *row_at(struct fp8r_lines *lines, int64_t row, double *scale)
{
    const fp8r_matrix *a = &lines->a;
    int64_t slot = row % lines->slots;
    float *to = lines->rows + slot * lines->k;
    if (lines->row_of[slot] != row) {
        int64_t at = batch_at(a, lines->batch) + row * a->row_stride;
        lines->row_of[slot] = row;
        lines->row_scales[slot] = 1;
        if (fp8r_dtype_is_half(a->dtype)) {
            const uint16_t *data = a->data;
            lines->row_scales[slot] =
                fp8r_quantize_row(data + at, a->dtype, a->col_stride, lines->k, lines->codes);
            for (int64_t i = 0; i < lines->k; i++)
                to[i] = fp8r_from_e4m3(lines->codes[i]);
        } else {
            decode(a, at, a->col_stride, lines->k, to);
        }
    }
    *scale = (double)lines->row_scales[slot];
    return to;
}

static void move_to(struct fp8r_lines *lines, const struct fp8r_place *place)
{
    if (lines->batch == place->batch && lines->col_index == place->col) return;
    if (lines->batch != place->batch) forget_rows(lines);
    lines->batch = place->batch;
    lines->col_index = place->col;
    decode(&lines->b, batch_at(&lines->b, place->batch) + place->col * lines->b.col_stride,
           lines->b.row_stride, lines->k, lines->col);
}

/* Lanes of their own let the compiler use vectors; the order of exact products in double does not matter. */
static inline __attribute__((always_inline)) void multiply_in_lanes(const float *a, const float *b, int64_t k,
                                                                    struct fp8r_sums *sums)
{
    double sum[LANES] = {0}, magnitudes[LANES] = {0}, squares[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            double product = (double)a[i + lane] * (double)b[i + lane];
            sum[lane] += product;
            magnitudes[lane] += fabs(product);
            squares[lane] += product * product;
        }
    }
    for (; i < k; i++) {
        double product = (double)a[i] * (double)b[i];
        sum[0] += product;
        magnitudes[0] += fabs(product);
        squares[0] += product * product;
    }
    for (int lane = 1; lane < LANES; lane++) {
        sum[0] += sum[lane];
        magnitudes[0] += magnitudes[lane];
        squares[0] += squares[lane];
    }
    sums->sum = sum[0];
    sums->magnitudes = magnitudes[0];
    sums->squares = squares[0];
}

/* The same operations in the same order, four lanes to a register where there are such registers: whole results of 2e9
 * operations are checked before anything is timed. */
#if FP8R_X86_64
__attribute__((target("avx2"))) static void multiply_avx2(const float *a, const float *b, int64_t k,
                                                          struct fp8r_sums *sums)
{
    multiply_in_lanes(a, b, k, sums);
}
#endif

static void multiply(const float *a, const float *b, int64_t k, struct fp8r_sums *sums)
{
#if FP8R_X86_64
    if (__builtin_cpu_supports("avx2")) {
        multiply_avx2(a, b, k, sums);
        return;
    }
#endif
    multiply_in_lanes(a, b, k, sums);
}

void fp8r_lines_multiply(struct fp8r_lines *lines, const struct fp8r_place *place, struct fp8r_sums *sums)
{
    move_to(lines, place);
    const float *row = row_at(lines, place->row, &sums->row_scale);
    multiply(row, lines->col, lines->k, sums);
}
