/* Eligibility. Pure: the same registry, device facts and problem give the same answer everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route/candidates.h"

#include <string.h>

#include "backend/row.h"
#include "base/sizes.h"

/* A class must hold for every M, so the row must take the family at every M; these stand for all. */
static const int64_t invariant_probes[] = {1, 16, 17, 256, 1 << 20};

static bool takes_every_m(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    fp8r_reason ignored;
    fp8r_problem other = *problem;
    for (size_t i = 0; i < sizeof invariant_probes / sizeof *invariant_probes; i++) {
        other.m = invariant_probes[i];
        if (!fp8r_row_supports(row, device, &other, FP8R_CONFIG_ANY, &ignored))
            return false;
    }
    return true;
}

/* The row's class is that of its own pick. A configuration of the same class may end at some M: another one of it goes on
 * from there. */
static bool keeps_one_class(const struct fp8r_row *row, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int config, fp8r_reason *reason)
{
    const char *class =
        takes_every_m(row, device, problem) ? fp8r_row_numerics(row, device, problem, fp8r_row_pick(row, device, problem)) : NULL;
    FP8R_REJECT_IF(!class, reason, NUMERICS, row->backend.name, 0, 0);
    if (config == FP8R_CONFIG_ANY)
        return true;
    const char *own = fp8r_row_numerics(row, device, problem, config);
    FP8R_REJECT_IF(!own || strcmp(own, class) != 0, reason, NUMERICS_CLASS, class, 0, 0);
    return true;
}

bool fp8r_row_eligible(const struct fp8r_registry *registry, const fp8r_device_facts *device,
                       const fp8r_problem *problem, int row, int config, fp8r_reason *reason)
{
    const struct fp8r_row *it = &registry->rows[row];
    if (!it->fits) {
        *reason = it->reason;
        return false;
    }
    if (!fp8r_row_supports(it, device, problem, config, reason))
        return false;
    return problem->numerics != FP8R_NUMERICS_BATCH_INVARIANT || keeps_one_class(it, device, problem, config, reason);
}

static const char *class_of(const struct fp8r_registry *registry, const fp8r_device_facts *device,
                            const fp8r_problem *problem, const struct fp8r_candidates *candidates, int row)
{
    return fp8r_row_numerics(&registry->rows[row], device, problem, candidates->rows[row].config);
}

/* Batch-invariant mode: one class serves the family, whatever M is; the others are out. */
static void hold_to_one_class(const struct fp8r_registry *registry, const fp8r_device_facts *device,
                              const fp8r_problem *problem, int held, struct fp8r_candidates *candidates)
{
    if (held >= 0 && !candidates->rows[held].is_eligible)
        held = -1;
    for (int i = 0; held < 0 && i < registry->count; i++)
        if (candidates->rows[i].is_eligible)
            held = i;
    if (held < 0)
        return;
    const char *class = class_of(registry, device, problem, candidates, held);
    for (int i = 0; i < registry->count; i++) {
        struct fp8r_choice *choice = &candidates->rows[i];
        if (!choice->is_eligible || strcmp(class_of(registry, device, problem, candidates, i), class) == 0)
            continue;
        choice->is_eligible = false;
        choice->reason = (fp8r_reason){.code = FP8R_REASON_NUMERICS_CLASS, .subject = class};
    }
}

void fp8r_candidates_init(const struct fp8r_registry *registry, const fp8r_device_facts *device,
                          const fp8r_problem *problem, const struct fp8r_limits *limits, struct fp8r_candidates *candidates)
{
    candidates->m_last = INT64_MAX;
    for (int i = 0; i < registry->count; i++) {
        const struct fp8r_row *row = &registry->rows[i];
        struct fp8r_choice *choice = &candidates->rows[i];
        *choice = (struct fp8r_choice){.config = FP8R_CONFIG_ANY};
        if (row->fits && limits->excluded >> i & 1) {
            choice->reason = (fp8r_reason){.code = FP8R_REASON_PREPARE_FAILED, .subject = "see the log"};
            continue;
        }
        choice->is_eligible = fp8r_row_eligible(registry, device, problem, i, FP8R_CONFIG_ANY, &choice->reason);
        if (choice->is_eligible && limits->is_capturing)
            choice->is_eligible = fp8r_row_pick_captured(row, device, problem, &choice->config, &choice->reason);
        else if (choice->is_eligible)
            choice->config = fp8r_row_pick(row, device, problem);
        if (row->fits)
            candidates->m_last = fp8r_size_min(candidates->m_last, fp8r_row_horizon(row, device, problem));
    }
    if (problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT)
        hold_to_one_class(registry, device, problem, limits->held, candidates);
}
