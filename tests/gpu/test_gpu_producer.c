/* The kernel in front of products, on a GPU: it writes what it is to and nothing beside, whatever the size and the place,
 * directly and in a chain of programmatic launches; and sampling with it leaves every copy of `a` as it was.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gpu_measure.h"
#include "measure/sampler.h"

enum { ROOM = 16384, BEFORE = 256 };

/* A chain: from the first place to the second, from there to the third. */
struct chain {
    uint8_t *places[3];
    size_t bytes;
    int next;
};

static fp8r_status call_producer(void *arg, void *stream)
{
    struct chain *chain = arg;
    chain->next++;
    return device.produce(device.user, chain->places[chain->next], chain->places[chain->next - 1], chain->bytes, stream);
}

static void copy_through(uint8_t *memory, size_t bytes, size_t from, size_t to)
{
    static uint8_t sent[3 * ROOM], expected[3 * ROOM], got[3 * ROOM];
    struct fp8r_tool_error error = {0};
    struct fp8r_recording *recording = NULL;
    struct chain chain = {{memory + BEFORE + from, memory + ROOM + BEFORE + to, memory + 2 * ROOM + BEFORE + from}, bytes, 0};
    int64_t elapsed_ns;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    memcpy(expected, sent, sizeof sent);
    memcpy(expected + ROOM + BEFORE + to, sent + BEFORE + from, bytes);
    memcpy(expected + 2 * ROOM + BEFORE + from, sent + BEFORE + from, bytes);
    GOOD(device.copy_in(device.user, memory, sent, sizeof sent));
    GOOD(device.record(device.user, 2, call_producer, &chain, &recording));
    GOOD(device.time(device.user, recording, &elapsed_ns));
    device.forget(device.user, recording);
    GOOD(device.copy_out(device.user, got, memory, sizeof got));
    for (size_t i = 0; i < sizeof got; i++)
        if (got[i] != expected[i]) fail_msg("%zu bytes, %zu to %zu: byte %zu is %d", bytes, from, to, i, got[i]);
}

static void writes_what_it_is_to(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 15, 16, 17, 4095, 4096, 4097, 14336};
    uint8_t *memory = device.allocate(device.user, 3 * ROOM);
    assert_non_null(memory);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t from = 0; from < 2; from++)
            for (size_t to = 0; to < 2; to++)
                copy_through(memory, sizes[i], from, 8 * to);
    device.release(device.user, memory);
}

struct planned {
    fp8r_plan *plan;
    void *workspace;
};

static fp8r_status call_plan(void *arg, const fp8r_pointers *pointers, void *stream)
{
    const struct planned *it = arg;
    return fp8r_plan_run(it->plan, pointers, it->workspace, fp8r_plan_workspace(it->plan), stream);
}

static void check_copies(const struct fp8r_rotation *rotation, const struct fp8r_inputs *inputs)
{
    const struct fp8r_area *area = &inputs->areas[FP8R_INPUT_A];
    const struct fp8r_rotation_part *part = &rotation->parts[FP8R_ROTATION_ACTIVATIONS];
    struct fp8r_tool_error error = {0};
    uint8_t *got = malloc(area->data_bytes);
    assert_non_null(got);
    for (int64_t set = 0; set < part->sets; set++) {
        const uint8_t *at = part->memory + (size_t)set * part->set_bytes + rotation->offsets[FP8R_INPUT_A];
        GOOD(device.copy_out(device.user, got, at, area->data_bytes));
        assert_memory_equal(got, area->data, area->data_bytes);
    }
    free(got);
}

static void sample(const char *problem)
{
    struct fp8r_tool_error error = {0};
    struct fp8r_inputs inputs;
    struct fp8r_rotation rotation = {0};
    struct fp8r_sampler sampler;
    struct planned planned = {0};
    fp8r_matmul shape;
    GOOD(fp8r_matmul_parse(problem, &shape));
    GOOD(fp8r_inputs_create(&shape, 7, FP8R_GUARD_NONE, &inputs, &error));
    GOOD(fp8r_rotation_load(&rotation, &device, &inputs, 4, &error));
    fp8r_rotation_narrow(&rotation, &shape);
    GOOD(fp8r_plan_create(context, &shape, NULL, &planned.plan));
    planned.workspace = device.allocate(device.user, fp8r_plan_workspace(planned.plan));
    assert_non_null(planned.workspace);
    GOOD(fp8r_sampler_init(&sampler, &device, &rotation, shape.a.rows, 1, 5, &error));
    fp8r_sampler_add(&sampler, call_plan, &planned);
    GOOD(fp8r_sampler_warm(&sampler, 0, 1e9, &error));
    for (int round = 0; round < 5; round++)
        GOOD(fp8r_sampler_round(&sampler, &error));
    printf("%s: the producer alone %.2f us; a call %.2f us", problem, sampler.producer_ns / 1e3, sampler.samples[0].us);
    for (size_t i = 1; i < sampler.sample_count; i++)
        printf(" %.2f", sampler.samples[i].us);
    printf("\n");
    assert_true(sampler.producer_ns > 100);
    assert_true(sampler.samples[0].us > 0.1);
    check_copies(&rotation, &inputs);
    fp8r_sampler_fini(&sampler);
    device.release(device.user, planned.workspace);
    fp8r_plan_destroy(planned.plan);
    fp8r_rotation_fini(&rotation);
    fp8r_inputs_destroy(&inputs);
}

static void sampling_leaves_a_as_it_was(void **state)
{
    (void)state;
    static const char *const problems[] = {"1x4096x4096:static", "16x4096x14336:static", "3x1000x777:fp32:bias",
                                           "4*33x96x128:fp16:tensor", "1024x5376x3584:static", "16x4096x4096:a=bf16"};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        sample(problems[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writes_what_it_is_to),
                                       cmocka_unit_test(sampling_leaves_a_as_it_was)};
    return cmocka_run_group_tests(tests, measure_set_up, measure_tear_down);
}
