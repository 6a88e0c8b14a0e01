/* Every configuration of every row on operands that end, and then begin, where memory ends: nothing outside of them is read or
 * written. The workspace lies between such pages, too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu_product.h"

#include "gpu_labels.h"
#include "gpu_pages.h"
#include "gpu_sample.h"
#include "support/gpu_memory.h"

static fp8r_context *context;
static struct gpu_labels labels;
static long runs;

struct placed {
    struct sample host;
    fp8r_matmul matmul; /* on the device */
    struct gpu_pages operands[SAMPLE_OPERANDS];
};

static bool place(struct placed *it, const char *text, bool at_end)
{
    *it = (struct placed){0};
    if (!sample_init(&it->host, text, SAMPLE_EXACT, 13)) fail_msg("%s: no sample", text);
    it->matmul = it->host.matmul;
    for (int i = 0; i < SAMPLE_OPERANDS; i++) {
        const struct sample_block *block = &it->host.blocks[i];
        if (!gpu_matrix(&it->matmul, i)->data) continue;
        if (!gpu_pages_init(&it->operands[i], block->used_bytes, at_end)) return false;
        gpu_matrix(&it->matmul, i)->data = it->operands[i].data;
        CUDA(gpu_memory_put(it->operands[i].data, block->memory + block->offset_bytes, block->used_bytes));
    }
    return true;
}

static void run(struct placed *it, const char *text, const char *label, bool at_end)
{
    const struct sample_block *out = &it->host.blocks[SAMPLE_OUT];
    const fp8r_matmul *matmul = &it->matmul;
    struct gpu_pages space = {0};
    fp8r_plan *plan = NULL;
    char line[160];
    const fp8r_status status = fp8r_plan_create(context, matmul, label, &plan);
    if (status == FP8R_ERROR_UNSUPPORTED) return;
    if (status != FP8R_OK) fail_msg("%s on %s: %s", text, label, fp8r_last_error());
    const size_t bytes = (fp8r_plan_workspace(plan) + 255) / 256 * 256;
    assert_true(gpu_pages_init(&space, bytes, at_end));
    const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = matmul->a.rows, .a = matmul->a.data,
                                    .b = matmul->b.data, .out = matmul->out.data, .scale_a = matmul->scale_a.data,
                                    .scale_b = matmul->scale_b.data, .bias = matmul->bias.data};
    sample_clear(&it->host);
    CUDA(gpu_memory_set(matmul->out.data, 0xFF, out->used_bytes));
    if (fp8r_plan_run(plan, &pointers, bytes > 0 ? space.data : NULL, bytes, NULL) != FP8R_OK)
        fail_msg("%s on %s: %s", text, label, fp8r_last_error());
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
        print_message("%s on %s, operands at the %s of their pages: %s\n", text, label, at_end ? "end" : "beginning",
                      cudaGetErrorString(error));
        exit(EXIT_FAILURE); /* nothing runs on this device any more */
    }
    CUDA(cudaMemcpy(out->memory + out->offset_bytes, matmul->out.data, out->used_bytes, cudaMemcpyDeviceToHost));
    if (!sample_judge(&it->host, matmul->a.rows, line, sizeof line)) fail_msg("%s on %s: %s", text, label, line);
    gpu_pages_fini(&space);
    fp8r_plan_destroy(plan);
    runs++;
}

static void check(const char *text)
{
    for (int at_end = 0; at_end < 2; at_end++) {
        struct placed it;
        if (!place(&it, text, at_end)) {
            print_message("skipped: the driver has no virtual memory functions\n");
            skip();
        }
        for (int i = 0; i < labels.count; i++)
            run(&it, text, labels.names[i], at_end);
        for (int i = 0; i < SAMPLE_OPERANDS; i++)
            gpu_pages_fini(&it.operands[i]);
        sample_fini(&it.host);
    }
}

static void nothing_outside_is_touched(void **state)
{
    static const char *const texts[] = {"1x64x128",       "5x80x400:bias",         "17x132x3088:fp32",  "64x256x512",
                                        "130x264x656:bias=fp32", "257x520x272:fp16", "3*33x72x144:sa=batch:sb=batch",
                                        "9x17x35",        "40x33x100:ta:tb",       "12x64x200:align=4", "30x40x112:tensor:precise",
                                        "6x48x256:a=bf16", "1x64x1000:a=fp16", "128x96x160:ldo=104:lda=176:ldb=192"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_outside_is_touched)};
    (void)gpu_facts();
    context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    gpu_labels_init(&labels, context);
    const int failed = cmocka_run_group_tests_name("operands between unmapped pages", tests, NULL, NULL);
    fp8r_context_destroy(context);
    printf("%ld products\n", runs);
    return failed;
}
