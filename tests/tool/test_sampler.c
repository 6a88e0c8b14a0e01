/* Sampler and rotation on a device whose time is made up: what each call costs is known, so is every sample.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/sampler.h"

struct fp8r_recording {
    int64_t count;
    fp8r_measured_call call;
    void *arg;
};

/* The made-up device. Calls add to its clock. */
struct world {
    struct fp8r_measure_device device;
    struct fp8r_inputs inputs;
    struct fp8r_rotation rotation;
    int64_t now_ns;
    int64_t calls;
    const void *seen[64]; /* b of the last calls */
    int order[4096];      /* who was timed */
    int order_count;
    int64_t produced;     /* how often the producer ran */
    const void *written;  /* what it wrote last; NULL once a call has seen it */
    int64_t behind, bytes; /* calls behind the producer; its bytes */
};

enum { PRODUCER_NS = 1500, BEHIND_EXTRA_NS = 400 };

/* One contestant: costs so much a call, and more behind the producer. */
struct runner {
    struct world *world;
    int64_t cost_ns, first_extra_ns;
    int id;
    fp8r_status status;
};

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return aligned_alloc(256, (bytes + 255) / 256 * 256);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static fp8r_status copy(void *user, void *to, const void *from, size_t bytes)
{
    (void)user;
    memcpy(to, from, bytes);
    return FP8R_OK;
}

static fp8r_status record(void *user, int64_t count, fp8r_measured_call call, void *arg,
                          struct fp8r_recording **recording)
{
    (void)user;
    struct fp8r_recording *made = malloc(sizeof *made);
    assert_non_null(made);
    *made = (struct fp8r_recording){count, call, arg};
    *recording = made;
    return FP8R_OK;
}

static fp8r_status time_batch(void *user, const struct fp8r_recording *recording, int64_t *elapsed_ns)
{
    struct world *world = user;
    int64_t start = world->now_ns;
    fp8r_status status = FP8R_OK;
    world->written = NULL;
    for (int64_t i = 0; i < recording->count && status == FP8R_OK; i++)
        status = recording->call(recording->arg, NULL);
    *elapsed_ns = world->now_ns - start;
    return status;
}

static void forget(void *user, struct fp8r_recording *recording)
{
    (void)user;
    free(recording);
}

static fp8r_status run_runner(void *arg, const fp8r_pointers *pointers, void *stream)
{
    struct runner *runner = arg;
    struct world *world = runner->world;
    (void)stream;
    world->seen[world->calls++ % 64] = pointers->b;
    world->now_ns += runner->cost_ns + runner->first_extra_ns;
    if (world->written) assert_ptr_equal(world->written, pointers->a);
    world->behind += world->written != NULL;
    if (world->written) world->now_ns += BEHIND_EXTRA_NS;
    world->written = NULL;
    runner->first_extra_ns = 0;
    if (world->order_count < 4096) world->order[world->order_count++] = runner->id;
    return runner->status;
}

static void world_init(struct world *world, const char *problem, int64_t cache_bytes, bool records)
{
    struct fp8r_tool_error error = {0};
    fp8r_matmul shape;
    memset(world, 0, sizeof *world);
    world->device = (struct fp8r_measure_device){.cache_bytes = cache_bytes,
                                                 .sample_ns = 50000,
                                                 .available_bytes = (int64_t)1 << 30,
                                                 .records = records,
                                                 .user = world,
                                                 .allocate = allocate,
                                                 .release = release,
                                                 .copy_in = copy,
                                                 .copy_out = copy,
                                                 .record = record,
                                                 .time = time_batch,
                                                 .forget = forget};
    assert_int_equal(fp8r_matmul_parse(problem, &shape), FP8R_OK);
    assert_int_equal(fp8r_inputs_create(&shape, 1, FP8R_GUARD_BYTES, &world->inputs, &error), 0);
    assert_int_equal(fp8r_rotation_load(&world->rotation, &world->device, &world->inputs, 4, &error), 0);
}

static void world_fini(struct world *world)
{
    fp8r_rotation_fini(&world->rotation);
    fp8r_inputs_destroy(&world->inputs);
}

/* Weights are 64 x 64 bytes of b, 256 of scale_b and 128 of bias. */
static void rotation_exceeds_the_cache(void **state)
{
    (void)state;
    struct world world;
    fp8r_pointers first, pointers;
    world_init(&world, "3x64x64:bias", 16384, false);
    assert_true(fp8r_rotation_is_cold(&world.rotation, 4));
    int64_t sets = world.rotation.parts[FP8R_ROTATION_WEIGHTS].sets;
    assert_true(sets * (4096 + 256 + 128) > 4 * 16384);
    fp8r_rotation_next(&world.rotation, 2, &first);
    assert_int_equal(first.m, 2);
    for (int64_t i = 1; i < sets; i++) {
        fp8r_rotation_next(&world.rotation, 2, &pointers);
        assert_true(pointers.b != first.b);
        assert_memory_equal(pointers.b, world.inputs.matmul.b.data, 4096);
        assert_memory_equal(pointers.a, world.inputs.matmul.a.data, 3 * 64);
        assert_memory_equal(pointers.scale_b, world.inputs.matmul.scale_b.data, 64 * 4);
        assert_memory_equal(pointers.bias, world.inputs.matmul.bias.data, 64 * 2);
    }
    fp8r_rotation_next(&world.rotation, 2, &pointers);
    assert_ptr_equal(pointers.b, first.b);
    world_fini(&world);
}

/* A product that moves more than the caches hold many times needs no copies; a small one needs them all. */
static void large_products_turn_fewer_sets(void **state)
{
    (void)state;
    struct world world;
    fp8r_matmul member;
    fp8r_pointers first, pointers;
    world_init(&world, "400x64x64:bias", 16384, false); /* 400 rows: 400 * (64 + 4 + 128) bytes beside the weights */
    const int64_t sets = world.rotation.parts[FP8R_ROTATION_WEIGHTS].sets;
    assert_int_equal(fp8r_rotation_sets(&world.rotation), sets);
    assert_int_equal(fp8r_matmul_parse("400x64x64:bias", &member), FP8R_OK);
    fp8r_rotation_narrow(&world.rotation, &member);
    assert_int_equal(fp8r_rotation_sets(&world.rotation), 1);
    fp8r_rotation_next(&world.rotation, 400, &first);
    fp8r_rotation_next(&world.rotation, 400, &pointers);
    assert_ptr_equal(pointers.b, first.b);
    assert_int_equal(fp8r_matmul_parse("100x64x64:bias", &member), FP8R_OK); /* 24080 bytes: two are not enough */
    fp8r_rotation_narrow(&world.rotation, &member);
    assert_int_equal(fp8r_rotation_sets(&world.rotation), 3);
    assert_int_equal(fp8r_matmul_parse("1x64x64:bias", &member), FP8R_OK);
    fp8r_rotation_narrow(&world.rotation, &member);
    assert_true(fp8r_rotation_sets(&world.rotation) * 4676 > 4 * 16384);
    world_fini(&world);
}

static void rotation_is_bounded_by_memory(void **state)
{
    (void)state;
    struct world world;
    struct fp8r_tool_error error = {0};
    world_init(&world, "3x64x64", 16384, false);
    world.device.available_bytes = 40000;
    assert_int_equal(fp8r_rotation_load(&world.rotation, &world.device, &world.inputs, 4, &error), 0);
    assert_false(fp8r_rotation_is_cold(&world.rotation, 4));
    assert_true(world.rotation.parts[FP8R_ROTATION_WEIGHTS].sets >= 1);
    world.device.available_bytes = 1;
    assert_int_equal(fp8r_rotation_load(&world.rotation, &world.device, &world.inputs, 4, &error), 0);
    assert_int_equal(world.rotation.parts[FP8R_ROTATION_WEIGHTS].sets, 1);
    world_fini(&world);
}

static void rotation_keeps_alignment(void **state)
{
    (void)state;
    struct world world;
    fp8r_pointers pointers;
    world_init(&world, "3x64x64:align=2", 16384, false);
    for (int i = 0; i < 40; i++) {
        fp8r_rotation_next(&world.rotation, 3, &pointers);
        assert_true((uintptr_t)pointers.a % 4 == 2 && (uintptr_t)pointers.b % 4 == 2 &&
                    (uintptr_t)pointers.out % 4 == 2);
    }
    world_fini(&world);
}

static void times_are_exact(void **state)
{
    (void)state;
    struct world world;
    struct fp8r_tool_error error = {0};
    struct fp8r_sampler sampler;
    world_init(&world, "1x64x64", 16384, false);
    struct runner runners[3] = {
        {&world, 1000, 500000, 0, FP8R_OK}, {&world, 200000, 0, 1, FP8R_OK}, {&world, 7, 90000, 2, FP8R_OK}};
    assert_int_equal(fp8r_sampler_init(&sampler, &world.device, &world.rotation, 1, 3, 5, &error), 0);
    for (int i = 0; i < 3; i++)
        fp8r_sampler_add(&sampler, run_runner, &runners[i]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fp8r_sampler_warm(&sampler, i, 1e9, &error), 0);
    assert_int_equal(sampler.contestants[0].batch,
                     50); /* 50 us of calls of 1 us; the first call did not count */
    assert_int_equal(sampler.contestants[1].batch, 1);
    assert_int_equal(sampler.contestants[2].batch, 4096); /* 50 us would take 7143: bounded */
    for (int round = 0; round < 10; round++)
        assert_int_equal(fp8r_sampler_round(&sampler, &error), 0);
    assert_int_equal(sampler.sample_count, 30);
    double times[16];
    const double wanted[3] = {1, 200, 0.007};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fp8r_sampler_times(&sampler, i, times, 16), 10);
        for (int j = 0; j < 10; j++)
            assert_true(fabs(times[j] - wanted[i]) < 1e-9);
    }
    fp8r_sampler_fini(&sampler);
    world_fini(&world);
}

/* Every round has each once, not always in one order, and who is out is left out. */
static void rounds_are_interleaved(void **state)
{
    (void)state;
    struct world world;
    struct fp8r_tool_error error = {0};
    struct fp8r_sampler sampler;
    world_init(&world, "1x64x64", 16384, false);
    struct runner runners[3];
    assert_int_equal(fp8r_sampler_init(&sampler, &world.device, &world.rotation, 1, 3, 5, &error), 0);
    for (int i = 0; i < 3; i++) {
        runners[i] = (struct runner){&world, 60000, 0, i, FP8R_OK};
        fp8r_sampler_add(&sampler, run_runner, &runners[i]);
        assert_int_equal(fp8r_sampler_warm(&sampler, i, 1e9, &error), 0);
    }
    world.order_count = 0;
    for (int round = 0; round < 60; round++)
        assert_int_equal(fp8r_sampler_round(&sampler, &error), 0);
    int first[3] = {0};
    for (int round = 0; round < 60; round++) {
        int had = 0;
        for (int i = 0; i < 3; i++)
            had |= 1 << world.order[3 * round + i];
        assert_int_equal(had, 7);
        first[world.order[3 * round]]++;
    }
    for (int i = 0; i < 3; i++)
        assert_true(first[i] >= 8); /* 20 expected; fewer than 8 of 60 has a chance below 1e-4 */
    sampler.contestants[1].is_out = true;
    world.order_count = 0;
    assert_int_equal(fp8r_sampler_round(&sampler, &error), 0);
    assert_int_equal(world.order_count, 2);
    assert_int_equal(world.order[0] + world.order[1], 2);
    double a[64], b[64];
    assert_int_equal(fp8r_sampler_pairs(&sampler, 0, 1, a, b, 64), 60);
    assert_int_equal(fp8r_sampler_pairs(&sampler, 0, 2, a, b, 64), 61);
    fp8r_sampler_fini(&sampler);
    world_fini(&world);
}

/* A recorded batch is the same calls again, so it must itself go through all sets. */
static void recorded_batches_cover_the_rotation(void **state)
{
    (void)state;
    struct world world;
    struct fp8r_tool_error error = {0};
    struct fp8r_sampler sampler;
    world_init(&world, "1x64x64", 16384, true);
    struct runner runner = {&world, 1000, 0, 0, FP8R_OK};
    assert_int_equal(fp8r_sampler_init(&sampler, &world.device, &world.rotation, 1, 1, 5, &error), 0);
    fp8r_sampler_add(&sampler, run_runner, &runner);
    assert_int_equal(fp8r_sampler_warm(&sampler, 0, 1e9, &error), 0);
    assert_int_equal(sampler.contestants[0].batch % fp8r_rotation_sets(&world.rotation), 0);
    fp8r_sampler_fini(&sampler);
    world_fini(&world);
}

/* Heat is time of all that are in the race, and of nobody who is out; nothing of it is kept. */
static void heat_keeps_no_sample(void **state)
{
    (void)state;
    struct world world;
    struct fp8r_sampler sampler;
    struct fp8r_tool_error error = {0};
    world_init(&world, "4x256x256", 1 << 20, true);
    struct runner runners[3];
    assert_int_equal(fp8r_sampler_init(&sampler, &world.device, &world.rotation, 4, 3, 1, &error), FP8R_EXIT_GOOD);
    for (int i = 0; i < 3; i++) {
        runners[i] = (struct runner){.world = &world, .cost_ns = 10000 * (i + 1), .id = i};
        fp8r_sampler_add(&sampler, run_runner, &runners[i]);
        assert_int_equal(fp8r_sampler_warm(&sampler, i, 1e9, &error), FP8R_EXIT_GOOD);
    }
    sampler.contestants[1].is_out = true;
    int64_t before_ns = world.now_ns;
    world.order_count = 0;
    assert_int_equal(fp8r_sampler_heat(&sampler, 20000, &error), FP8R_EXIT_GOOD);
    assert_in_range(world.now_ns - before_ns, 20000000, 30000000);
    int turns[3] = {0};
    for (int i = 0; i < world.order_count; i++)
        turns[world.order[i]]++;
    assert_true(turns[0] > 0 && turns[1] == 0 && turns[2] > 0);
    assert_int_equal(sampler.sample_count, 0);
    assert_int_equal(sampler.rounds, 0);
    for (int i = 0; i < 3; i++)
        sampler.contestants[i].is_out = true;
    assert_int_equal(fp8r_sampler_heat(&sampler, 20000, &error), FP8R_EXIT_GOOD); /* nobody: at once */
    sampler.contestants[0].is_out = false;
    runners[0].status = FP8R_ERROR_DEVICE;
    assert_int_equal(fp8r_sampler_heat(&sampler, 20000, &error), FP8R_EXIT_UNMEASURED);
    fp8r_sampler_fini(&sampler);
    world_fini(&world);
}

static fp8r_status produce(void *user, void *to, const void *from, size_t bytes, void *stream)
{
    struct world *world = user;
    (void)stream;
    assert_memory_equal(to, from, bytes);
    world->written = to;
    world->bytes = (int64_t)bytes;
    world->produced++;
    world->now_ns += PRODUCER_NS;
    return FP8R_OK;
}

/* The producer's own time is taken off; what it costs a call to stand behind it counts for half of the calls. */
static void half_of_the_calls_stand_behind_a_producer(void **state)
{
    (void)state;
    struct world world;
    fp8r_matmul member;
    struct fp8r_tool_error error = {0};
    struct fp8r_sampler sampler;
    world_init(&world, "5x64x64", 16384, true);
    world.device.produce = produce;
    assert_int_equal(fp8r_matmul_parse("3x64x64", &member), FP8R_OK);
    fp8r_rotation_narrow(&world.rotation, &member);
    world.rotation.parts[FP8R_ROTATION_WEIGHTS].turning = 11; /* odd: twice as many have halves */
    world.rotation.parts[FP8R_ROTATION_ACTIVATIONS].turning = 11;
    struct runner runner = {&world, 1000, 0, 0, FP8R_OK};
    assert_int_equal(fp8r_sampler_init(&sampler, &world.device, &world.rotation, 3, 1, 5, &error), 0);
    fp8r_sampler_add(&sampler, run_runner, &runner);
    assert_int_equal(fp8r_sampler_warm(&sampler, 0, 1e9, &error), 0);
    assert_true(fabs(sampler.producer_ns - PRODUCER_NS) < 1e-9);
    assert_int_equal(sampler.contestants[0].batch % 22, 0);
    world.calls = world.behind = world.produced = 0;
    assert_int_equal(fp8r_sampler_round(&sampler, &error), 0);
    assert_int_equal(world.calls, sampler.contestants[0].batch);
    assert_int_equal(world.behind, world.calls / 2);
    assert_int_equal(world.produced, world.calls / 2);
    assert_int_equal(world.bytes, 3 * 64); /* the member's, not the family's */
    assert_true(fabs(sampler.samples[0].us - (1 + 0.5 * BEHIND_EXTRA_NS / 1e3)) < 1e-9);
    assert_true(fabs(sampler.contestants[0].warm_us - sampler.samples[0].us) < 1e-9);
    fp8r_sampler_fini(&sampler);
    world_fini(&world);
}

static void failures_are_returned(void **state)
{
    (void)state;
    struct world world;
    struct fp8r_tool_error error = {0};
    struct fp8r_sampler sampler;
    world_init(&world, "1x64x64", 16384, false);
    struct runner runner = {&world, 1000, 0, 0, FP8R_ERROR_DEVICE};
    assert_int_equal(fp8r_sampler_init(&sampler, &world.device, &world.rotation, 1, 1, 5, &error), 0);
    fp8r_sampler_add(&sampler, run_runner, &runner);
    assert_int_equal(fp8r_sampler_warm(&sampler, 0, 1e9, &error), FP8R_EXIT_UNMEASURED);
    fp8r_sampler_fini(&sampler);
    world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotation_exceeds_the_cache), cmocka_unit_test(large_products_turn_fewer_sets),
        cmocka_unit_test(rotation_is_bounded_by_memory),
        cmocka_unit_test(rotation_keeps_alignment),   cmocka_unit_test(times_are_exact),
        cmocka_unit_test(rounds_are_interleaved),     cmocka_unit_test(recorded_batches_cover_the_rotation),
        cmocka_unit_test(heat_keeps_no_sample),       cmocka_unit_test(half_of_the_calls_stand_behind_a_producer),
        cmocka_unit_test(failures_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
