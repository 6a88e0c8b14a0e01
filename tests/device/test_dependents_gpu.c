/* Kernels that start before the one in front of them has ended must not touch what it writes. A producer lets its
 * dependents go at once, sleeps, and then writes one operand, each in turn; the product must see it, and out must be the
 * product's. Launched directly and from a graph. Skipped by name where there is no GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu_product.h"
#include "device/late_copy.h"
#include "support/gpu_memory.h"

enum { LATE_US = 200 };

static const char *const names[] = {"a", "b", "out", "scale_a", "scale_b", "bias"};

struct setting {
    fp8r_context *context;
    cudaStream_t stream;
    struct gpu_product product;
    fp8r_plan *plan;
    void *space;
    size_t space_bytes;
    char *good; /* what the producer writes */
};

static void queue(struct setting *it, int operand)
{
    const struct sample_block *block = &it->product.host.blocks[operand];
    const fp8r_matmul *matmul = &it->product.matmul;
    const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = matmul->a.rows, .a = matmul->a.data,
                                    .b = matmul->b.data, .out = matmul->out.data, .scale_a = matmul->scale_a.data,
                                    .scale_b = matmul->scale_b.data, .bias = matmul->bias.data};
    CUDA(late_copy(it->product.blocks[operand], it->good, block->size_bytes, LATE_US, it->stream));
    if (fp8r_plan_run(it->plan, &pointers, it->space, it->space_bytes, it->stream) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
}

/* The operand holds zeros, or NaN, until the producer writes it. */
static void spoil(struct setting *it, int operand, int byte)
{
    const struct sample_block *block = &it->product.host.blocks[operand];
    gpu_product_clear(&it->product, it->stream);
    CUDA(gpu_memory_put(it->good, block->memory, block->size_bytes));
    CUDA(gpu_memory_set(it->product.blocks[operand], byte, block->size_bytes));
    CUDA(cudaDeviceSynchronize());
}

static void judge(struct setting *it, const char *text, const char *label, int operand, const char *how)
{
    char line[160];
    if (!gpu_product_is_right(&it->product, it->stream, line))
        fail_msg("%s on %s, %s written late, %s: %s", text, label, names[operand], how, line);
}

static void check_operand(struct setting *it, const char *text, const char *label, int operand)
{
    cudaGraph_t graph;
    cudaGraphExec_t made;
    const struct sample_block *block = &it->product.host.blocks[operand];
    CUDA(cudaMalloc((void **)&it->good, block->size_bytes));
    for (int byte = 0; byte <= 0xFF; byte += 0xFF) {
        spoil(it, operand, byte);
        queue(it, operand);
        judge(it, text, label, operand, "launched directly");
    }
    CUDA(cudaStreamBeginCapture(it->stream, cudaStreamCaptureModeThreadLocal));
    queue(it, operand);
    CUDA(cudaStreamEndCapture(it->stream, &graph));
    CUDA(cudaGraphInstantiate(&made, graph, 0));
    for (int replay = 0; replay < 2; replay++) {
        spoil(it, operand, 0);
        CUDA(cudaGraphLaunch(made, it->stream));
        judge(it, text, label, operand, "from a graph");
    }
    CUDA(cudaGraphExecDestroy(made));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(it->good));
}

/* Every operand, on one configuration; whether it takes the product. */
static bool check_label(struct setting *it, const char *text, const char *label)
{
    gpu_product_init(&it->product, text, 3);
    bool is_taken = fp8r_plan_create(it->context, &it->product.matmul, label, &it->plan) == FP8R_OK;
    if (is_taken) {
        it->space_bytes = fp8r_plan_workspace(it->plan);
        CUDA(cudaMalloc(&it->space, it->space_bytes + 1));
        const bool is_static = it->product.matmul.flags & FP8R_WEIGHTS_STATIC;
        for (int operand = 0; operand < SAMPLE_OPERANDS; operand++)
            if (it->product.blocks[operand] && !(is_static && operand == SAMPLE_B))
                check_operand(it, text, label, operand);
        CUDA(cudaFree(it->space));
        fp8r_plan_destroy(it->plan);
    }
    gpu_product_fini(&it->product);
    return is_taken;
}

/* All configurations of all rows but the vendor's, which are not ours to mend; that one as it picks itself. */
static void check_rows(const char *text)
{
    struct setting it = {.context = gpu_context(0, FP8R_NO_ENVIRONMENT)};
    int taken = 0;
    CUDA(cudaStreamCreateWithFlags(&it.stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < fp8r_context_backend_count(it.context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        char label[160];
        assert_int_equal(fp8r_context_backend(it.context, i, &info), FP8R_OK);
        if (info.fits && *info.library) taken += check_label(&it, text, info.name);
        for (size_t j = 0; info.fits && !*info.library && info.configs[j]; j++) {
            snprintf(label, sizeof label, "%s:%s", info.name, info.configs[j]);
            taken += check_label(&it, text, label);
        }
    }
    print_message("%s: %d configurations\n", text, taken);
    assert_true(taken > 0);
    CUDA(cudaStreamDestroy(it.stream));
    fp8r_context_destroy(it.context);
}

static void few_rows(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    check_rows("5x256x1024:bias");
    check_rows("5x256x1024:bias:static");
}

static void many_rows(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    check_rows("200x256x1024:bias");
    check_rows("200x256x1024:bias:static");
}

/* In front of some configurations a is copied. */
static void packed_rows(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    check_rows("5x256x1020:bias");
    check_rows("5x256x1020:bias:static");
    check_rows("200x256x1020:static");
    check_rows("200x256x1021:static");
    check_rows("5x256x1024:ldb=1030:static");
    check_rows("5x256x1020:a=bf16:static");
}

static void quantised_rows(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    check_rows("5x256x1024:bias:a=bf16");
    check_rows("2x256x1024:bias:a=bf16:static"); /* by the product itself, where that can */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_rows), cmocka_unit_test(many_rows),
                                       cmocka_unit_test(packed_rows), cmocka_unit_test(quantised_rows)};
    return cmocka_run_group_tests_name("dependents on a GPU", tests, NULL, NULL);
}
