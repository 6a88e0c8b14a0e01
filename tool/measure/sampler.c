/* Rounds of samples.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "measure/clock.h"
#include "measure/statistics.h"
#include "tool_status.h"

enum { BATCH_MAX = 4096, PRODUCER_TIMES = 7, PRODUCERS_LEAST = 16, PRODUCERS_MOST = 256, PRODUCED_BYTES = 1 << 28 };

/* Who is to be called, for a recording. */
struct fp8r_turn {
    struct fp8r_sampler *sampler;
    int contestant;
    int64_t made; /* calls of its batch so far */
};

int fp8r_sampler_init(struct fp8r_sampler *sampler, const struct fp8r_measure_device *device,
                      struct fp8r_rotation *rotation, int64_t m, int count, uint64_t seed,
                      struct fp8r_tool_error *error)
{
    *sampler = (struct fp8r_sampler){.device = device, .rotation = rotation, .m = m, .random = {seed}};
    sampler->contestants = calloc((size_t)(count > 0 ? count : 1), sizeof *sampler->contestants);
    return sampler->contestants ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the contestants");
}

void fp8r_sampler_add(struct fp8r_sampler *sampler, fp8r_contestant_call call, void *arg)
{
    sampler->contestants[sampler->count++] = (struct fp8r_contestant){.call = call, .arg = arg};
}

static void forget(struct fp8r_sampler *sampler, struct fp8r_contestant *contestant)
{
    if (contestant->recording) sampler->device->forget(sampler->device->user, contestant->recording);
    free(contestant->turn);
    contestant->recording = NULL;
    contestant->turn = NULL;
}

void fp8r_sampler_fini(struct fp8r_sampler *sampler)
{
    for (int i = 0; i < sampler->count; i++)
        forget(sampler, &sampler->contestants[i]);
    free(sampler->contestants);
    free(sampler->samples);
    *sampler = (struct fp8r_sampler){0};
}

/* Writes `a` as it is: from one copy, which so stays near, as what a quantiser reads does. */
static fp8r_status produce(const struct fp8r_sampler *sampler, const fp8r_pointers *pointers, void *stream)
{
    const struct fp8r_rotation *rotation = sampler->rotation;
    return sampler->device->produce(sampler->device->user, (void *)(uintptr_t)pointers->a, fp8r_rotation_source(rotation),
                                    rotation->a_bytes, stream);
}

static fp8r_status call_turn(void *arg, void *stream)
{
    struct fp8r_turn *turn = arg;
    struct fp8r_sampler *sampler = turn->sampler;
    const struct fp8r_contestant *contestant = &sampler->contestants[turn->contestant];
    fp8r_pointers pointers;
    fp8r_rotation_next(sampler->rotation, sampler->m, &pointers);
    if (sampler->device->produce && turn->made++ % contestant->batch >= contestant->batch / 2) {
        fp8r_status status = produce(sampler, &pointers, stream);
        if (status != FP8R_OK) return status;
    }
    return contestant->call(contestant->arg, &pointers, stream);
}

static fp8r_status call_producer(void *arg, void *stream)
{
    struct fp8r_sampler *sampler = arg;
    fp8r_pointers pointers;
    fp8r_rotation_next(sampler->rotation, sampler->m, &pointers);
    return produce(sampler, &pointers, stream);
}

/* Once, for all contestants: what is a little wrong here is wrong for all of them alike, and no sample gets noisier. */
static fp8r_status time_producer(struct fp8r_sampler *sampler)
{
    const struct fp8r_measure_device *device = sampler->device;
    struct fp8r_recording *recording = NULL;
    double times_ns[PRODUCER_TIMES];
    const int64_t wanted = PRODUCED_BYTES / fp8r_size_max(1, (int64_t)sampler->rotation->a_bytes);
    const int64_t bounded = fp8r_size_max(PRODUCERS_LEAST, fp8r_size_min(wanted, PRODUCERS_MOST));
    const int64_t batch = fp8r_size_round_up(bounded, fp8r_rotation_sets(sampler->rotation));
    fp8r_status status = device->record(device->user, batch, call_producer, sampler, &recording);
    for (int i = -1; i < PRODUCER_TIMES && status == FP8R_OK; i++) { /* the first is not warm */
        int64_t elapsed_ns = 0;
        status = device->time(device->user, recording, &elapsed_ns);
        sampler->timed_ns += elapsed_ns;
        if (i >= 0) times_ns[i] = (double)elapsed_ns / (double)batch;
    }
    if (recording) device->forget(device->user, recording);
    if (status != FP8R_OK) return status;
    fp8r_sort(times_ns, PRODUCER_TIMES);
    sampler->producer_ns = fp8r_median(times_ns, PRODUCER_TIMES);
    return FP8R_OK;
}

/* Half of the calls stand behind a producer, whose time is not theirs. */
static double call_ns_of(const struct fp8r_sampler *sampler, int64_t elapsed_ns, int64_t batch)
{
    return fmax((double)elapsed_ns / (double)batch - sampler->producer_ns / 2, 1);
}

/* How many calls cover all sets, and have halves. */
static int64_t least_batch(const struct fp8r_sampler *sampler)
{
    const int64_t sets = fp8r_rotation_sets(sampler->rotation);
    return sampler->device->produce && sets % 2 != 0 ? 2 * sets : sets;
}

/* A recorded batch is the same calls each time, so it has to go through all sets itself. */
static int64_t batch_of(const struct fp8r_sampler *sampler, double call_ns)
{
    double sample_ns = (double)sampler->device->sample_ns;
    int64_t wanted = call_ns > 0 ? (int64_t)ceil(fmin(sample_ns / call_ns, BATCH_MAX)) : BATCH_MAX;
    wanted = fp8r_size_max(1, wanted);
    return sampler->device->records ? fp8r_size_round_up(wanted, least_batch(sampler)) : wanted;
}

static int record(struct fp8r_sampler *sampler, int index, int64_t batch, struct fp8r_tool_error *error)
{
    struct fp8r_contestant *contestant = &sampler->contestants[index];
    forget(sampler, contestant);
    contestant->turn = malloc(sizeof *contestant->turn);
    if (!contestant->turn) return fp8r_tool_error_memory(error, "a recording");
    *contestant->turn = (struct fp8r_turn){sampler, index, 0};
    contestant->batch = batch;
    return fp8r_tool_status(error, sampler->device->record(sampler->device->user, batch, call_turn,
                                                           contestant->turn, &contestant->recording));
}

static int time_once(struct fp8r_sampler *sampler, int index, int64_t *elapsed_ns, struct fp8r_tool_error *error)
{
    const struct fp8r_contestant *contestant = &sampler->contestants[index];
    int code = fp8r_tool_status(error,
                                sampler->device->time(sampler->device->user, contestant->recording, elapsed_ns));
    sampler->timed_ns += code == FP8R_EXIT_GOOD ? *elapsed_ns : 0;
    return code;
}

/* Batches grow until one lasts long enough; the first call's time, with its page faults and cold code, never
 * counts unless it alone is enough. */
int fp8r_sampler_warm(struct fp8r_sampler *sampler, int index, double enough_us,
                      struct fp8r_tool_error *error)
{
    struct fp8r_contestant *contestant = &sampler->contestants[index];
    int64_t elapsed_ns = 0, batch = sampler->device->records ? least_batch(sampler) : 1;
    if (sampler->device->produce && !(sampler->producer_ns > 0)) {
        int code = fp8r_tool_status(error, time_producer(sampler));
        if (code != FP8R_EXIT_GOOD) return code;
    }
    for (int turn = 0; turn < 8; turn++) {
        bool is_recorded = contestant->recording && contestant->batch == batch;
        int code = is_recorded ? FP8R_EXIT_GOOD : record(sampler, index, batch, error);
        if (code == FP8R_EXIT_GOOD) code = time_once(sampler, index, &elapsed_ns, error);
        if (code != FP8R_EXIT_GOOD) return code;
        contestant->warm_us = call_ns_of(sampler, elapsed_ns, batch) / 1e3;
        int64_t wanted = batch_of(sampler, (double)elapsed_ns / (double)batch);
        if ((turn > 0 && wanted <= batch) || contestant->warm_us > enough_us) break;
        batch = turn > 0 ? wanted : batch; /* the second time the same, warm */
    }
    return FP8R_EXIT_GOOD;
}

int fp8r_sampler_heat(struct fp8r_sampler *sampler, double us, struct fp8r_tool_error *error)
{
    const int64_t end_ns = sampler->timed_ns + (int64_t)(us * 1e3);
    bool has_any = true;
    while (has_any && sampler->timed_ns < end_ns) {
        has_any = false;
        for (int i = 0; i < sampler->count && sampler->timed_ns < end_ns; i++) {
            int64_t elapsed_ns = 0;
            if (sampler->contestants[i].is_out) continue;
            has_any = true;
            int code = time_once(sampler, i, &elapsed_ns, error);
            if (code != FP8R_EXIT_GOOD) return code;
        }
    }
    return FP8R_EXIT_GOOD;
}

static bool grow(struct fp8r_sampler *sampler)
{
    if (sampler->sample_count < sampler->sample_capacity) return true;
    size_t capacity = sampler->sample_capacity ? 2 * sampler->sample_capacity : 256;
    struct fp8r_sample *samples = realloc(sampler->samples, capacity * sizeof *samples);
    if (!samples) return false;
    sampler->samples = samples;
    sampler->sample_capacity = capacity;
    return true;
}

static int take(struct fp8r_sampler *sampler, int index, struct fp8r_tool_error *error)
{
    int64_t elapsed_ns = 0;
    if (!grow(sampler)) return fp8r_tool_error_memory(error, "the samples");
    int code = time_once(sampler, index, &elapsed_ns, error);
    if (code != FP8R_EXIT_GOOD) return code;
    sampler->samples[sampler->sample_count++] =
        (struct fp8r_sample){.contestant = index,
                             .round = sampler->rounds,
                             .us = call_ns_of(sampler, elapsed_ns, sampler->contestants[index].batch) / 1e3,
                             .at_ns = fp8r_clock_ns()};
    return FP8R_EXIT_GOOD;
}

/* Each next one is drawn from those that have not had their turn: `left` says how many there are. */
static int draw(struct fp8r_sampler *sampler, bool *had_turn, int64_t left)
{
    int64_t pick = fp8r_random_below(&sampler->random, left);
    for (int i = 0; i < sampler->count; i++) {
        if (sampler->contestants[i].is_out || had_turn[i] || pick-- > 0) continue;
        had_turn[i] = true;
        return i;
    }
    return -1;
}

int fp8r_sampler_round(struct fp8r_sampler *sampler, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    int64_t left = 0;
    bool *had_turn = calloc((size_t)(sampler->count > 0 ? sampler->count : 1), sizeof *had_turn);
    if (!had_turn) return fp8r_tool_error_memory(error, "a round");
    for (int i = 0; i < sampler->count; i++)
        left += !sampler->contestants[i].is_out;
    for (; left > 0 && code == FP8R_EXIT_GOOD; left--)
        code = take(sampler, draw(sampler, had_turn, left), error);
    sampler->rounds++;
    free(had_turn);
    return code;
}

size_t fp8r_sampler_times(const struct fp8r_sampler *sampler, int contestant, double *times_us,
                          size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < sampler->sample_count && count < capacity; i++)
        if (sampler->samples[i].contestant == contestant) times_us[count++] = sampler->samples[i].us;
    return count;
}

/* Samples come round after round, and a contestant has one in each at most. */
size_t fp8r_sampler_pairs(const struct fp8r_sampler *sampler, int first, int second, double *first_us,
                          double *second_us, size_t capacity)
{
    size_t count = 0;
    int32_t first_round = -1, second_round = -1;
    double first_time = 0, second_time = 0;
    for (size_t i = 0; i < sampler->sample_count && count < capacity; i++) {
        const struct fp8r_sample *sample = &sampler->samples[i];
        if (sample->contestant == first) {
            first_round = sample->round;
            first_time = sample->us;
        }
        if (sample->contestant == second) {
            second_round = sample->round;
            second_time = sample->us;
        }
        if ((sample->contestant == first || sample->contestant == second) && first_round == second_round) {
            first_us[count] = first_time;
            second_us[count++] = second_time;
        }
    }
    return count;
}

double fp8r_sampler_round_us(const struct fp8r_sampler *sampler)
{
    double sum = 0;
    for (int i = 0; i < sampler->count; i++)
        if (!sampler->contestants[i].is_out)
            sum += (sampler->contestants[i].warm_us + sampler->producer_ns / 2e3) *
                   (double)sampler->contestants[i].batch;
    return sum;
}
