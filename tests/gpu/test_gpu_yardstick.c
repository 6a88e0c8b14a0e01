/* Judging on the device: right results pass, and everything that is planted in one is found: a NaN, an element that was
 * never written, one that is a little off, two scales swapped, a step of k left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gpu_measure.h"
#include "measure/inputs.h"
#include "measure/judge.h"
#include "measure/rotation.h"
#include "measure/yardstick.h"

enum { STEP = 32 };

static const char *const problems[] = {"1x4096x4096",       "64x512x14336",         "200x1000x777:fp32:bias",
                                       "4*33x96x128:fp16:tensor", "16x272x4096:precise", "300x520x1024:ldo=640",
                                       "2000x3000x2048",    "128*16x128x512:lda=65536:ba=512:bb=0:tensor"};

struct trial {
    struct fp8r_inputs inputs;
    struct fp8r_rotation rotation;
    fp8r_pointers pointers;
    struct fp8r_yardstick *yardstick;
    fp8r_plan *plan;
    void *workspace;
    size_t out_bytes;
};

static void trial_open(struct trial *trial, const char *problem)
{
    struct fp8r_tool_error error = {0};
    fp8r_matmul shape;
    int64_t bytes = 0;
    memset(trial, 0, sizeof *trial);
    GOOD(fp8r_matmul_parse(problem, &shape));
    GOOD(fp8r_inputs_create(&shape, 7, FP8R_GUARD_NONE, &trial->inputs, &error));
    GOOD(fp8r_rotation_load(&trial->rotation, &device, &trial->inputs, 0, &error));
    fp8r_rotation_next(&trial->rotation, shape.a.rows, &trial->pointers);
    struct fp8r_verify_options options = fp8r_verify_options_of(fp8r_context_device(context));
    GOOD(fp8r_yardstick_create(context, &device, &trial->inputs.matmul, &trial->pointers, &options, &trial->yardstick,
                               &error));
    if (!trial->yardstick) fail_msg("%s: no yardstick", problem);
    GOOD(fp8r_plan_create(context, &shape, NULL, &trial->plan));
    trial->workspace = device.allocate(device.user, fp8r_plan_workspace(trial->plan));
    assert_true(fp8r_matrix_span_bytes(&trial->inputs.matmul.out, &bytes));
    trial->out_bytes = (size_t)bytes;
}

static void trial_close(struct trial *trial)
{
    fp8r_plan_destroy(trial->plan);
    device.release(device.user, trial->workspace);
    fp8r_yardstick_destroy(trial->yardstick);
    fp8r_rotation_fini(&trial->rotation);
    fp8r_inputs_destroy(&trial->inputs);
}

static fp8r_status call(void *arg, void *stream)
{
    struct trial *trial = arg;
    return fp8r_plan_run(trial->plan, &trial->pointers, trial->workspace, fp8r_plan_workspace(trial->plan), stream);
}

static void run(struct trial *trial)
{
    struct fp8r_tool_error error = {0};
    struct fp8r_recording *recording = NULL;
    int64_t elapsed_ns;
    GOOD(device.judge->fill(device.user, trial->pointers.out, FP8R_POISON, trial->out_bytes));
    GOOD(device.record(device.user, 1, call, trial, &recording));
    GOOD(device.time(device.user, recording, &elapsed_ns));
    device.forget(device.user, recording);
}

/* How many elements are wrong; 0 and good. */
static int64_t judge(struct trial *trial, struct fp8r_verdict *verdict)
{
    struct fp8r_tool_error error = {0};
    GOOD(fp8r_yardstick_judge(trial->yardstick, trial->pointers.out, verdict, &error));
    assert_true(verdict->is_good == (verdict->wrong == 0));
    assert_int_equal(verdict->checked, trial->inputs.matmul.out.batch * trial->inputs.matmul.out.rows *
                                           trial->inputs.matmul.out.cols);
    return verdict->wrong;
}

static void right_results_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        struct trial trial;
        struct fp8r_verdict verdict;
        trial_open(&trial, problems[i]);
        run(&trial);
        if (judge(&trial, &verdict) > 0) fail_msg("%s: %s", problems[i], verdict.text);
        trial_close(&trial);
    }
}

/* The last element becomes these bytes. */
static int64_t with_last(struct trial *trial, const void *element, size_t bytes)
{
    struct fp8r_tool_error error = {0};
    struct fp8r_verdict verdict;
    run(trial);
    GOOD(device.copy_in(device.user, (uint8_t *)trial->pointers.out + trial->out_bytes - bytes, element, bytes));
    return judge(trial, &verdict);
}

static void one_element_is_found(void **state)
{
    (void)state;
    static const uint16_t poison = 0xFFFF, nan_bf16 = 0x7FC0, large_bf16 = 0x7F00;
    struct trial trial;
    trial_open(&trial, "300x520x1024:ldo=640");
    assert_int_equal(with_last(&trial, &poison, sizeof poison), 1);
    assert_int_equal(with_last(&trial, &nan_bf16, sizeof nan_bf16), 1);
    assert_int_equal(with_last(&trial, &large_bf16, sizeof large_bf16), 1);
    trial_close(&trial);
}

/* Nothing was written at all: each element counts. */
static void an_empty_kernel_is_found(void **state)
{
    (void)state;
    struct fp8r_tool_error error = {0};
    struct fp8r_verdict verdict;
    struct trial trial;
    trial_open(&trial, "200x1000x777:fp32:bias");
    GOOD(device.judge->fill(device.user, trial.pointers.out, FP8R_POISON, trial.out_bytes));
    assert_int_equal(judge(&trial, &verdict), 200 * 1000);
    assert_non_null(strstr(verdict.text, "out[0,0,0]"));
    trial_close(&trial);
}

static void swapped_scales_are_found(void **state)
{
    (void)state;
    struct fp8r_tool_error error = {0};
    struct fp8r_verdict verdict;
    struct trial trial;
    trial_open(&trial, "64x512x14336");
    const float *scales = trial.inputs.matmul.scale_a.data;
    float swapped[64];
    memcpy(swapped, scales, sizeof swapped);
    swapped[10] = scales[11];
    swapped[11] = scales[10];
    void *memory = device.allocate(device.user, sizeof swapped);
    GOOD(device.copy_in(device.user, memory, swapped, sizeof swapped));
    trial.pointers.scale_a = memory;
    run(&trial);
    assert_true(judge(&trial, &verdict) > 512);
    assert_non_null(strstr(verdict.text, "out[0,10,"));
    device.release(device.user, memory);
    trial_close(&trial);
}

/* The expected values are of whole rows; the run sees rows whose first 32 elements are zeros. */
static void a_missing_step_is_found(void **state)
{
    (void)state;
    static const char *const long_ones[] = {"16x272x4096", "64x512x14336", "16x272x4096:precise"};
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        struct fp8r_tool_error error = {0};
        struct fp8r_verdict verdict;
        struct trial trial;
        const uint8_t zeros[STEP] = {0};
        trial_open(&trial, long_ones[i]);
        const fp8r_matrix *a = &trial.inputs.matmul.a;
        for (int64_t row = 0; row < a->rows; row++) {
            void *to = NULL;
            const uint8_t *at = (const uint8_t *)trial.pointers.a + row * a->row_stride;
            memcpy(&to, &at, sizeof to);
            GOOD(device.copy_in(device.user, to, zeros, sizeof zeros));
        }
        run(&trial);
        if (judge(&trial, &verdict) < 20) fail_msg("%s: %lld found", long_ones[i], (long long)verdict.wrong);
        trial_close(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_results_pass),       cmocka_unit_test(one_element_is_found),
        cmocka_unit_test(an_empty_kernel_is_found), cmocka_unit_test(swapped_scales_are_found),
        cmocka_unit_test(a_missing_step_is_found)};
    return cmocka_run_group_tests(tests, measure_set_up, measure_tear_down);
}
