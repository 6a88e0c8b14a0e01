/* Few rows of bf16 or fp16 that the product quantises itself: one kernel, and the bits of quantiser and product, for every
 * configuration that does it; two kernels where it cannot.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu_product.h"

#include "gpu_labels.h"
#include "gpu_sample.h"

static fp8r_context *context;
static struct gpu_labels labels;
static cudaStream_t stream;
static int fused, separate;

static void *allocate(size_t bytes)
{
    void *data;
    CUDA(cudaMalloc(&data, bytes + 256));
    return data;
}

static size_t out_bytes(const struct gpu_product *it)
{
    return it->host.blocks[SAMPLE_OUT].size_bytes;
}

/* The product of rows quantised by the library, by this configuration; its out block goes to `bits`. */
static bool run_quantised(struct gpu_product *it, const char *label, void *bits)
{
    fp8r_matmul matmul = it->matmul;
    const fp8r_matrix *a = &it->matmul.a;
    const int64_t pitch = (a->cols + 15) / 16 * 16, rows = a->rows * a->batch;
    void *const codes = allocate((size_t)(rows * pitch)), *const scales = allocate((size_t)rows * sizeof(float));
    fp8r_plan *plan = NULL;
    matmul.a.data = codes;
    matmul.a.dtype = FP8R_DTYPE_E4M3;
    matmul.a.row_stride = pitch;
    matmul.a.batch_stride = a->batch > 1 ? a->rows * pitch : 0;
    matmul.a.col_stride = 1;
    matmul.scale_a = (fp8r_matrix){.data = scales, .dtype = FP8R_DTYPE_FP32, .batch = a->batch, .rows = a->rows, .cols = 1,
                                   .batch_stride = a->rows, .row_stride = 1, .col_stride = 1};
    const fp8r_status status = fp8r_plan_create(context, &matmul, label, &plan);
    if (status == FP8R_OK) {
        void *const space = allocate(fp8r_plan_workspace(plan));
        const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = a->rows, .a = codes, .b = matmul.b.data,
                                        .out = matmul.out.data, .scale_a = scales, .scale_b = matmul.scale_b.data,
                                        .bias = matmul.bias.data};
        gpu_product_clear(it, stream);
        assert_int_equal(fp8r_quantize(context, a, &matmul.a, &matmul.scale_a, FP8R_SCALING_COMPUTE, stream), FP8R_OK);
        assert_int_equal(fp8r_plan_run(plan, &pointers, space, fp8r_plan_workspace(plan), stream), FP8R_OK);
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaMemcpy(bits, it->blocks[SAMPLE_OUT], out_bytes(it), cudaMemcpyDeviceToHost));
        CUDA(cudaFree(space));
    } else {
        assert_int_equal(status, FP8R_ERROR_UNSUPPORTED);
    }
    fp8r_plan_destroy(plan);
    CUDA(cudaFree(codes));
    CUDA(cudaFree(scales));
    return status == FP8R_OK;
}

/* Runs the product as it is, captured; how many kernels that took. Its out block goes to `bits`. */
static size_t run_as_it_is(struct gpu_product *it, const char *label, void *bits)
{
    const fp8r_matmul *matmul = &it->matmul;
    fp8r_plan *plan = NULL;
    cudaGraph_t graph;
    cudaGraphExec_t made;
    size_t kernels = 0;
    if (fp8r_plan_create(context, matmul, label, &plan) != FP8R_OK) fail_msg("%s: %s", label, fp8r_last_error());
    void *const space = allocate(fp8r_plan_workspace(plan));
    const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = matmul->a.rows, .a = matmul->a.data,
                                    .b = matmul->b.data, .out = matmul->out.data, .scale_b = matmul->scale_b.data,
                                    .bias = matmul->bias.data};
    gpu_product_clear(it, stream);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    assert_int_equal(fp8r_plan_run(plan, &pointers, space, fp8r_plan_workspace(plan), stream), FP8R_OK);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphGetNodes(graph, NULL, &kernels));
    CUDA(cudaGraphInstantiate(&made, graph, 0));
    for (int i = 0; i < 3; i++) /* the next one begins while this one runs out */
        CUDA(cudaGraphLaunch(made, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(bits, it->blocks[SAMPLE_OUT], out_bytes(it), cudaMemcpyDeviceToHost));
    CUDA(cudaGraphExecDestroy(made));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(space));
    fp8r_plan_destroy(plan);
    return kernels;
}

/* expected: kernels, 0: any. */
static void check_label(struct gpu_product *it, const char *text, const char *label, size_t expected)
{
    unsigned char *const wanted = malloc(out_bytes(it)), *const got = malloc(out_bytes(it));
    assert_non_null(wanted);
    assert_non_null(got);
    if (run_quantised(it, label, wanted)) {
        const size_t kernels = run_as_it_is(it, label, got);
        if (memcmp(wanted, got, out_bytes(it)) != 0) fail_msg("%s on %s: other bits than quantiser and product", text, label);
        if (expected && kernels != expected) fail_msg("%s on %s: %zu kernels", text, label, kernels);
        fused += kernels == 1;
        separate += kernels == 2;
    }
    free(wanted);
    free(got);
}

static void check(const char *text, size_t align_bytes, size_t expected)
{
    struct gpu_product it;
    if (!sample_init(&it.host, text, SAMPLE_RANDOM, 11)) fail_msg("%s: no sample", text);
    if (align_bytes) sample_unalign(&it.host, SAMPLE_A, align_bytes);
    gpu_product_place(&it);
    for (int i = 0; i < labels.count; i++)
        if (strncmp(labels.names[i], "sm90:skinny", 11) == 0) check_label(&it, text, labels.names[i], expected);
    gpu_product_fini(&it);
}

static void same_bits_in_one_kernel(void **state)
{
    static const char *const texts[] = {
        "1x64x128:a=bf16",          "1x4096x4096:a=bf16:static",  "2x516x640:a=fp16:bias",       "3x520x1152:a=bf16:fp32",
        "4x3584x5376:a=bf16:static", "1x130x72:a=bf16:fp16",      "4x200x2056:a=fp16:bias=fp32", "1x1000x8200:a=bf16",
        "3x40x8:a=bf16",            "5*3x72x400:a=bf16",          "2x264x1024:a=bf16:lda=1032",  "4x8192x7168:a=bf16:static",
        "1x5376x14336:a=fp16:static"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i], 0, 0);
    assert_true(fused > 50);
}

/* As many rows as there may be: some configurations have too few warps for them, or no room. */
static void same_bits_for_more_rows(void **state)
{
    static const char *const texts[] = {"5x4096x4096:a=bf16:static", "8x4096x4096:a=bf16:static", "7x300x2048:a=fp16:bias",
                                        "6x1792x5376:a=bf16:fp32", "8x14336x5376:a=bf16:static"};
    (void)state;
    fused = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i], 0, 0);
}

/* Rows of zeros, with a NaN, with an infinity, of subnormals. */
static void same_bits_of_special_values(void **state)
{
    static const char *const texts[] = {"4x200x1000:a=bf16", "4x200x1000:a=fp16:fp32"};
    static const uint16_t nan[] = {0x7FC1, 0x7E01}, infinity[] = {0x7F80, 0xFC00};
    (void)state;
    for (int type = 0; type < 2; type++) {
        struct gpu_product it;
        if (!sample_init(&it.host, texts[type], SAMPLE_RANDOM, 5)) fail_msg("%s: no sample", texts[type]);
        uint16_t *const a = it.host.matmul.a.data;
        for (int at = 0; at < 1000; at++) {
            a[at] = (uint16_t)(at % 2 ? 0x8000 : 0);
            a[3000 + at] = (uint16_t)(at % 7 | (at % 3 ? 0x8000 : 0));
        }
        a[1000 + 333] = nan[type];
        a[2000 + 999] = infinity[type];
        gpu_product_place(&it);
        for (int i = 0; i < labels.count; i++)
            if (strncmp(labels.names[i], "sm90:skinny", 11) == 0) check_label(&it, texts[type], labels.names[i], 0);
        gpu_product_fini(&it);
    }
}

static void quantised_in_front_where_it_must_be(void **state)
{
    (void)state;
    check("1x64x100:a=bf16", 0, 2);           /* K is no multiple of a vector */
    check("2x64x128:a=bf16:lda=132", 0, 2);   /* nor are the rows' beginnings */
    check("2x64x128:a=bf16", 8, 2);           /* nor is the first */
    check("9x64x128:a=bf16", 0, 2);
    check("2x64x128:a=bf16:ta", 0, 2);
    check("1x64x128:a=bf16:precise", 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_in_one_kernel), cmocka_unit_test(same_bits_for_more_rows),
                                       cmocka_unit_test(same_bits_of_special_values),
                                       cmocka_unit_test(quantised_in_front_where_it_must_be)};
    (void)gpu_facts();
    context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    gpu_labels_init(&labels, context);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const int failed = cmocka_run_group_tests_name("rows quantised by their product", tests, NULL, NULL);
    printf("%d products of one kernel, %d of two\n", fused, separate);
    CUDA(cudaStreamDestroy(stream));
    fp8r_context_destroy(context);
    return failed;
}
