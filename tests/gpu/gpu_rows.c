/* Running rows. SPDX-License-Identifier: Apache-2.0 */
#include "gpu_rows.h"

void gpu_rows_init(struct gpu_rows *rows, fp8r_context *context)
{
    *rows = (struct gpu_rows){.context = context};
    gpu_labels_init(&rows->labels, context);
    CUDA(cudaStreamCreateWithFlags(&rows->stream, cudaStreamNonBlocking));
}

void gpu_rows_fini(struct gpu_rows *rows)
{
    CUDA(cudaStreamSynchronize(rows->stream));
    CUDA(cudaFree(rows->space));
    CUDA(cudaStreamDestroy(rows->stream));
    fp8r_context_destroy(rows->context);
    printf("%ld products, %ld refusals\n", rows->runs, rows->refusals);
}

static void make_space(struct gpu_rows *rows, size_t bytes)
{
    if (bytes <= rows->space_bytes) return;
    CUDA(cudaStreamSynchronize(rows->stream));
    CUDA(cudaFree(rows->space));
    CUDA(cudaMalloc(&rows->space, bytes));
    rows->space_bytes = bytes;
}

static void judge(struct gpu_rows *rows, struct gpu_product *it, int64_t m, const char *name, const char *label)
{
    const struct sample_block *out = &it->host.blocks[SAMPLE_OUT];
    char line[160];
    CUDA(cudaStreamSynchronize(rows->stream));
    CUDA(cudaMemcpy(out->memory, it->blocks[SAMPLE_OUT], out->size_bytes, cudaMemcpyDeviceToHost));
    if (!sample_judge(&it->host, m, line, sizeof line)) fail_msg("%s on %s, m=%lld: %s", name, label, (long long)m, line);
    rows->runs++;
}

static void run_plan(struct gpu_rows *rows, const fp8r_plan *plan, struct gpu_product *it, const char *name,
                     const char *label)
{
    const fp8r_matmul *matmul = &it->matmul;
    const int64_t m = matmul->a.rows, counts[] = {m, (m + 1) / 2};
    make_space(rows, fp8r_plan_workspace(plan));
    for (int i = 0; i < (m > 1 ? 2 : 1); i++) {
        const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = counts[i], .a = matmul->a.data,
                                        .b = matmul->b.data, .out = matmul->out.data, .scale_a = matmul->scale_a.data,
                                        .scale_b = matmul->scale_b.data, .bias = matmul->bias.data};
        gpu_product_clear(it, rows->stream);
        fp8r_status status = fp8r_plan_run(plan, &pointers, rows->space, rows->space_bytes, rows->stream);
        if (status == FP8R_ERROR_UNSUPPORTED && i > 0) continue; /* a named configuration may refuse fewer rows */
        if (status != FP8R_OK) fail_msg("%s on %s: %s", name, label, fp8r_last_error());
        judge(rows, it, counts[i], name, label);
    }
}

static void run_label(struct gpu_rows *rows, struct gpu_product *it, const char *name, const char *label)
{
    fp8r_plan *plan = NULL;
    fp8r_status status = fp8r_plan_create(rows->context, &it->matmul, label, &plan);
    if (status == FP8R_ERROR_UNSUPPORTED) {
        rows->refusals++;
        return;
    }
    if (status != FP8R_OK) fail_msg("%s on %s: %s", name, label, fp8r_last_error());
    run_plan(rows, plan, it, name, label);
    fp8r_plan_destroy(plan);
}

void gpu_rows_widen(struct sample *sample)
{
    const double k = (double)sample->matmul.a.cols, own = (k + 2) * 0x1p-24;
    const double cut = sample->matmul.accumulation == FP8R_ACCUMULATE_PRECISE ? 1.0 / 512 : (1.0 + k / 2048) / 512;
    for (int64_t i = 0; i < sample->line_count * sample->matmul.b.cols; i++)
        sample->bounds[i] *= cut / own;
}

/* The portable rows add in fp32: they are held to it before the bounds are widened for the others. */
void gpu_rows_run(struct gpu_rows *rows, struct sample *sample, const char *name)
{
    struct gpu_product it = {.host = *sample};
    gpu_product_place(&it);
    for (int wide = 0; wide < 2; wide++) {
        for (int i = 0; i < rows->labels.count; i++)
            if ((strncmp(rows->labels.names[i], "cuda:", 5) != 0) == (wide == 1))
                run_label(rows, &it, name, rows->labels.names[i]);
        if (wide == 0) gpu_rows_widen(&it.host);
    }
    gpu_product_clear(&it, rows->stream);
    if (fp8r_scaled_mm(rows->context, &it.matmul, rows->stream) != FP8R_OK) fail_msg("%s: %s", name, fp8r_last_error());
    judge(rows, &it, it.matmul.a.rows, name, "the routes");
    gpu_product_fini(&it);
}

void gpu_rows_check_data(struct gpu_rows *rows, const char *text, enum sample_data data)
{
    struct sample sample;
    if (!sample_init(&sample, text, data, 17)) fail_msg("%s: no sample", text);
    gpu_rows_run(rows, &sample, text);
}

void gpu_rows_check(struct gpu_rows *rows, const char *text)
{
    gpu_rows_check_data(rows, text, SAMPLE_EXACT);
    gpu_rows_check_data(rows, text, SAMPLE_RANDOM);
}
