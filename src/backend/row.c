/* One row, asked and run. Every path to a backend goes through here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/row.h"

#include <string.h>

#include "backend/steps.h"
#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"

enum { GRAIN = 256, PITCH = 16 };

static bool quantises(const struct fp8r_row *row, const fp8r_problem *problem)
{
    return row->quantises_a && fp8r_dtype_is_half(problem->a.dtype);
}

/* How the quantised rows lie in workspace: codes at a pitch that every kernel takes, then one scale a row. */
struct lowered {
    fp8r_problem problem; /* what the row is asked */
    int64_t items;        /* matrices of a that differ */
    int64_t codes_bytes, scales_bytes;
};

static int32_t align_of(int64_t bytes)
{
    int64_t power = bytes & -bytes;
    return power > GRAIN ? GRAIN : (int32_t)power;
}

static bool round_up(int64_t bytes, int64_t grain, int64_t *rounded)
{
    if (!fp8r_size_add(bytes, grain - 1, rounded)) return false;
    *rounded = *rounded / grain * grain;
    return true;
}

/* False where the sizes leave 64 bits. Nothing but batch strides depends on m. */
static bool lower(const fp8r_problem *problem, struct lowered *lowered)
{
    const bool repeats = problem->batch == 1 || problem->a.batch_stride == 0;
    int64_t pitch, codes, rows, scales;
    lowered->items = repeats ? 1 : problem->batch;
    if (!round_up(problem->k, PITCH, &pitch) || !fp8r_size_mul(problem->m, lowered->items, &rows) ||
        !fp8r_size_mul(rows, pitch, &codes) || !round_up(codes, GRAIN, &lowered->codes_bytes) ||
        !fp8r_size_mul(rows, (int64_t)sizeof(float), &scales) || !round_up(scales, GRAIN, &lowered->scales_bytes))
        return false;
    lowered->problem = *problem;
    lowered->problem.a = (fp8r_operand){.batch_stride = repeats ? 0 : problem->m * pitch,
                                        .row_stride = pitch,
                                        .col_stride = 1,
                                        .dtype = FP8R_DTYPE_E4M3,
                                        .align_bytes = align_of(pitch)};
    lowered->problem.layout_a = pitch == problem->k ? FP8R_LAYOUT_INNER : FP8R_LAYOUT_INNER_PADDED;
    lowered->problem.scale_a = (fp8r_operand){.batch_stride = repeats ? 0 : problem->m,
                                              .row_stride = 1,
                                              .dtype = FP8R_DTYPE_FP32,
                                              .align_bytes = GRAIN};
    lowered->problem.scale_a_kind = FP8R_SCALE_ROW;
    return true;
}

/* What the row is asked about; NULL where that is too large to be. */
static const fp8r_problem *asked(const struct fp8r_row *row, const fp8r_problem *problem, struct lowered *lowered)
{
    if (!quantises(row, problem)) return problem;
    return lower(problem, lowered) ? &lowered->problem : NULL;
}

bool fp8r_row_supports(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config, fp8r_reason *reason)
{
    struct lowered lowered;
    const fp8r_problem *it = asked(row, problem, &lowered);
    FP8R_REJECT_IF(!it, reason, SHAPE_MAX, "M", problem->m, INT64_MAX / 4 / problem->k / problem->batch);
    return row->backend.supports(row->backend.user, device, it, config, reason);
}

int fp8r_row_pick(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    struct lowered lowered;
    return row->backend.pick(row->backend.user, device, asked(row, problem, &lowered));
}

const char *fp8r_row_numerics(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                              int config)
{
    struct lowered lowered;
    if (!row->backend.numerics) return NULL;
    return row->backend.numerics(row->backend.user, device, asked(row, problem, &lowered), config);
}

double fp8r_row_expect(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config)
{
    struct lowered lowered;
    if (!row->backend.expect) return 0;
    return row->backend.expect(row->backend.user, device, asked(row, problem, &lowered), config);
}

int64_t fp8r_row_horizon(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    struct lowered lowered;
    const fp8r_problem *it = asked(row, problem, &lowered);
    return it && row->backend.horizon ? row->backend.horizon(row->backend.user, device, it) : INT64_MAX;
}

size_t fp8r_row_workspace(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                          int config)
{
    struct lowered lowered;
    const fp8r_problem *it = asked(row, problem, &lowered);
    size_t own = row->backend.workspace ? row->backend.workspace(row->backend.user, device, it, config) : 0;
    return it == problem ? own : own + (size_t)lowered.codes_bytes + (size_t)lowered.scales_bytes;
}

bool fp8r_row_captures(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config, fp8r_reason *reason)
{
    const size_t bytes = fp8r_row_workspace(row, device, problem, config);
    FP8R_REJECT_IF(bytes > 0, reason, CAPTURE, "workspace", bytes, 0);
    FP8R_REJECT_IF(row->backend.library, reason, CAPTURE, "its library's answer", 0, 0);
    return true;
}

static bool same_class(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                       int config, int other)
{
    const char *const class = fp8r_row_numerics(row, device, problem, config),
                *const others = fp8r_row_numerics(row, device, problem, other);
    return class && others && strcmp(class, others) == 0;
}

bool fp8r_row_pick_captured(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int *config, fp8r_reason *reason)
{
    const bool invariant = problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT;
    const int picked = fp8r_row_pick(row, device, problem);
    fp8r_reason ignored;
    double least_us = 0;
    bool found = false;
    *config = picked;
    if (fp8r_row_captures(row, device, problem, picked, reason)) return true;
    for (int i = 0; row->backend.configs[i]; i++) {
        if (!fp8r_row_supports(row, device, problem, i, &ignored) ||
            !fp8r_row_captures(row, device, problem, i, &ignored) ||
            (invariant && !same_class(row, device, problem, picked, i)))
            continue;
        const double us = fp8r_row_expect(row, device, problem, i);
        if (found && us >= least_us) continue;
        found = true;
        least_us = us;
        *config = i;
    }
    return found;
}

fp8r_status fp8r_row_prepare(const struct fp8r_row *row, const fp8r_services *services, const fp8r_device_facts *device,
                             const fp8r_problem *problem, int config, void **state)
{
    struct lowered lowered;
    if (!row->backend.prepare) return FP8R_OK;
    FP8R_TRY(row->backend.prepare(row->backend.user, services, device, asked(row, problem, &lowered), config, state));
    if (row->quantising && quantises(row, problem)) row->quantising->prepare(*state, device, &problem->a);
    return FP8R_OK;
}

void fp8r_row_destroy(const struct fp8r_row *row, void *state)
{
    if (row->backend.prepare && row->backend.destroy) row->backend.destroy(row->backend.user, state);
}

/* The quantiser takes every layout, and the product was prepared: what is left to fail is the device. */
static fp8r_status run_quantised(const struct fp8r_row *row, const fp8r_services *services,
                                 const fp8r_device_facts *device, const void *state, const fp8r_problem *problem,
                                 int config, const fp8r_pointers *pointers, char *workspace, size_t workspace_bytes,
                                 void *stream)
{
    struct lowered lowered;
    if (!lower(problem, &lowered)) return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "m is too large for 64-bit sizes");
    const int64_t used = lowered.codes_bytes + lowered.scales_bytes;
    if (workspace_bytes < (size_t)used)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace has %zu bytes: the quantised a alone needs %lld",
                         workspace_bytes, (long long)used);
    if (row->quantising && row->quantising->takes(state, &lowered.problem, &problem->a, pointers->a))
        return row->quantising->run(state, &lowered.problem, &problem->a, pointers, stream);
    const fp8r_operand *a = &problem->a, *codes = &lowered.problem.a;
    fp8r_matrix in = {.data = (void *)(uintptr_t)pointers->a, .dtype = a->dtype, .batch = lowered.items,
                      .rows = problem->m, .cols = problem->k, .batch_stride = a->batch_stride,
                      .row_stride = a->row_stride, .col_stride = a->col_stride};
    fp8r_matrix out = {.data = workspace, .dtype = FP8R_DTYPE_E4M3, .batch = lowered.items, .rows = problem->m,
                       .cols = problem->k, .batch_stride = codes->batch_stride, .row_stride = codes->row_stride,
                       .col_stride = 1};
    fp8r_matrix scale = {.data = workspace + lowered.codes_bytes, .dtype = FP8R_DTYPE_FP32, .batch = lowered.items,
                         .rows = problem->m, .cols = 1, .batch_stride = problem->m, .row_stride = 1, .col_stride = 1};
    FP8R_TRY(fp8r_step_quantize_ahead(device, services ? services->flags : 0, &in, &out, &scale, stream));
    fp8r_pointers given = *pointers;
    given.a = workspace;
    given.scale_a = scale.data;
    return row->backend.run(row->backend.user, services, state, &lowered.problem, config, &given, workspace + used,
                            workspace_bytes - (size_t)used, stream);
}

fp8r_status fp8r_row_run(const struct fp8r_row *row, const fp8r_services *services, const fp8r_device_facts *device,
                         const void *state, const fp8r_problem *problem, int config, const fp8r_pointers *pointers,
                         void *workspace, size_t workspace_bytes, void *stream)
{
    if (quantises(row, problem))
        return run_quantised(row, services, device, state, problem, config, pointers, workspace, workspace_bytes, stream);
    return row->backend.run(row->backend.user, services, state, problem, config, pointers, workspace, workspace_bytes,
                            stream);
}
