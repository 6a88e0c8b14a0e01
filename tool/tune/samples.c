/* Samples in memory: cases by machine and problem, pairs by run and round.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/samples.h"

#include <stdlib.h>
#include <string.h>

#include "tune/samples_grow.h"

const char *sample_phase_name(int phase)
{
    static const char *const names[] = {"grid", "border", "confirm", "gate", "audit"};
    return phase >= 0 && phase < SAMPLE_PHASES ? names[phase] : "unknown";
}

void samples_fini(struct samples *samples)
{
    for (size_t i = 0; i < samples->case_count; i++) {
        for (int j = 0; j < samples->cases[i].count; j++)
            free(samples->cases[i].candidates[j].samples);
        free(samples->cases[i].candidates);
    }
    for (int i = 0; i < samples->machine_count; i++)
        fp8r_route_file_fini(&samples->machines[i]);
    free(samples->machines);
    free(samples->runs);
    free(samples->cases);
    free(samples->index);
    memset(samples, 0, sizeof *samples);
}

static uint64_t hash_of(int machine, const char *problem)
{
    uint64_t hash = 0xCBF29CE484222325u ^ (uint64_t)machine; /* FNV-1a */
    for (; *problem; problem++)
        hash = (hash ^ (unsigned char)*problem) * 0x100000001B3u;
    return hash ^ hash >> 32;
}

static size_t *find_slot(const struct samples *samples, int machine, const char *problem)
{
    for (uint64_t at = hash_of(machine, problem);; at++) {
        size_t *slot = &samples->index[at & (samples->index_size - 1)];
        if (*slot == 0)
            return slot;
        const struct sample_case *it = &samples->cases[*slot - 1];
        if (it->machine == machine && strcmp(it->problem, problem) == 0)
            return slot;
    }
}

struct sample_case *samples_find(const struct samples *samples, int machine, const char *problem)
{
    size_t found = samples->index_size > 0 ? *find_slot(samples, machine, problem) : 0;
    return found > 0 ? &samples->cases[found - 1] : NULL;
}

static bool reindex(struct samples *samples)
{
    size_t size = samples->index_size > 0 ? 2 * samples->index_size : 64;
    size_t *index = calloc(size, sizeof *index);
    if (!index)
        return false;
    free(samples->index);
    samples->index = index;
    samples->index_size = size;
    for (size_t i = 0; i < samples->case_count; i++)
        *find_slot(samples, samples->cases[i].machine, samples->cases[i].problem) = i + 1;
    return true;
}

bool samples_add_case(struct samples *samples, const struct sample_case *it)
{
    if (!samples_grow(&samples->cases, samples->case_count, &samples->case_capacity))
        return false;
    if (2 * (samples->case_count + 1) > samples->index_size && !reindex(samples))
        return false;
    samples->cases[samples->case_count] = *it;
    *find_slot(samples, it->machine, it->problem) = samples->case_count + 1;
    samples->case_count++;
    return true;
}

int sample_case_candidate(const struct sample_case *it, const char *name)
{
    for (int i = 0; i < it->count; i++)
        if (strcmp(it->candidates[i].name, name) == 0)
            return i;
    return -1;
}

void sample_case_join(struct sample_case *it, const struct sample_case *other)
{
    if (other->weight > it->weight)
        it->weight = other->weight;
    if (it->default_last == 0 || (other->default_last > 0 && other->default_last < it->default_last))
        it->default_last = other->default_last;
}

int sample_compare(const struct sample *a, const struct sample *b)
{
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->phase != b->phase ? a->phase - b->phase : (a->round > b->round) - (a->round < b->round);
}

/* Both lists are mostly in order, so that the sample wanted stands where the last one was found or right behind; where
 * they are not, all are looked at. */
static const struct sample *partner(const struct sample_candidate *other, bool is_ordered, const struct sample *sample,
                                    size_t *from)
{
    for (size_t step = 0; step < other->count; step++) {
        size_t i = (*from + step) % other->count;
        int order = sample_compare(&other->samples[i], sample);
        if (order == 0 || (is_ordered && order > 0)) {
            *from = i;
            return order == 0 ? &other->samples[i] : NULL;
        }
    }
    return NULL;
}

static bool is_ordered(const struct sample_candidate *it)
{
    for (size_t i = 1; i < it->count; i++)
        if (sample_compare(&it->samples[i - 1], &it->samples[i]) >= 0)
            return false;
    return true;
}

bool sample_is_tuned(const struct sample *sample)
{
    return sample->phase == SAMPLE_GRID || sample->phase == SAMPLE_BORDER || sample->phase == SAMPLE_CONFIRM;
}

size_t sample_pairs(const struct sample_candidate *a, const struct sample_candidate *b, int phase, double *a_us,
                    double *b_us, size_t capacity)
{
    size_t pairs = 0, from = 0;
    bool ordered = is_ordered(a) && is_ordered(b);
    for (size_t i = 0; i < a->count && pairs < capacity; i++) {
        if (phase != SAMPLE_PHASES && a->samples[i].phase != phase)
            continue;
        const struct sample *other = partner(b, ordered, &a->samples[i], &from);
        if (!other)
            continue;
        a_us[pairs] = a->samples[i].us;
        b_us[pairs] = other->us;
        pairs++;
    }
    return pairs;
}

bool sample_case_same_list(const struct sample_case *a, const struct sample_case *b)
{
    if (a->count != b->count || a->fallback != b->fallback)
        return false;
    for (int i = 0; i < a->count; i++)
        if (strcmp(a->candidates[i].name, b->candidates[i].name) != 0 ||
            strcmp(a->candidates[i].rev, b->candidates[i].rev) != 0)
            return false;
    return true;
}
