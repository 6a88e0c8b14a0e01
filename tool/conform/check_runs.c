/* What a backend does: results, memory, threads, promised bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/subject.h"

static const struct fp8r_area *out_area(const struct fp8r_subject *subject)
{
    return &subject->inputs.areas[FP8R_INPUT_OUT];
}

static bool check_damage(struct fp8r_subject *subject, const struct fp8r_trial *trial)
{
    const char *damage = fp8r_inputs_damage(&subject->inputs);
    if (!damage && !fp8r_area_intact(&trial->workspace)) damage = "memory around the workspace was written";
    if (!damage && !subject->multiplies && subject->product.problem.k > 0 &&
        !fp8r_inputs_out_untouched(&subject->inputs))
        damage = "out was written, though it has no element";
    return damage ? fp8r_subject_fail(subject, "%s", damage) : true;
}

static bool run_and_verify(struct fp8r_subject *subject, const struct fp8r_trial *trial)
{
    struct fp8r_verdict verdict;
    fp8r_inputs_poison_out(&subject->inputs);
    subject->result->runs++;
    fp8r_status status = fp8r_trial_run(trial, &subject->inputs.matmul);
    if (status != FP8R_OK)
        return fp8r_subject_fail(subject, "supports says yes, but run answers %s: %s",
                                 fp8r_status_name(status), fp8r_last_error());
    if (!check_damage(subject, trial)) return false;
    fp8r_verify(subject->verifier, subject->inputs.matmul.out.data, &verdict);
    if (!verdict.is_good)
        return fp8r_subject_fail(subject, "%lld of %lld elements are wrong, first: %s",
                                 (long long)verdict.wrong, (long long)verdict.checked, verdict.text);
    return true;
}

static void label_of(const struct fp8r_subject *subject, int config, char label[160])
{
    snprintf(label, 160, "%.63s:%.63s", subject->row->backend.name, subject->row->backend.configs[config]);
}

bool fp8r_check_config(struct fp8r_subject *subject, int config)
{
    const fp8r_backend *backend = &subject->row->backend;
    const fp8r_problem *problem = &subject->product.problem;
    fp8r_reason reason;
    char label[160];
    bool yes =
        !subject->multiplies || fp8r_row_supports(subject->row, subject->device, problem, config, &reason);
    struct fp8r_trial trial;
    label_of(subject, config, label);
    fp8r_subject_begin(subject, "runs", backend->configs[config]);
    fp8r_status status =
        fp8r_trial_create(subject->context, &subject->inputs.matmul, label, FP8R_GUARD_PAGES, &trial);
    if (status == FP8R_ERROR_UNSUPPORTED && (!yes || problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT)) {
        subject->result->refusals++;
        return true;
    }
    if (status != FP8R_OK)
        return fp8r_subject_fail(subject, "supports says %s, but a plan answers %s: %s", yes ? "yes" : "no",
                                 fp8r_status_name(status), fp8r_last_error());
    bool good = run_and_verify(subject, &trial);
    if (good && subject->multiplies)
        good = fp8r_check_threads(subject, &trial, config) && fp8r_check_rows(subject, &trial, config);
    fp8r_trial_destroy(&trial);
    return good;
}

/* One of two runs at once, with memory of its own for all that is written. */
struct runner {
    const struct fp8r_trial *trial;
    struct fp8r_measure_device device;
    fp8r_matmul matmul;
    struct fp8r_area out, workspace;
    fp8r_status status;
};

static void *run_runner(void *arg)
{
    struct runner *runner = arg;
    runner->status = fp8r_trial_call(&runner->device, runner->trial->plan, &runner->matmul, runner->workspace.data,
                                     runner->workspace.data_bytes);
    return NULL;
}

static bool runner_init(struct runner *runner, const struct fp8r_subject *subject,
                        const struct fp8r_trial *trial)
{
    const struct fp8r_area *out = out_area(subject);
    uintptr_t address = (uintptr_t)out->data;
    size_t align = address % 256 == 0 ? 256 : (size_t)(address & (~address + 1));
    *runner = (struct runner){.trial = trial};
    if (!fp8r_area_create(&runner->out, out->data_bytes, align, FP8R_GUARD_PAGES) ||
        !fp8r_area_create(&runner->workspace, trial->workspace.data_bytes, 256, FP8R_GUARD_PAGES) ||
        fp8r_measure_device_init(subject->device, false, &runner->device) != FP8R_OK)
        return false;
    runner->matmul = subject->inputs.matmul;
    runner->matmul.out.data = runner->out.data;
    return true;
}

static bool run_together(struct fp8r_subject *subject, struct runner runners[2])
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_runner, &runners[1]) != 0)
        return fp8r_subject_fail(subject, "a second thread could not be made");
    run_runner(&runners[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        if (runners[i].status != FP8R_OK)
            return fp8r_subject_fail(subject, "with two threads on one plan, run answers %s",
                                     fp8r_status_name(runners[i].status));
        if (!fp8r_area_intact(&runners[i].out) || !fp8r_area_intact(&runners[i].workspace))
            return fp8r_subject_fail(
                subject, "with two threads on one plan, memory around out or workspace was written");
    }
    return true;
}

/* Where a class is promised the bits are those of the first run; else the two must only be right. */
bool fp8r_check_threads(struct fp8r_subject *subject, const struct fp8r_trial *trial, int config)
{
    struct runner runners[2] = {0};
    struct fp8r_verdict verdict;
    fp8r_subject_begin(subject, "threads", subject->row->backend.configs[config]);
    bool good = runner_init(&runners[0], subject, trial) && runner_init(&runners[1], subject, trial);
    if (!good) fp8r_subject_fail(subject, "memory ran out");
    good = good && run_together(subject, runners);
    for (int i = 0; i < 2 && good; i++) {
        fp8r_verify(subject->verifier, runners[i].out.data, &verdict);
        if (!verdict.is_good)
            good = fp8r_subject_fail(subject, "with two threads on one plan: %s", verdict.text);
    }
    if (good && memcmp(runners[0].out.data, runners[1].out.data, out_area(subject)->data_bytes) != 0)
        good =
            fp8r_subject_fail(subject, "two threads that run one plan on equal operands get different bits");
    for (int i = 0; i < 2; i++) {
        fp8r_area_destroy(&runners[i].out);
        fp8r_area_destroy(&runners[i].workspace);
        fp8r_measure_device_fini(&runners[i].device);
    }
    return good;
}

/* The first element of rows 0..rows-1 that differs between two results, or NULL. */
static const char *first_difference(const struct fp8r_subject *subject, const uint8_t *a, const uint8_t *b,
                                    int64_t rows, char text[96])
{
    const fp8r_matrix *out = &subject->inputs.matmul.out;
    size_t size = out->dtype == FP8R_DTYPE_FP32 ? 4 : 2;
    for (int64_t i = 0; i < out->batch; i++) {
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < out->cols; c++) {
                int64_t at =
                    (i * out->batch_stride + r * out->row_stride + c * out->col_stride) * (int64_t)size;
                if (memcmp(a + at, b + at, size) == 0) continue;
                snprintf(text, 96, "out[%lld,%lld,%lld]", (long long)i, (long long)r, (long long)c);
                return text;
            }
        }
    }
    return NULL;
}

/* Fewer rows through the same plan: right, nothing more touched, and the same bits where the class is the
 * same. */
static bool check_fewer(struct fp8r_subject *subject, const struct fp8r_trial *trial, int config, int64_t m,
                        const uint8_t *full)
{
    fp8r_problem fewer = subject->product.problem;
    fp8r_matmul matmul = subject->inputs.matmul;
    fp8r_reason reason;
    char where[96];
    const char *class = fp8r_row_numerics(subject->row, subject->device, &fewer, config);
    char full_class[FP8R_NAME_BYTES] = "";
    snprintf(full_class, sizeof full_class, "%s", class ? class : "");
    fewer.m = m;
    class = fp8r_row_numerics(subject->row, subject->device, &fewer, config);
    fp8r_inputs_poison_out(&subject->inputs);
    matmul.a.rows = matmul.out.rows = m;
    fp8r_status status = fp8r_trial_run(trial, &matmul);
    subject->result->runs++;
    if (status == FP8R_ERROR_UNSUPPORTED && subject->multiplies &&
        !fp8r_row_supports(subject->row, subject->device, &fewer, config, &reason))
        return true; /* a plan by name may refuse fewer rows */
    if (status != FP8R_OK)
        return fp8r_subject_fail(subject, "a run with M=%lld of the plan answers %s", (long long)m,
                                 fp8r_status_name(status));
    bool promised = class && full_class[0] && strcmp(class, full_class) == 0;
    if (promised && first_difference(subject, full, out_area(subject)->data, m, where))
        return fp8r_subject_fail(subject, "numerics class %s is promised, but %s has other bits with M=%lld",
                                 full_class, where, (long long)m);
    return check_damage(subject, trial);
}

bool fp8r_check_rows(struct fp8r_subject *subject, const struct fp8r_trial *trial, int config)
{
    int64_t m = subject->product.problem.m;
    const int64_t counts[] = {1, (m + 1) / 2, m - 1};
    uint8_t *full = malloc(out_area(subject)->data_bytes + 1);
    bool good = true;
    fp8r_subject_begin(subject, "rows", subject->row->backend.configs[config]);
    if (!full) return fp8r_subject_fail(subject, "memory ran out");
    memcpy(full, out_area(subject)->data, out_area(subject)->data_bytes);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && good; i++)
        if (counts[i] >= 1 && counts[i] < m) good = check_fewer(subject, trial, config, counts[i], full);
    memcpy(out_area(subject)->data, full, out_area(subject)->data_bytes);
    free(full);
    return good;
}

/* Runs a configuration into the subject's out; false where it is refused. */
static bool run_config(struct fp8r_subject *subject, int config)
{
    struct fp8r_trial trial;
    char label[160];
    label_of(subject, config, label);
    if (fp8r_trial_create(subject->context, &subject->inputs.matmul, label, FP8R_GUARD_PAGES, &trial) !=
        FP8R_OK)
        return false;
    fp8r_inputs_poison_out(&subject->inputs);
    bool ran = fp8r_trial_run(&trial, &subject->inputs.matmul) == FP8R_OK;
    fp8r_trial_destroy(&trial);
    return ran;
}

/* Compares every later configuration of the class with the first one. */
static bool check_class(struct fp8r_subject *subject, int first, uint8_t *bits)
{
    const fp8r_backend *backend = &subject->row->backend;
    const fp8r_problem *problem = &subject->product.problem;
    char class[FP8R_NAME_BYTES], where[96];
    const char *name = fp8r_row_numerics(subject->row, subject->device, problem, first);
    if (!name || !run_config(subject, first)) return true;
    snprintf(class, sizeof class, "%s", name);
    memcpy(bits, out_area(subject)->data, out_area(subject)->data_bytes);
    for (int i = first + 1; backend->configs[i]; i++) {
        fp8r_reason reason;
        if (!fp8r_row_supports(subject->row, subject->device, problem, i, &reason)) continue;
        name = fp8r_row_numerics(subject->row, subject->device, problem, i);
        if (!name || strcmp(name, class) != 0 || !run_config(subject, i)) continue;
        fp8r_subject_begin(subject, "classes", backend->configs[i]);
        if (first_difference(subject, bits, out_area(subject)->data, problem->m, where))
            return fp8r_subject_fail(subject, "it has numerics class %s like %s, but other bits at %s", class,
                                     backend->configs[first], where);
    }
    return true;
}

bool fp8r_check_classes(struct fp8r_subject *subject)
{
    const fp8r_backend *backend = &subject->row->backend;
    bool good = true;
    if (!subject->multiplies || !backend->configs[1]) return true;
    uint8_t *bits = malloc(out_area(subject)->data_bytes + 1);
    if (!bits) return fp8r_subject_fail(subject, "memory ran out");
    for (int i = 0; backend->configs[i] && good; i++) {
        fp8r_reason reason;
        if (fp8r_row_supports(subject->row, subject->device, &subject->product.problem, i, &reason))
            good = check_class(subject, i, bits);
    }
    free(bits);
    return good;
}
