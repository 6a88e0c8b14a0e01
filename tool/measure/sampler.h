/* Times contestants on one problem: interleaved in a new random order each round, on rotating operands, in batches long
 * enough for the clock. Where the device has a producer, the second half of a batch stands behind it, call by call, and the
 * producer's time alone is taken off. Keeps every sample and decides nothing. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SAMPLER_H
#define FP8R_SAMPLER_H

#include "measure/random.h"
#include "measure/rotation.h"

/* What is timed: one call on the given operands, queued on the stream. */
typedef fp8r_status (*fp8r_contestant_call)(void *arg, const fp8r_pointers *pointers, void *stream);

struct fp8r_contestant {
    fp8r_contestant_call call;
    void *arg;
    bool is_out;    /* takes part in no further round; its samples stay */
    int64_t batch;  /* calls to a sample; 0 until it has been warmed */
    double warm_us; /* time of a call at the end of the warm-up */
    struct fp8r_recording *recording;
    struct fp8r_turn *turn; /* what the recording borrows */
};

struct fp8r_sample {
    int32_t contestant, round;
    double us;     /* of one call: the batch's time, less the producers', over its calls */
    int64_t at_ns; /* the clock when the batch had ended */
};

struct fp8r_sampler {
    const struct fp8r_measure_device *device;
    struct fp8r_rotation *rotation;
    int64_t m;
    struct fp8r_random random;
    struct fp8r_contestant *contestants;
    int count, rounds;
    double producer_ns; /* one alone, among its like; 0 until it has been timed, and where there is none */
    int64_t timed_ns; /* all that ran between two readings of the clock: warm-up and verified calls, too */
    struct fp8r_sample *samples; /* in the order they were taken */
    size_t sample_count, sample_capacity;
};

/* Borrows device and rotation (loaded with the problem's operands). count: of contestants that will be added.
 */
int fp8r_sampler_init(struct fp8r_sampler *sampler, const struct fp8r_measure_device *device,
                      struct fp8r_rotation *rotation, int64_t m, int count, uint64_t seed,
                      struct fp8r_tool_error *error);
void fp8r_sampler_fini(struct fp8r_sampler *sampler);

/* The next contestant; its index is the order of adding. */
void fp8r_sampler_add(struct fp8r_sampler *sampler, fp8r_contestant_call call, void *arg);

/* Runs a contestant until it is warm and its batch is known; a call that alone takes longer than enough_us is
 * warm at once. Exit codes: UNMEASURED or INTERNAL, with the library's line. */
int fp8r_sampler_warm(struct fp8r_sampler *sampler, int contestant, double enough_us,
                      struct fp8r_tool_error *error);

/* Runs warmed contestants in turns for at least `us` of the device's time, and keeps no sample: for a device that changes its
 * clock once it has been busy for a while. */
int fp8r_sampler_heat(struct fp8r_sampler *sampler, double us, struct fp8r_tool_error *error);

/* One sample of each contestant that takes part. All of them must be warm. */
int fp8r_sampler_round(struct fp8r_sampler *sampler, struct fp8r_tool_error *error);

/* A contestant's times in the order of rounds: up to capacity of them, returns how many. */
size_t fp8r_sampler_times(const struct fp8r_sampler *sampler, int contestant, double *times_us,
                          size_t capacity);

/* Times of two contestants in the rounds that have both. */
size_t fp8r_sampler_pairs(const struct fp8r_sampler *sampler, int first, int second, double *first_us,
                          double *second_us, size_t capacity);

/* What a round takes with those that take part now. */
double fp8r_sampler_round_us(const struct fp8r_sampler *sampler);

#endif
