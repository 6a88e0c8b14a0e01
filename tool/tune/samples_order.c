/* Brings samples into one order, whatever the order in which files were read: runs by id, which ascend in time, and a
 * candidate's samples by run, phase and round. Decisions depend on the order in which times were taken, and on nothing
 * else.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tune/samples.h"
#include "tune/samples_grow.h"

/* A run and where it stood. */
struct placed_run {
    struct sample_run run;
    int from;
};

static int compare_runs(const void *a, const void *b)
{
    return strcmp(((const struct placed_run *)a)->run.id, ((const struct placed_run *)b)->run.id);
}

static bool runs_ascend(const struct samples *samples)
{
    for (int i = 1; i < samples->run_count; i++)
        if (strcmp(samples->runs[i - 1].id, samples->runs[i].id) > 0)
            return false;
    return true;
}

/* to[i]: where run i stands now. */
static void renumber(struct samples *samples, const int *to)
{
    for (size_t i = 0; i < samples->case_count; i++) {
        struct sample_case *it = &samples->cases[i];
        it->done_run = to[it->done_run];
        for (int j = 0; j < it->count; j++) {
            struct sample_candidate *candidate = &it->candidates[j];
            candidate->dropped_run = to[candidate->dropped_run];
            for (size_t k = 0; k < candidate->count; k++)
                candidate->samples[k].run = to[candidate->samples[k].run];
        }
    }
}

static int order_runs(struct samples *samples, struct fp8r_tool_error *error)
{
    size_t count = (size_t)samples->run_count;
    if (runs_ascend(samples))
        return FP8R_EXIT_GOOD;
    struct placed_run *placed = calloc(count, sizeof *placed);
    int *to = calloc(count, sizeof *to);
    if (!placed || !to) {
        free(placed);
        free(to);
        return fp8r_tool_error_memory(error, "the order of samples");
    }
    for (size_t i = 0; i < count; i++)
        placed[i] = (struct placed_run){samples->runs[i], (int)i};
    qsort(placed, count, sizeof *placed, compare_runs);
    for (size_t i = 0; i < count; i++) {
        samples->runs[i] = placed[i].run;
        to[placed[i].from] = (int)i;
    }
    renumber(samples, to);
    free(placed);
    free(to);
    return FP8R_EXIT_GOOD;
}

static int compare_samples(const void *a, const void *b)
{
    return sample_compare(a, b);
}

/* Sorts where it is due, and keeps one of those that are the same. */
static int order_candidate(const struct samples *samples, const struct sample_case *it,
                           struct sample_candidate *candidate, struct fp8r_tool_error *error)
{
    bool is_sorted = true;
    size_t kept = candidate->count > 0;
    for (size_t i = 1; i < candidate->count && is_sorted; i++)
        is_sorted = sample_compare(&candidate->samples[i - 1], &candidate->samples[i]) < 0;
    if (is_sorted)
        return FP8R_EXIT_GOOD;
    qsort(candidate->samples, candidate->count, sizeof *candidate->samples, compare_samples);
    for (size_t i = 1; i < candidate->count; i++) {
        const struct sample *last = &candidate->samples[kept - 1], *next = &candidate->samples[i];
        if (sample_compare(last, next) != 0)
            candidate->samples[kept++] = *next;
        else if (last->us < next->us || last->us > next->us)
            return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                       "run %s has two times for %s of %s in round %d of phase %s: expected one",
                                       samples->runs[next->run].id, candidate->name, it->problem, (int)next->round,
                                       sample_phase_name(next->phase));
    }
    candidate->count = kept;
    return FP8R_EXIT_GOOD;
}

int samples_order(struct samples *samples, struct fp8r_tool_error *error)
{
    int code = order_runs(samples, error);
    for (size_t i = 0; i < samples->case_count; i++)
        for (int j = 0; j < samples->cases[i].count && code == FP8R_EXIT_GOOD; j++)
            code = order_candidate(samples, &samples->cases[i], &samples->cases[i].candidates[j], error);
    return code;
}

int samples_read(struct samples *samples, const char *path, struct fp8r_tool_error *error)
{
    int code = samples_read_lines(samples, path, error);
    return code == FP8R_EXIT_GOOD ? samples_order(samples, error) : code;
}
