/* Running two backends on the same operands. SPDX-License-Identifier: Apache-2.0 */
#include "tune/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "measure/statistics.h"
#include "tool_status.h"
#include "tune/contest.h"
#include "tune/interrupt.h"

enum { INPUTS = 4, PAIRS_MOST = 120, ENOUGH_US = 50000, A = 0, B = 1 };

static const double cold_factor = 4;

/* ---- What is said ---- */

const char *compare_pace_name(enum compare_pace pace)
{
    static const char *const names[] = {"untimed", "faster", "not slower", "inconclusive", "slower"};
    return names[pace];
}

enum compare_pace compare_pace_of(const struct compare_case *it, double margin)
{
    switch (it->time.verdict) {
    case FP8R_PAIRED_REGRESSION:
        return COMPARE_SLOWER;
    case FP8R_PAIRED_INCONCLUSIVE:
        return COMPARE_INCONCLUSIVE;
    case FP8R_PAIRED_FINE:
        return it->time.high < 1 / (1 + margin) ? COMPARE_FASTER : COMPARE_AS_FAST;
    default:
        return COMPARE_UNTIMED;
    }
}

int compare_case_exit(const struct compare_case *it, double margin)
{
    enum compare_pace pace = compare_pace_of(it, margin);
    if (*it->refusal) return FP8R_EXIT_UNMEASURED;
    if (it->bits.different > 0 || pace == COMPARE_SLOWER) return FP8R_EXIT_FAILED;
    return pace == COMPARE_INCONCLUSIVE ? FP8R_EXIT_INCONCLUSIVE : FP8R_EXIT_GOOD;
}

/* ---- One set of operands ---- */

struct work {
    struct compare *compare;
    struct fp8r_entrant entrants[2];
    struct fp8r_points points; /* of the entrants */
    struct fp8r_inputs inputs;
    struct fp8r_contest contest;
};

/* NaN in every type: 0x7F alone, or above 0xFF. */
static void plant_nan(const fp8r_matrix *matrix, int64_t batch, int64_t row, int64_t col)
{
    size_t bytes = (size_t)fp8r_dtype_bytes(matrix->dtype);
    int64_t at = batch * matrix->batch_stride + row * matrix->row_stride + col * matrix->col_stride;
    uint8_t *element = (uint8_t *)matrix->data + at * (int64_t)bytes;
    memset(element, 0xFF, bytes);
    element[bytes - 1] = 0x7F;
}

/* In the middle and at both ends, so that some rows and columns of out are NaN and the others must not be. */
static void plant_nans(const fp8r_matmul *matmul)
{
    const fp8r_matrix *a = &matmul->a, *b = &matmul->b;
    plant_nan(a, 0, a->rows / 2, a->cols / 3);
    plant_nan(a, a->batch - 1, a->rows - 1, a->cols - 1);
    plant_nan(b, 0, b->rows / 2, b->cols / 3);
    plant_nan(b, b->batch - 1, 0, b->cols - 1);
}

static int open_set(struct work *work, const fp8r_matmul *matmul, int number, double cache_factor,
                    struct fp8r_tool_error *error)
{
    struct compare *compare = work->compare;
    int code =
        fp8r_inputs_create(matmul, compare->seed + (uint64_t)number, FP8R_GUARD_BYTES, &work->inputs, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (number == INPUTS - 1) plant_nans(&work->inputs.matmul);
    code = fp8r_rotation_load(&compare->rotation, compare->device, &work->inputs, cache_factor, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_contest_open(&work->contest, compare->context, &work->points, NULL, matmul, compare->device,
                                 &compare->rotation, &work->inputs, compare->seed, error);
    if (code != FP8R_EXIT_GOOD) fp8r_inputs_destroy(&work->inputs);
    return code;
}

static void close_set(struct work *work)
{
    fp8r_contest_close(&work->contest);
    fp8r_inputs_destroy(&work->inputs);
}

static bool is_refused(const struct work *work, struct compare_case *it)
{
    for (int i = A; i <= B; i++) {
        const struct fp8r_racer *racer = &work->contest.racers[i];
        if (racer->standing != FP8R_STANDING_REFUSED) continue;
        snprintf(it->refusal, sizeof it->refusal, "%.120s: %s", work->entrants[i].label, racer->why);
        return true;
    }
    return false;
}

/* A pick may change with the product, so that the configuration is that of the plan. */
static void set_labels(const struct work *work, struct compare_case *it)
{
    char *const labels[] = {it->a, it->b};
    for (int i = A; i <= B; i++) {
        const fp8r_plan *plan = work->contest.racers[i].plan;
        const char *ran = plan ? fp8r_plan_backend(plan, work->contest.member.a.rows) : NULL;
        snprintf(labels[i], FP8R_LABEL_BYTES, "%s", ran ? ran : work->entrants[i].label);
    }
}

/* ---- Bits ---- */

static int run_both(struct work *work, struct compare_case *it, struct fp8r_tool_error *error)
{
    const fp8r_matrix *out = &work->contest.member.out;
    int64_t bytes = 0;
    int code = fp8r_contest_run(&work->contest, A, error);
    if (code != FP8R_EXIT_GOOD || !fp8r_matrix_span_bytes(out, &bytes)) return code;
    void *kept = malloc((size_t)bytes);
    if (!kept) return fp8r_tool_error_memory(error, "a result");
    memcpy(kept, out->data, (size_t)bytes);
    code = fp8r_contest_run(&work->contest, B, error);
    if (code == FP8R_EXIT_GOOD) bits_compare(out, kept, out->data, &it->bits);
    free(kept);
    it->inputs += code == FP8R_EXIT_GOOD;
    return code;
}

static int compare_bits(struct work *work, const fp8r_matmul *matmul, struct compare_case *it,
                        struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (int i = 0; i < INPUTS && code == FP8R_EXIT_GOOD && !*it->refusal; i++) {
        if (fp8r_interrupted()) return FP8R_EXIT_INTERRUPTED;
        code = open_set(work, matmul, i, 0, error);
        if (code != FP8R_EXIT_GOOD) break;
        set_labels(work, it);
        if (!is_refused(work, it)) code = run_both(work, it, error);
        close_set(work);
    }
    return code;
}

/* ---- Time ---- */

static double median_of(double *times, size_t count)
{
    fp8r_sort(times, count);
    return count > 0 ? fp8r_median(times, count) : 0;
}

static int race(struct work *work, struct compare_case *it, struct fp8r_tool_error *error)
{
    struct fp8r_sequential_options options = fp8r_sequential_defaults(FP8R_SEQUENTIAL_GATE);
    struct fp8r_sequential sequential;
    struct fp8r_pair pairs[PAIRS_MOST];
    double a_us[PAIRS_MOST], b_us[PAIRS_MOST];
    size_t count = 0;
    options.margin = work->compare->margin;
    int code = fp8r_sequential_init(&sequential, &options, error);
    while (code == FP8R_EXIT_GOOD && it->time.verdict == FP8R_PAIRED_GO_ON) {
        if (fp8r_interrupted()) return FP8R_EXIT_INTERRUPTED;
        code = fp8r_sampler_round(&work->contest.sampler, error);
        count = fp8r_sampler_pairs(&work->contest.sampler, A, B, a_us, b_us, PAIRS_MOST);
        for (size_t i = 0; i < count; i++)
            pairs[i] = (struct fp8r_pair){.base_us = b_us[i], .other_us = a_us[i]};
        if (code == FP8R_EXIT_GOOD)
            code = fp8r_sequential_decide(&sequential, pairs, count, &it->time, error);
    }
    it->a_us = median_of(a_us, count);
    it->b_us = median_of(b_us, count);
    return code;
}

static int compare_time(struct work *work, const fp8r_matmul *matmul, struct compare_case *it,
                        struct fp8r_tool_error *error)
{
    int code = open_set(work, matmul, 0, cold_factor, error);
    if (code != FP8R_EXIT_GOOD) return code;
    set_labels(work, it);
    if (!is_refused(work, it)) {
        code = fp8r_contest_enter(&work->contest, A, ENOUGH_US, error);
        if (code == FP8R_EXIT_GOOD) code = fp8r_contest_enter(&work->contest, B, ENOUGH_US, error);
        if (code == FP8R_EXIT_GOOD) code = race(work, it, error);
    }
    close_set(work);
    return code;
}

int compare_run(struct compare *compare, const fp8r_matmul *matmul, struct compare_case *it,
                struct fp8r_tool_error *error)
{
    struct work work = {.compare = compare, .points = {.entrant_count = 2}};
    work.points.entrants = work.entrants;
    *it = (struct compare_case){0};
    snprintf(work.entrants[A].label, sizeof work.entrants[A].label, "%s", compare->a);
    snprintf(work.entrants[B].label, sizeof work.entrants[B].label, "%s", compare->b);
    int code = fp8r_tool_status(error, fp8r_matmul_format(matmul, it->problem, sizeof it->problem));
    if (code == FP8R_EXIT_GOOD && compare->wants_bits) code = compare_bits(&work, matmul, it, error);
    if (code == FP8R_EXIT_GOOD && compare->wants_time && !*it->refusal)
        code = compare_time(&work, matmul, it, error);
    return code;
}

void compare_fini(struct compare *compare)
{
    fp8r_rotation_fini(&compare->rotation);
}
