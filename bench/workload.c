/* Making and running a workload.
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "measure/clock.h"
#include "measure/fill.h"
#include "measure/inputs.h"
#include "measure/measure_device.h"

enum { ALIGN_BYTES = 4096, CACHES = 4 };

static void *allocate(int64_t bytes)
{
    return aligned_alloc(ALIGN_BYTES, (size_t)fp8r_size_round_up(fp8r_size_max(bytes, 1), ALIGN_BYTES));
}

static bool allocate_operands(struct bench_workload *workload)
{
    fp8r_matrix *small[] = {&workload->matmul.a, &workload->matmul.out, &workload->matmul.scale_a,
                            &workload->matmul.scale_b, &workload->matmul.bias};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        int64_t bytes;
        if (!small[i]->dtype) continue;
        if (!fp8r_matrix_span_bytes(small[i], &bytes) || !(small[i]->data = allocate(bytes))) return false;
        memset(small[i]->data, 0, (size_t)bytes); /* out's pages must be there too */
    }
    workload->weights = allocate(workload->copies * workload->copy_bytes);
    return workload->weights != NULL;
}

/* The first copy is random, the others are equal to it: caches go by address. */
static bool fill(struct bench_workload *workload)
{
    workload->matmul.b.data = workload->weights;
    if (!fp8r_fill_matmul(&workload->matmul, 1)) return false;
    for (int64_t i = 1; i < workload->copies; i++)
        memcpy(workload->weights + i * workload->copy_bytes, workload->weights, (size_t)workload->copy_bytes);
    return true;
}

static bool plan(const struct bench_settings *settings, struct bench_workload *workload)
{
    fp8r_context_options options = {.struct_size = sizeof options,
                                    .threads = settings->threads,
                                    .flags = settings->backend ? FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES : 0};
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &workload->context) != FP8R_OK ||
        fp8r_plan_create(workload->context, &workload->matmul, settings->backend, &workload->plan) != FP8R_OK)
        return false;
    workload->workspace = allocate((int64_t)fp8r_plan_workspace(workload->plan));
    return workload->workspace != NULL;
}

bool bench_workload_make(const struct bench_settings *settings, const char *problem, int64_t copies,
                         struct bench_workload *workload, struct bench_bar *bar)
{
    memset(workload, 0, sizeof *workload);
    if (fp8r_matmul_parse(problem, &workload->matmul) != FP8R_OK) {
        snprintf(bar->note, sizeof bar->note, "%s", fp8r_last_error());
        return false;
    }
    workload->copy_bytes = workload->matmul.b.rows * workload->matmul.b.cols;
    workload->copies =
        copies ? copies : fp8r_size_blocks(CACHES * settings->facts.last_level_bytes, workload->copy_bytes);
    int64_t needed = workload->copies * workload->copy_bytes, free_bytes = fp8r_host_available_bytes();
    if (needed > free_bytes / 4 * 3) {
        snprintf(bar->note, sizeof bar->note,
                 "needs %lld MB of memory for %d times the last-level cache; %lld MB are free",
                 (long long)(needed >> 20), CACHES, (long long)(free_bytes >> 20));
        return false;
    }
    if (!allocate_operands(workload) || !fill(workload) || !plan(settings, workload)) {
        snprintf(bar->note, sizeof bar->note, "could not set up: %s", fp8r_last_error());
        bench_workload_drop(workload);
        return false;
    }
    snprintf(bar->config, sizeof bar->config, "%s",
             fp8r_plan_backend(workload->plan, workload->matmul.a.rows));
    return true;
}

void bench_workload_drop(struct bench_workload *workload)
{
    void *data[] = {workload->matmul.a.data,
                    workload->matmul.out.data,
                    workload->matmul.scale_a.data,
                    workload->matmul.scale_b.data,
                    workload->matmul.bias.data,
                    workload->weights,
                    workload->workspace};
    fp8r_plan_destroy(workload->plan);
    fp8r_context_destroy(workload->context);
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        free(data[i]);
}

int64_t bench_workload_pass(void *argument)
{
    struct bench_workload *workload = argument;
    const fp8r_matmul *mm = &workload->matmul;
    fp8r_pointers pointers = {.struct_size = sizeof pointers,
                              .m = mm->a.rows,
                              .a = mm->a.data,
                              .out = mm->out.data,
                              .scale_a = mm->scale_a.data,
                              .scale_b = mm->scale_b.data,
                              .bias = mm->bias.data};
    size_t workspace_bytes = fp8r_plan_workspace(workload->plan);
    int64_t start = fp8r_clock_ns();
    for (int64_t i = 0; i < workload->copies; i++) {
        pointers.b = workload->weights + i * workload->copy_bytes;
        if (fp8r_plan_run(workload->plan, &pointers, workload->workspace, workspace_bytes, NULL) != FP8R_OK)
            return -1;
    }
    return fp8r_clock_ns() - start;
}
