/* Masks are tried from the full processor down to the portable code; one that changes nothing here is left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/context.h"
#include "device/device.h"
#include "problem/problem.h"
#include "support/rows.h"

fp8r_context *plain_context(int threads)
{
    fp8r_context *context = NULL;
    const fp8r_context_options options = {.struct_size = sizeof options,
                                          .threads = threads,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
    return context;
}

void rows_init(struct rows *rows, int threads)
{
    static const uint32_t masks[] = {
        0,
        FP8R_CPU_AMX_BF16,
        FP8R_CPU_AMX_BF16 | FP8R_CPU_AVX512_BF16,
        FP8R_CPU_AMX_BF16 | FP8R_CPU_AVX512_VBMI,
        FP8R_CPU_AMX_BF16 | FP8R_CPU_AVX512_VBMI | FP8R_CPU_AVX512_BF16,
        FP8R_CPU_AMX_BF16 | FP8R_CPU_AVX512_VBMI | FP8R_CPU_AVX512_BF16 | FP8R_CPU_AVX512,
        UINT32_MAX,
    };
    const fp8r_context_options options = {.struct_size = sizeof options, .threads = threads, .flags = FP8R_NO_ROUTE_FILES};
    memset(rows, 0, sizeof *rows);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        char hex[16];
        fp8r_context *context;
        snprintf(hex, sizeof hex, "%x", (unsigned)masks[i]);
        assert_int_equal(setenv("FP8ROUTE_CPU_MASK", hex, 1), 0);
        assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), FP8R_OK);
        char *features = rows->features[rows->count];
        fp8r_cpu_features_format(context->device.cpu_features, features, sizeof rows->features[0]);
        bool known = false;
        for (int j = 0; j < rows->count; j++)
            known |= strcmp(rows->features[j], features) == 0;
        if (known)
            fp8r_context_destroy(context);
        else
            rows->contexts[rows->count++] = context;
    }
    assert_int_equal(unsetenv("FP8ROUTE_CPU_MASK"), 0);
}

void rows_fini(struct rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        fp8r_context_destroy(rows->contexts[i]);
    rows->count = 0;
}

struct rows shared_rows;

int shared_rows_setup(void **state)
{
    (void)state;
    rows_init(&shared_rows, 2);
    return 0;
}

int shared_rows_teardown(void **state)
{
    (void)state;
    rows_fini(&shared_rows);
    return 0;
}

/* One plan, run at M and below. */
static void run_plan(struct rows *rows, fp8r_plan *plan, struct sample *sample, const char *name, const char *label)
{
    int64_t m = sample->matmul.a.rows;
    const int64_t counts[] = {m, m / 2, m > 2 ? 1 : 0};
    char line[160];
    size_t bytes = fp8r_plan_workspace(plan);
    void *workspace = NULL;
    assert_int_equal(posix_memalign(&workspace, 256, bytes + 256), 0);
    memset(workspace, 0x7F, bytes + 256); /* codes of NaN: what is read before it is written shows */
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fp8r_pointers pointers = sample_pointers(sample, counts[i]);
        sample_clear(sample);
        fp8r_status status = fp8r_plan_run(plan, &pointers, workspace, bytes, NULL);
        rows->runs++;
        if (status != FP8R_OK)
            fail_msg("%s on %s, m=%lld: %s", name, label, (long long)counts[i], fp8r_last_error());
        if (!sample_judge(sample, counts[i], line, sizeof line))
            fail_msg("%s on %s, m=%lld: %s", name, label, (long long)counts[i], line);
    }
    for (size_t i = bytes; i < bytes + 256; i++)
        assert_int_equal(((unsigned char *)workspace)[i], 0x7F);
    free(workspace);
}

static void run_config(struct rows *rows, int which, int row, int config, struct sample *sample, const char *name)
{
    fp8r_context *context = rows->contexts[which];
    const fp8r_backend *backend = &context->registry.rows[row].backend;
    struct fp8r_product product;
    fp8r_reason reason = {0};
    fp8r_plan *plan = NULL;
    char label[160], spec[130];
    snprintf(spec, sizeof spec, "%s%s%s", backend->name, config < 0 ? "" : ":", config < 0 ? "" : backend->configs[config]);
    snprintf(label, sizeof label, "%.60s (%.90s)", spec, rows->features[which]);
    assert_int_equal(fp8r_product_init(&sample->matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
    bool eligible = product.problem.k == 0 || fp8r_problem_is_empty(&product.problem) ||
                    fp8r_row_eligible(&context->registry, &context->device, &product.problem, row, config, &reason);
    fp8r_status status = fp8r_plan_create(context, &sample->matmul, spec, &plan);
    if (!eligible) {
        if (status != FP8R_ERROR_UNSUPPORTED || reason.code == FP8R_REASON_NONE || plan)
            fail_msg("%s on %s: refused with code %d, but the plan gave %s", name, label, (int)reason.code,
                     fp8r_status_name(status));
        return;
    }
    /* A named configuration is the same code under every mask: run once. */
    if (which > 0 && config >= 0 && product.problem.k > 0 &&
        fp8r_row_eligible(&rows->contexts[0]->registry, &rows->contexts[0]->device, &product.problem, row, config, &reason)) {
        fp8r_plan_destroy(plan);
        return;
    }
    /* A smaller m may be refused by a configuration that takes M: then the whole plan is. */
    if (status == FP8R_ERROR_UNSUPPORTED && sample->matmul.a.rows > 1)
        return;
    if (status != FP8R_OK)
        fail_msg("%s on %s: supported, but the plan failed: %s", name, label, fp8r_last_error());
    run_plan(rows, plan, sample, name, label);
    fp8r_plan_destroy(plan);
}

static bool is_too_slow(const fp8r_backend *backend, const fp8r_matmul *matmul, int which)
{
    double macs = (double)matmul->out.batch * (double)matmul->a.rows * (double)matmul->b.cols * (double)matmul->a.cols;
    return strcmp(backend->name, "reference") == 0 && (which > 0 || macs > 1e8);
}

static void run_routed(struct rows *rows, int which, struct sample *sample, const char *name)
{
    char line[160];
    sample_clear(sample);
    fp8r_status status = fp8r_scaled_mm(rows->contexts[which], &sample->matmul, NULL);
    if (status != FP8R_OK)
        fail_msg("%s, routed (%s): %s", name, rows->features[which], fp8r_last_error());
    if (!sample_judge(sample, sample->matmul.a.rows, line, sizeof line))
        fail_msg("%s, routed (%s): %s", name, rows->features[which], line);
}

void rows_run(struct rows *rows, struct sample *sample, const char *name)
{
    for (int which = 0; which < rows->count; which++) {
        const struct fp8r_registry *registry = &rows->contexts[which]->registry;
        for (int row = 0; row < registry->count; row++) {
            const fp8r_backend *backend = &registry->rows[row].backend;
            if (!registry->rows[row].fits || is_too_slow(backend, &sample->matmul, which))
                continue;
            run_config(rows, which, row, FP8R_CONFIG_ANY, sample, name);
            for (int config = 0; backend->configs[config]; config++)
                run_config(rows, which, row, config, sample, name);
        }
        run_routed(rows, which, sample, name);
    }
}

static void check(struct rows *rows, const char *text, enum sample_data data)
{
    struct sample sample;
    if (!sample_init(&sample, text, data, 42))
        fail_msg("%s: no product, or no memory: %s", text, fp8r_last_error());
    rows_run(rows, &sample, text);
    sample_fini(&sample);
}

void rows_check(struct rows *rows, const char *text)
{
    check(rows, text, SAMPLE_EXACT);
    check(rows, text, SAMPLE_RANDOM);
}

void rows_check_exact(struct rows *rows, const char *text)
{
    check(rows, text, SAMPLE_EXACT);
}
