/* Filling operands. Values are drawn from a table of normal ones, four to a random word, so that large
 * weights take milliseconds. SPDX-License-Identifier: Apache-2.0 */
#include "measure/fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/convert.h"
#include "base/dtype.h"
#include "base/pool.h"
#include "base/sizes.h"
#include "measure/random.h"

enum {
    TABLE_SIZE = 1 << 16,
    WORD_VALUES = 4,     /* drawn from one random word */
    SHARE = 4 << 20,     /* values that a thread draws at a time */
    THREADS_MOST = 16
};

/* A row quantised by its largest of some thousand normal values has its standard deviation near a quarter of
 * 448. */
static const double e4m3_deviation = 448.0 / 4;
static const double e5m2_deviation = 16;

/* Typical scales: activations of magnitude 4 and weights of magnitude 0.1, over 448. */
static const double scale_a_middle = 4.0 / 448, scale_b_middle = 0.1 / 448;

/* Deviation of wide values. */
static const double wide_deviation = 1;

struct table {
    int32_t dtype;
    union {
        uint8_t codes[TABLE_SIZE];
        uint16_t halves[TABLE_SIZE];
        float floats[TABLE_SIZE];
    } values;
};

static double normal(struct fp8r_random *random)
{
    double radius = sqrt(-2 * log(1 - fp8r_random_unit(random)));
    return radius * cos(2 * 3.14159265358979323846 * fp8r_random_unit(random));
}

static uint8_t to_e5m2(double value)
{
    return (uint8_t)(fp8r_to_fp16((float)value) >> 8); /* its upper half; small enough never to be infinite */
}

static struct table *table_create(int32_t dtype, struct fp8r_random *random)
{
    struct table *table = malloc(sizeof *table);
    if (!table) return NULL;
    table->dtype = dtype;
    for (int i = 0; i < TABLE_SIZE; i++) {
        double value = normal(random);
        if (dtype == FP8R_DTYPE_E4M3)
            table->values.codes[i] = fp8r_to_e4m3((float)(value * e4m3_deviation));
        else if (dtype == FP8R_DTYPE_E5M2)
            table->values.codes[i] = to_e5m2(value * e5m2_deviation);
        else
            fp8r_store(&table->values, i, dtype, (float)(value * wide_deviation));
    }
    return table;
}

/* A line of elements `step` apart, which starts at element `at`. */
static void fill_line(const fp8r_matrix *matrix, const struct table *table, struct fp8r_random *random,
                      int64_t at, int64_t count, int64_t step)
{
    uint64_t word = 0;
    for (int64_t i = 0; i < count; i++, at += step) {
        word = i % WORD_VALUES == 0 ? fp8r_random_next(random) : word >> 16;
        size_t pick = word & (TABLE_SIZE - 1);
        if (fp8r_dtype_is_fp8(matrix->dtype))
            ((uint8_t *)matrix->data)[at] = table->values.codes[pick];
        else if (matrix->dtype == FP8R_DTYPE_FP32)
            ((float *)matrix->data)[at] = table->values.floats[pick];
        else
            ((uint16_t *)matrix->data)[at] = table->values.halves[pick];
    }
}

/* A matrix by its lines, those of all batch items in a row. */
struct lines {
    const fp8r_matrix *matrix;
    const struct table *table;
    uint64_t start; /* of the random numbers behind the table */
    int64_t of_item, count, stride, step, all, share;
};

/* A line's numbers are found without drawing those before it, so that the bytes do not depend on the threads. */
static void fill_share(void *arg, int64_t index)
{
    const struct lines *lines = arg;
    const fp8r_matrix *matrix = lines->matrix;
    const uint64_t words = (uint64_t)fp8r_size_blocks(lines->count, WORD_VALUES);
    int64_t end = fp8r_size_min(lines->all, (index + 1) * lines->share);
    for (int64_t i = index * lines->share; i < end; i++) {
        struct fp8r_random random = {lines->start};
        fp8r_random_skip(&random, (uint64_t)i * words);
        fill_line(matrix, lines->table, &random,
                  i / lines->of_item * matrix->batch_stride + i % lines->of_item * lines->stride, lines->count,
                  lines->step);
    }
}

/* Do no two lines share an element? Items stand one behind the other, or their lines in turns. */
static bool are_apart(const struct lines *lines)
{
    const int64_t batch = lines->matrix->batch, between = lines->matrix->batch_stride;
    const int64_t length = (lines->count - 1) * lines->step + 1;
    bool items = batch == 1 || between >= (lines->of_item - 1) * lines->stride + length;
    bool turns = batch > 1 && between >= length && lines->stride >= (batch - 1) * between + length;
    return turns || (items && (lines->of_item == 1 || lines->stride >= length));
}

static void fill_lines(struct lines *lines)
{
    lines->share = fp8r_size_max(1, SHARE / lines->count);
    const int64_t shares = fp8r_size_blocks(lines->all, lines->share);
    const int64_t threads = !are_apart(lines)
                                ? 1
                                : fp8r_size_min(fp8r_size_min(shares, THREADS_MOST), sysconf(_SC_NPROCESSORS_ONLN));
    struct fp8r_pool *pool = threads > 1 ? fp8r_pool_create((int)threads) : NULL;
    if (pool)
        fp8r_pool_parallel(pool, shares, fill_share, lines);
    for (int64_t i = 0; !pool && i < shares; i++)
        fill_share(lines, i);
    fp8r_pool_destroy(pool);
}

bool fp8r_fill_matrix(const fp8r_matrix *matrix, uint64_t seed)
{
    struct fp8r_random random = {seed};
    if (matrix->dtype == FP8R_DTYPE_NONE || matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0)
        return true;
    struct table *table = table_create(matrix->dtype, &random);
    if (!table) return false;
    bool by_row = matrix->col_stride <= matrix->row_stride || matrix->rows == 1;
    struct lines lines = {.matrix = matrix,
                          .table = table,
                          .start = random.state,
                          .of_item = by_row ? matrix->rows : matrix->cols,
                          .count = by_row ? matrix->cols : matrix->rows,
                          .stride = by_row ? matrix->row_stride : matrix->col_stride,
                          .step = by_row ? matrix->col_stride : matrix->row_stride};
    lines.all = matrix->batch * lines.of_item;
    fill_lines(&lines);
    free(table);
    return true;
}

/* Multiples of the golden ratio never meet, so no two scales are equal: a backend that takes the wrong one
 * shows. */
static void fill_scale(const fp8r_matrix *scale, double middle, struct fp8r_random *random)
{
    const double golden = 0.61803398874989485;
    double start = fp8r_random_unit(random), index = 0;
    if (scale->dtype == FP8R_DTYPE_NONE) return;
    for (int64_t i = 0; i < scale->batch; i++) {
        for (int64_t r = 0; r < scale->rows; r++) {
            for (int64_t c = 0; c < scale->cols; c++, index++) {
                double turn = start + index * golden;
                int64_t at = i * scale->batch_stride + r * scale->row_stride + c * scale->col_stride;
                ((float *)scale->data)[at] = (float)(middle * exp2(2 * (turn - floor(turn)) - 1));
            }
        }
    }
}

bool fp8r_fill_matmul(const fp8r_matmul *matmul, uint64_t seed)
{
    struct fp8r_random random = {seed};
    uint64_t seed_a = fp8r_random_next(&random), seed_b = fp8r_random_next(&random);
    uint64_t seed_bias = fp8r_random_next(&random);
    fill_scale(&matmul->scale_a, scale_a_middle, &random);
    fill_scale(&matmul->scale_b, scale_b_middle, &random);
    return fp8r_fill_matrix(&matmul->a, seed_a) && fp8r_fill_matrix(&matmul->b, seed_b) &&
           fp8r_fill_matrix(&matmul->bias, seed_bias);
}
