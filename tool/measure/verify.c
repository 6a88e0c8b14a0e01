/* Checking results.
 *
 * The error of one element, in units of u = accumulate_unit, S = the exact sum and P_k its K terms:
 *  - whatever the order, K additions err by at most K u sum|P_k|;
 *  - the operands being random, a partial sum stays within |S| + 6 sqrt(sum P_k^2), and K independent
 * roundings of values of that size add up to no more than 6 sqrt(K) u times it (six deviations each). The
 * smaller of the two is the bound: the first is small for short sums, the second still notices one missing
 * term of thousands.
 *  - a tensor core adds 32 products at a time to the sum so far, all cut to 13 bits below the largest of them, towards
 * zero. So K / 32 cuts of the sum, each half a step on average and mostly to one side, of a sum that is half of S on
 * average and strays from that by less than sqrt(sum P_k^2) over its length; and K cuts of products, relative to that
 * sum, that may have either sign. On an H200 the worst of 33000 elements came to a quarter of this bound. When
 * promoted, only 4 cuts add up, of sums of 128 products, and those of K / 128 sums may have either sign.
 * Scales and bias then err by a few ulp of fp32, and both ends of the interval are rounded
 * to out's type. SPDX-License-Identifier: Apache-2.0 */
#include "measure/verify.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/convert.h"
#include "base/dtype.h"
#include "base/pool.h"
#include "base/sizes.h"
#include "measure/lines.h"
#include "measure/sample_places.h"

enum { CHUNK = 4096, DEVIATIONS = 6, KEPT_BYTES = 128 << 20, THREADS_MOST = 16 };

const struct fp8r_verify_options fp8r_verify_defaults = {
    .seed = 1, .whole_limit = 2000000000, .sample_elements = 4096, .accumulate_unit = 0x1p-24};

struct fp8r_verifier {
    fp8r_matmul matmul;
    double unit;
    bool has_tensor_cores;
    struct fp8r_lines *lines;
    struct fp8r_place *places; /* NULL: the whole result */
    int64_t count;
    struct fp8r_expectation *expected; /* a chunk, or all of a sample */
    int threads;
    bool keeps_all, is_kept; /* room for every expectation: they serve all results; and they are there */
};

struct fp8r_verify_options fp8r_verify_options_of(const fp8r_device_facts *device)
{
    struct fp8r_verify_options options = fp8r_verify_defaults;
    options.has_tensor_cores = device->kind == FP8R_DEVICE_CUDA;
    if (device->kind == FP8R_DEVICE_CUDA) /* the processor has nothing else to do */
        options.threads = (int)fp8r_size_min(THREADS_MOST, fp8r_size_max(1, sysconf(_SC_NPROCESSORS_ONLN)));
    return options;
}

void fp8r_verifier_destroy(struct fp8r_verifier *verifier)
{
    if (!verifier) return;
    fp8r_lines_destroy(verifier->lines);
    free(verifier->places);
    free(verifier->expected);
    free(verifier);
}

/* Empty results have no place; K = 0 costs nothing. */
static int choose_places(struct fp8r_verifier *verifier, const struct fp8r_verify_options *options,
                         struct fp8r_tool_error *error)
{
    const fp8r_matrix *out = &verifier->matmul.out;
    double operations = 2.0 * (double)out->batch * (double)out->rows * (double)out->cols;
    operations *= (double)fp8r_size_max(verifier->matmul.a.cols, 1);
    verifier->count = operations == 0 ? 0 : out->batch * out->rows * out->cols;
    if (operations <= (double)options->whole_limit) return FP8R_EXIT_GOOD;
    size_t count = 0;
    verifier->places =
        fp8r_sample_places(out->batch, out->rows, out->cols, options->sample_elements, options->seed, &count);
    verifier->count = (int64_t)count;
    return verifier->places ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the sample of elements");
}

int fp8r_verifier_create(const fp8r_matmul *matmul, const struct fp8r_verify_options *options,
                         struct fp8r_verifier **verifier, struct fp8r_tool_error *error)
{
    struct fp8r_verifier *made = calloc(1, sizeof *made);
    if (!made) return fp8r_tool_error_memory(error, "verification");
    made->matmul = *matmul;
    made->unit = options->accumulate_unit;
    made->has_tensor_cores = options->has_tensor_cores;
    made->threads = options->threads;
    int code = choose_places(made, options, error);
    made->keeps_all = made->places || made->count <= KEPT_BYTES / (int64_t)sizeof *made->expected;
    int64_t room = made->keeps_all ? fp8r_size_max(made->count, 1) : CHUNK;
    if (code == FP8R_EXIT_GOOD) {
        made->lines = fp8r_lines_create(matmul);
        made->expected = calloc((size_t)room, sizeof *made->expected);
        if (!made->lines || !made->expected) code = fp8r_tool_error_memory(error, "verification");
    }
    if (code == FP8R_EXIT_GOOD)
        *verifier = made;
    else
        fp8r_verifier_destroy(made);
    return code;
}

static struct fp8r_place place_at(const struct fp8r_verifier *verifier, int64_t index)
{
    if (verifier->places) return verifier->places[index];
    int64_t rows = verifier->matmul.out.rows, cols = verifier->matmul.out.cols;
    return (struct fp8r_place){index / rows / cols, index % rows, index / rows % cols};
}

/* An element of a scale or bias; extents of 1 broadcast. */
static double value_at(const fp8r_matrix *matrix, const struct fp8r_place *place, double absent)
{
    if (matrix->dtype == FP8R_DTYPE_NONE) return absent;
    int64_t at = (matrix->batch > 1 ? place->batch : 0) * matrix->batch_stride +
                 (matrix->rows > 1 ? place->row : 0) * matrix->row_stride +
                 (matrix->cols > 1 ? place->col : 0) * matrix->col_stride;
    return (double)fp8r_load(matrix->data, at, matrix->dtype);
}

static float round_to(double value, int32_t dtype)
{
    float rounded = (float)value;
    if (dtype == FP8R_DTYPE_BF16) return fp8r_from_bf16(fp8r_to_bf16(rounded));
    return dtype == FP8R_DTYPE_FP16 ? fp8r_from_fp16(fp8r_to_fp16(rounded)) : rounded;
}

/* What rounding to the type may make of anything from exact - error to exact + error. */
static struct fp8r_expectation around(double exact, double error, int32_t dtype)
{
    double unit = dtype == FP8R_DTYPE_BF16 ? 0x1p-8 : dtype == FP8R_DTYPE_FP16 ? 0x1p-11 : 0x1p-24;
    double smallest = dtype == FP8R_DTYPE_FP16 ? 0x1p-25 : 0x1p-134; /* half a step of the subnormals */
    double rounding =
        error == 0 && (double)round_to(exact, dtype) == exact ? 0 : unit * (fabs(exact) + error) + smallest;
    return (struct fp8r_expectation){.exact = exact,
                                     .bound = error + rounding,
                                     .low = round_to(exact - error, dtype),
                                     .high = round_to(exact + error, dtype),
                                     .is_nan = isnan(exact)};
}

/* See above. A cut of a product is uniform over one step: a deviation of 0.3 steps. */
static double tensor_core_bound(const struct fp8r_sums *sums, double k, bool promotes)
{
    const double step = 0x1p-13, cuts = ceil(k / 32), deviation = sqrt(sums->squares), sum = fabs(sums->sum);
    if (!promotes)
        return step * (cuts / 2 + DEVIATIONS * 0.3 * sqrt(k)) * (sum / 2 + deviation);
    const double parts = ceil(k / 128), part = deviation / sqrt(parts) + sum / parts;
    return step * DEVIATIONS * sqrt(parts) * (4 * part + 0.3 * sqrt(fmin(k, 128)) * 2 * part);
}

static double accumulate_bound(const struct fp8r_sums *sums, double unit, double k)
{
    double strict = k * unit * sums->magnitudes;
    double likely = DEVIATIONS * sqrt(k) * unit * (fabs(sums->sum) + DEVIATIONS * sqrt(sums->squares));
    return fmin(strict, likely) + FLT_EPSILON / 2 * fabs(sums->sum); /* the sum itself is an fp32 */
}

static struct fp8r_expectation expect(const struct fp8r_verifier *verifier, struct fp8r_lines *lines,
                                      const struct fp8r_place *place)
{
    const fp8r_matmul *matmul = &verifier->matmul;
    double k = (double)matmul->a.cols;
    double bias = value_at(&matmul->bias, place, 0);
    if (matmul->a.cols == 0) return around(bias, 0, matmul->out.dtype);
    struct fp8r_sums sums;
    fp8r_lines_multiply(lines, place, &sums);
    double scale = value_at(&matmul->scale_b, place, 1) * value_at(&matmul->scale_a, place, sums.row_scale);
    double scaled = sums.sum * scale, exact = scaled + bias;
    double error = accumulate_bound(&sums, verifier->unit, k);
    if (verifier->has_tensor_cores)
        error += tensor_core_bound(&sums, k, matmul->accumulation == FP8R_ACCUMULATE_PRECISE);
    error *= fabs(scale);
    error += FLT_EPSILON / 2 * (2 * fabs(scaled) + fabs(exact)) * 1.01; /* three roundings of the epilogue */
    error += 4 * (double)FLT_TRUE_MIN;
    return around(exact, error, matmul->out.dtype);
}

/* Expectations of places first .. first + count - 1. */
static const struct fp8r_expectation *expect_chunk(struct fp8r_verifier *verifier, int64_t first,
                                                   int64_t count)
{
    if (verifier->is_kept) return verifier->expected + first;
    struct fp8r_expectation *to = verifier->expected + (verifier->keeps_all ? first : 0);
    for (int64_t i = 0; i < count; i++) {
        struct fp8r_place place = place_at(verifier, first + i);
        to[i] = expect(verifier, verifier->lines, &place);
    }
    return to;
}

/* A share of all expected values, with lines of its own. */
struct share {
    struct fp8r_verifier *verifier;
    bool is_missing[THREADS_MOST];
};

static void expect_share(void *arg, int64_t index)
{
    struct share *share = arg;
    struct fp8r_verifier *verifier = share->verifier;
    int64_t first = verifier->count * index / verifier->threads;
    int64_t end = verifier->count * (index + 1) / verifier->threads;
    struct fp8r_lines *lines = fp8r_lines_create(&verifier->matmul);
    share->is_missing[index] = !lines;
    for (int64_t i = first; lines && i < end; i++) {
        struct fp8r_place place = place_at(verifier, i);
        verifier->expected[i] = expect(verifier, lines, &place);
    }
    fp8r_lines_destroy(lines);
}

/* All of them at once, where they are kept; without memory for that, piece by piece as for a single thread. */
static void expect_together(struct fp8r_verifier *verifier)
{
    struct share share = {.verifier = verifier};
    struct fp8r_pool *pool =
        verifier->threads > 1 && verifier->keeps_all && !verifier->is_kept ? fp8r_pool_create(verifier->threads) : NULL;
    if (!pool) return;
    fp8r_pool_parallel(pool, verifier->threads, expect_share, &share);
    fp8r_pool_destroy(pool);
    verifier->is_kept = true;
    for (int i = 0; i < verifier->threads; i++)
        verifier->is_kept = verifier->is_kept && !share.is_missing[i];
}

static bool is_poison(const void *out, int64_t at, int32_t dtype)
{
    static const uint8_t poison[4] = {0xFF, 0xFF, 0xFF, 0xFF};
    size_t size = (size_t)fp8r_dtype_bytes(dtype);
    return memcmp((const uint8_t *)out + at * (int64_t)size, poison, size) == 0;
}

static void describe(const struct fp8r_place *place, double value, const struct fp8r_expectation *expected,
                     bool untouched, struct fp8r_verdict *verdict)
{
    char where[96], what[64];
    snprintf(where, sizeof where, "out[%lld,%lld,%lld]", (long long)place->batch, (long long)place->row,
             (long long)place->col);
    snprintf(what, sizeof what, untouched ? "was never written" : "is %.9g", value);
    if (expected->is_nan)
        snprintf(verdict->text, sizeof verdict->text, "%s %s: it must be NaN", where, what);
    else
        snprintf(verdict->text, sizeof verdict->text, "%s %s: it must be %.9g, from %.9g to %.9g", where,
                 what, expected->exact, (double)expected->low, (double)expected->high);
}

static void judge_value(const struct fp8r_place *place, const struct fp8r_expectation *expected, double value,
                        bool untouched, struct fp8r_verdict *verdict)
{
    bool is_right =
        expected->is_nan ? isnan(value) : value >= (double)expected->low && value <= (double)expected->high;
    verdict->checked++;
    if ((!is_right || untouched) && verdict->wrong++ == 0) describe(place, value, expected, untouched, verdict);
    double error = fabs(value - expected->exact), bound = expected->bound;
    bool is_comparable = isfinite(error) && isfinite(bound); /* not NaN, and not beyond fp16 */
    if (is_comparable &&
        (verdict->checked == 1 || error * verdict->worst_bound > verdict->worst_error * bound)) {
        verdict->worst_error = error;
        verdict->worst_bound = bound;
        verdict->worst = *place;
    }
}

/* An element that was never written is wrong even where NaN belongs: no arithmetic gives these bits. */
static void judge(const struct fp8r_verifier *verifier, const void *out, const struct fp8r_place *place,
                  const struct fp8r_expectation *expected, struct fp8r_verdict *verdict)
{
    const fp8r_matrix *matrix = &verifier->matmul.out;
    int64_t at = place->batch * matrix->batch_stride + place->row * matrix->row_stride +
                 place->col * matrix->col_stride;
    judge_value(place, expected, (double)fp8r_load(out, at, matrix->dtype), is_poison(out, at, matrix->dtype),
                verdict);
}

/* Of a result laid out as out, or of values in the order of the places. */
static void judge_all(struct fp8r_verifier *verifier, const void *out, const float *values,
                      struct fp8r_verdict *verdict)
{
    *verdict = (struct fp8r_verdict){.is_whole = !verifier->places};
    expect_together(verifier);
    for (int64_t first = 0; first < verifier->count; first += CHUNK) {
        int64_t count = fp8r_size_min(CHUNK, verifier->count - first);
        const struct fp8r_expectation *expected = expect_chunk(verifier, first, count);
        for (int64_t i = 0; i < count; i++) {
            struct fp8r_place place = place_at(verifier, first + i);
            if (values)
                judge_value(&place, &expected[i], (double)values[first + i],
                            is_poison(values, first + i, FP8R_DTYPE_FP32), verdict);
            else
                judge(verifier, out, &place, &expected[i], verdict);
        }
    }
    verifier->is_kept = verifier->keeps_all;
    verdict->is_good = verdict->wrong == 0;
}

void fp8r_verify(struct fp8r_verifier *verifier, const void *out, struct fp8r_verdict *verdict)
{
    judge_all(verifier, out, NULL, verdict);
}

void fp8r_verify_values(struct fp8r_verifier *verifier, const float *values, struct fp8r_verdict *verdict)
{
    judge_all(verifier, NULL, values, verdict);
}

const struct fp8r_place *fp8r_verifier_places(const struct fp8r_verifier *verifier, size_t *count)
{
    *count = verifier->places ? (size_t)verifier->count : 0;
    return verifier->places;
}

/* The bounds above with D for the root of the squares, once for the tensor cores and once for either's fp32 sums, and
 * the roundings of both epilogues. The sum of both stays a little below what is given. */
struct fp8r_error_shares fp8r_error_shares_of(const fp8r_matmul *matmul, double unit)
{
    const double k = (double)matmul->a.cols, sums = DEVIATIONS * sqrt(k) * (unit + 0x1p-24);
    const struct fp8r_sums one = {.sum = 1}, spread = {.squares = 1};
    const bool promotes = matmul->accumulation == FP8R_ACCUMULATE_PRECISE;
    return (struct fp8r_error_shares){
        .sum = 1.001 * (tensor_core_bound(&one, k, promotes) + sums + 4 * FLT_EPSILON),
        .spread = 1.001 * (tensor_core_bound(&spread, k, promotes) + DEVIATIONS * sums),
        .value = 2 * FLT_EPSILON};
}
