/* Making, solving and judging products. Knows the public header only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/slow.h"

enum { GUARD_BYTES = 64, ALIGN_BYTES = 256, POISON = 0xFF, PADDING = 0x7F, ALL_LINES = 512 };

/* Products beyond this many multiplications are judged on some lines: the first, the last, and others in between. */
static const double judged_macs = 4e8;

uint64_t sample_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static fp8r_matrix *matrix_of(struct sample *sample, int operand)
{
    fp8r_matrix *const matrices[] = {&sample->matmul.a,       &sample->matmul.b,       &sample->matmul.out,
                                     &sample->matmul.scale_a, &sample->matmul.scale_b, &sample->matmul.bias};
    return matrices[operand];
}

static bool is_half(int32_t dtype)
{
    return dtype == FP8R_DTYPE_BF16 || dtype == FP8R_DTYPE_FP16;
}

static int64_t place(const fp8r_matrix *matrix, int64_t batch, int64_t row, int64_t col)
{
    return (matrix->batch == 1 ? 0 : batch * matrix->batch_stride) + (matrix->rows == 1 ? 0 : row * matrix->row_stride) +
           (matrix->cols == 1 ? 0 : col * matrix->col_stride);
}

/* ---- Memory ---- */

static bool allocate(struct sample *sample, int operand)
{
    fp8r_matrix *matrix = matrix_of(sample, operand);
    struct sample_block *block = &sample->blocks[operand];
    size_t align = (size_t)(uintptr_t)matrix->data;
    if (matrix->dtype == FP8R_DTYPE_NONE)
        return true;
    int64_t elements = matrix->batch * matrix->rows * matrix->cols;
    int64_t last = elements ? place(matrix, matrix->batch - 1, matrix->rows - 1, matrix->cols - 1) + 1 : 0;
    block->offset_bytes = align > 0 && align < ALIGN_BYTES ? align : 0;
    block->used_bytes = (size_t)last * (size_t)slow_bytes(matrix->dtype);
    /* Out has guard bytes on both sides; inputs end where their last element ends. */
    if (operand == SAMPLE_OUT)
        block->offset_bytes += ALIGN_BYTES;
    block->size_bytes = block->offset_bytes + block->used_bytes + (operand == SAMPLE_OUT ? GUARD_BYTES : 0);
    void *memory;
    if (posix_memalign(&memory, ALIGN_BYTES, block->size_bytes + !block->size_bytes) != 0)
        return false;
    block->memory = memory;
    memset(block->memory, operand == SAMPLE_OUT ? POISON : PADDING, block->size_bytes);
    matrix->data = block->memory + block->offset_bytes;
    return true;
}

void sample_unalign(struct sample *sample, enum sample_operand operand, size_t align_bytes)
{
    struct sample_block *block = &sample->blocks[operand];
    size_t base = operand == SAMPLE_OUT ? ALIGN_BYTES : 0;
    size_t size = base + align_bytes + block->used_bytes + (operand == SAMPLE_OUT ? GUARD_BYTES : 0);
    void *memory;
    if (posix_memalign(&memory, ALIGN_BYTES, size) != 0)
        abort();
    memset(memory, operand == SAMPLE_OUT ? POISON : PADDING, size);
    memcpy((unsigned char *)memory + base + align_bytes, block->memory + block->offset_bytes, block->used_bytes);
    free(block->memory);
    *block = (struct sample_block){memory, base + align_bytes, block->used_bytes, size};
    matrix_of(sample, (int)operand)->data = block->memory + block->offset_bytes;
}

/* ---- Data ---- */

static void put(const fp8r_matrix *matrix, int64_t index, double value)
{
    uint32_t code = slow_encode(matrix->dtype, value);
    uint16_t half = (uint16_t)code;
    float full = (float)value;
    unsigned char *at = (unsigned char *)matrix->data + index * slow_bytes(matrix->dtype);
    if (slow_bytes(matrix->dtype) == 1)
        *at = (unsigned char)code;
    else if (slow_bytes(matrix->dtype) == 2)
        memcpy(at, &half, 2);
    else
        memcpy(at, &full, 4);
}

/* Exponents that differ from line to line, as far as out's range lets them. */
static int exponent_of(const struct sample *sample, int64_t line, int shift)
{
    int spread = sample->matmul.out.dtype == FP8R_DTYPE_FP16 ? 17 : 61;
    return (int)((line * 7 + shift) % spread) - spread / 2;
}

/* An a that is quantised on the way: a 448 in each row makes its scale a power of two. */
static double half_value(const struct sample *sample, const fp8r_matrix *matrix, int64_t row, int64_t col,
                         uint64_t *random)
{
    uint64_t bits = sample_random(random);
    if (sample->data == SAMPLE_RANDOM)
        return ldexp((double)(bits >> 12 & 0xFFF) - 2048.0, (int)(bits >> 40 & 7) - 11);
    return ldexp(col == row % matrix->cols ? 448.0 : (double)(bits % 9) - 4.0, (int)((row * 5 + 3) % 11) - 5);
}

/* The same for 8-bit types by table, which large operands need. */
static void fill_codes(struct sample *sample, fp8r_matrix *matrix, uint64_t *random)
{
    unsigned char choice[256];
    int count = sample->data == SAMPLE_EXACT ? 9 : 256;
    for (int i = 0; i < count; i++) {
        uint32_t code = count == 9 ? slow_encode(matrix->dtype, i - 4.0) : (uint32_t)i;
        choice[i] = (unsigned char)(isfinite(slow_decode(matrix->dtype, code)) ? code : slow_encode(matrix->dtype, 1.0));
    }
    for (int64_t batch = 0; batch < matrix->batch; batch++)
        for (int64_t row = 0; row < matrix->rows; row++)
            for (int64_t col = 0; col < matrix->cols; col++)
                ((unsigned char *)matrix->data)[place(matrix, batch, row, col)] =
                    choice[(sample_random(random) >> 8) % (uint64_t)count];
}

static void fill_operand(struct sample *sample, int operand, uint64_t *random)
{
    fp8r_matrix *matrix = matrix_of(sample, operand);
    if (!is_half(matrix->dtype)) {
        fill_codes(sample, matrix, random);
        return;
    }
    for (int64_t batch = 0; batch < matrix->batch; batch++)
        for (int64_t row = 0; row < matrix->rows; row++)
            for (int64_t col = 0; col < matrix->cols; col++)
                put(matrix, place(matrix, batch, row, col), half_value(sample, matrix, row, col, random));
}

static void fill_lines(struct sample *sample, int operand, uint64_t *random)
{
    fp8r_matrix *matrix = matrix_of(sample, operand);
    double factor = operand == SAMPLE_BIAS ? 1.5 : 1.0;
    for (int64_t batch = 0; batch < matrix->batch; batch++) {
        for (int64_t i = 0; i < matrix->rows * matrix->cols; i++) {
            int exponent = exponent_of(sample, i + 3 * batch, operand * 5);
            double value = ldexp(factor, exponent);
            if (sample->data == SAMPLE_RANDOM)
                value = (double)((float)(sample_random(random) >> 40) * 0x1p-24f + 0.25f) * (operand == SAMPLE_BIAS ? -7 : 1);
            put(matrix, place(matrix, batch, matrix->rows > 1 ? i : 0, matrix->cols > 1 ? i : 0), value);
        }
    }
}

/* ---- The answer ---- */

static bool choose_lines(struct sample *sample)
{
    const fp8r_matrix *out = &sample->matmul.out;
    int64_t lines = out->batch * out->rows;
    double macs = (double)lines * (double)out->cols * (double)sample->matmul.a.cols;
    int64_t step = macs > judged_macs || lines > 65536 ? lines / ALL_LINES + 1 : 1;
    sample->lines = calloc((size_t)(lines < 1 ? 1 : lines), sizeof *sample->lines);
    if (!sample->lines)
        return false;
    for (int64_t line = 0; line < lines; line++)
        if (line % step == 0 || line < 40 || line >= lines - 40)
            sample->lines[sample->line_count++] = line;
    return true;
}

/* a's row as it is multiplied: half types are quantised by the definition. Returns the row's own scale. */
static float row_values(const struct sample *sample, int64_t batch, int64_t row, double *values)
{
    const fp8r_matrix *a = &sample->matmul.a;
    float amax = 0.0f;
    for (int64_t k = 0; k < a->cols; k++) {
        values[k] = slow_load(a->data, place(a, batch, row, k), a->dtype);
        if (fabs(values[k]) > (double)amax)
            amax = (float)fabs(values[k]);
    }
    if (!is_half(a->dtype))
        return 1.0f;
    float scale = amax / 448.0f;
    scale = amax == 0.0f ? 1.0f : scale < 0x1p-126f ? 0x1p-126f : scale;
    float inverse = 1.0f / scale;
    for (int64_t k = 0; k < a->cols; k++) {
        float scaled = (float)values[k] * inverse;
        values[k] = slow_decode(FP8R_DTYPE_E4M3, slow_encode(FP8R_DTYPE_E4M3, (double)scaled));
    }
    return scale;
}

/* The definition, each step rounded to fp32. */
static float epilogue(float sum, float scale_b, float scale_a, const float *bias)
{
    volatile float result = sum * scale_b;
    result = result * scale_a;
    if (bias)
        result = result + *bias;
    return result;
}

/* How far an honest fp32 accumulation, in any order, may end from the exact sum, and what the epilogue makes of it. */
static double bound_of(const struct sample *sample, double magnitude, double scale, double result, double bias)
{
    double unit = 0x1p-24, k = (double)sample->matmul.a.cols;
    double sum = (k + 2) * unit * magnitude * fabs(scale);
    double rounding = 4 * unit * (fabs(result) + fabs(bias) + magnitude * fabs(scale) * unit);
    return sum + rounding + slow_ulp(sample->matmul.out.dtype, fabs(result) + sum);
}

static double line_value(const fp8r_matrix *matrix, int64_t batch, int64_t row, int64_t col)
{
    return matrix->dtype == FP8R_DTYPE_NONE ? 1.0 : slow_load(matrix->data, place(matrix, batch, row, col), matrix->dtype);
}

/* Eight chains: the sums are exact (or bounded) in double whatever their order. */
static double dot(const double *a, const float *b, int64_t count, double *magnitude)
{
    double sums[8] = {0}, magnitudes = 0;
    int64_t k = 0;
    for (; k + 8 <= count; k += 8)
        for (int i = 0; i < 8; i++)
            sums[i] += a[k + i] * (double)b[k + i];
    for (; k < count; k++)
        sums[k & 7] += a[k] * (double)b[k];
    for (k = 0; magnitude && k < count; k++)
        magnitudes += fabs(a[k] * (double)b[k]);
    if (magnitude)
        *magnitude = magnitudes;
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static void solve_line(struct sample *sample, int64_t index, const float *b, double *a)
{
    const fp8r_matmul *it = &sample->matmul;
    int64_t n = it->out.cols, k = it->a.cols;
    int64_t batch = sample->lines[index] / it->out.rows, row = sample->lines[index] % it->out.rows;
    float own = row_values(sample, batch, row, a);
    float scale_a = is_half(it->a.dtype) ? own : (float)line_value(&it->scale_a, batch, row, 0);
    for (int64_t col = 0; col < n; col++) {
        double magnitude = 0, sum = dot(a, b + col * k, k, sample->data == SAMPLE_RANDOM ? &magnitude : NULL);
        float scale_b = (float)line_value(&it->scale_b, batch, 0, col);
        float bias = (float)line_value(&it->bias, batch, 0, col);
        const float *added = it->bias.dtype == FP8R_DTYPE_NONE ? NULL : &bias;
        float result = k > 0 ? epilogue((float)sum, scale_b, scale_a, added) : added ? bias : 0.0f;
        sample->wanted[index * n + col] =
            it->out.dtype == FP8R_DTYPE_FP32
                ? result
                : (float)slow_decode(it->out.dtype, slow_encode(it->out.dtype, (double)result));
        sample->bounds[index * n + col] =
            sample->data == SAMPLE_EXACT ? 0.0
                                         : bound_of(sample, magnitude, (double)scale_a * (double)scale_b, (double)result,
                                                    added ? (double)bias : 0.0);
    }
}

static void decode_columns(const fp8r_matrix *b, int64_t batch, float *columns)
{
    float values[256];
    for (uint32_t code = 0; code < 256; code++)
        values[code] = (float)slow_decode(b->dtype, code);
    for (int64_t col = 0; col < b->cols; col++)
        for (int64_t row = 0; row < b->rows; row++)
            columns[col * b->rows + row] = values[((const unsigned char *)b->data)[place(b, batch, row, col)]];
}

bool sample_solve(struct sample *sample)
{
    const fp8r_matrix *b = &sample->matmul.b;
    int64_t n = sample->matmul.out.cols, k = sample->matmul.a.cols, decoded = -1;
    size_t values = (size_t)(sample->line_count * n), panel = (size_t)(n * k);
    free(sample->wanted);
    free(sample->bounds);
    sample->wanted = calloc(values + 1, sizeof *sample->wanted);
    sample->bounds = calloc(values + 1, sizeof *sample->bounds);
    float *columns = calloc(panel + 1, sizeof *columns);
    double *a = calloc((size_t)k + 1, sizeof *a);
    bool done = sample->wanted && sample->bounds && columns && a;
    for (int64_t i = 0; done && i < sample->line_count; i++) {
        int64_t batch = sample->lines[i] / sample->matmul.out.rows;
        if (batch != decoded)
            decode_columns(b, batch, columns);
        decoded = batch;
        solve_line(sample, i, columns, a);
    }
    free(columns);
    free(a);
    return done;
}

bool sample_init_matmul(struct sample *sample, const fp8r_matmul *matmul, enum sample_data data, uint64_t seed)
{
    uint64_t random = seed;
    memset(sample, 0, sizeof *sample);
    sample->matmul = *matmul;
    sample->data = data;
    for (int i = 0; i < SAMPLE_OPERANDS; i++)
        if (!allocate(sample, i))
            return false;
    fill_operand(sample, SAMPLE_A, &random);
    fill_operand(sample, SAMPLE_B, &random);
    for (int i = SAMPLE_SCALE_A; i < SAMPLE_OPERANDS; i++)
        if (matrix_of(sample, i)->dtype != FP8R_DTYPE_NONE)
            fill_lines(sample, i, &random);
    return choose_lines(sample) && sample_solve(sample);
}

bool sample_init(struct sample *sample, const char *text, enum sample_data data, uint64_t seed)
{
    fp8r_matmul matmul;
    memset(sample, 0, sizeof *sample);
    return fp8r_matmul_parse(text, &matmul) == FP8R_OK && sample_init_matmul(sample, &matmul, data, seed);
}

void sample_fini(struct sample *sample)
{
    for (int i = 0; i < SAMPLE_OPERANDS; i++)
        free(sample->blocks[i].memory);
    free(sample->lines);
    free(sample->wanted);
    free(sample->bounds);
    memset(sample, 0, sizeof *sample);
}

/* ---- Judging ---- */

void sample_clear(struct sample *sample)
{
    memset(sample->blocks[SAMPLE_OUT].memory, POISON, sample->blocks[SAMPLE_OUT].size_bytes);
}

static bool is_right(double got, double wanted, double bound, int32_t dtype)
{
    if (isnan(wanted))
        return isnan(got);
    if (bound == 0.0)
        return got == wanted && signbit(got) == signbit(wanted);
    if (isinf(wanted) || isinf(got)) /* near the edge of fp16 either side may be right */
        return got == wanted || (dtype == FP8R_DTYPE_FP16 && fabs(isinf(got) ? wanted : got) + 2 * bound >= 65504.0);
    return fabs(got - wanted) <= bound;
}

static bool judge_values(const struct sample *sample, int64_t m, char *line, size_t size)
{
    const fp8r_matrix *out = &sample->matmul.out;
    for (int64_t i = 0; i < sample->line_count; i++) {
        int64_t batch = sample->lines[i] / out->rows, row = sample->lines[i] % out->rows;
        for (int64_t col = 0; row < m && col < out->cols; col++) {
            double got = slow_load(out->data, place(out, batch, row, col), out->dtype);
            double wanted = (double)sample->wanted[i * out->cols + col], bound = sample->bounds[i * out->cols + col];
            if (is_right(got, wanted, bound, out->dtype))
                continue;
            snprintf(line, size, "out[%lld,%lld,%lld] is %.9g, wanted %.9g within %.3g", (long long)batch, (long long)row,
                     (long long)col, got, wanted, bound);
            return false;
        }
    }
    return true;
}

/* Every byte that belongs to no element of the first m rows is still poison. */
static bool judge_padding(const struct sample *sample, int64_t m, char *line, size_t size)
{
    const fp8r_matrix *out = &sample->matmul.out;
    const struct sample_block *block = &sample->blocks[SAMPLE_OUT];
    size_t bytes = (size_t)slow_bytes(out->dtype);
    unsigned char *owned = calloc(block->size_bytes + 1, 1);
    for (int64_t batch = 0; owned && batch < out->batch; batch++)
        for (int64_t row = 0; row < m; row++)
            for (int64_t col = 0; col < out->cols; col++)
                memset(owned + block->offset_bytes + (size_t)place(out, batch, row, col) * bytes, 1, bytes);
    size_t at = 0;
    while (owned && at < block->size_bytes && (owned[at] || block->memory[at] == POISON))
        at++;
    bool clean = owned && at == block->size_bytes;
    if (!clean)
        snprintf(line, size, "byte %lld of out's block, which is no element, was written",
                 (long long)at - (long long)block->offset_bytes);
    free(owned);
    return clean;
}

bool sample_judge(const struct sample *sample, int64_t m, char *line, size_t size)
{
    return judge_values(sample, m, line, size) && judge_padding(sample, m, line, size);
}

fp8r_pointers sample_pointers(const struct sample *sample, int64_t m)
{
    const fp8r_matmul *it = &sample->matmul;
    return (fp8r_pointers){.struct_size = sizeof(fp8r_pointers),
                           .m = m,
                           .a = it->a.data,
                           .b = it->b.data,
                           .out = it->out.data,
                           .scale_a = it->scale_a.data,
                           .scale_b = it->scale_b.data,
                           .bias = it->bias.data};
}
