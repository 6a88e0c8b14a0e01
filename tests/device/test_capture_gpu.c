/* Capturing: a family that nobody planned, replay of two graphs on two streams at once, refusal of what would need memory,
 * workspaces of one's own, changed data between replays. Skipped by name where there is no GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu_product.h"
#include "support/gpu_memory.h"

static fp8r_context *context;

static int setup(void **state)
{
    (void)state;
    context = gpu_count() > 0 ? gpu_context(0, FP8R_NO_ENVIRONMENT) : NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fp8r_context_destroy(context);
    context = NULL;
    return 0;
}

static cudaGraphExec_t instantiate(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&made, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return made;
}

/* The strictest mode: what may not be called while anybody captures fails the capture. */
static cudaGraphExec_t capture(struct gpu_product *product, cudaStream_t stream, int calls)
{
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < calls; i++)
        if (fp8r_scaled_mm(context, &product->matmul, stream) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    return instantiate(stream);
}

static void unplanned_families_are_captured(void **state)
{
    static const char *const texts[] = {"1x4096x512", "48x512x1024:bias", "300x384x512", "9x17x36",
                                        "48x512x1020:bias"};
    cudaStream_t stream;
    (void)state;
    if (!context) skip();
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct gpu_product product;
        gpu_product_init(&product, texts[i], 4);
        cudaGraphExec_t graph = capture(&product, stream, 3);
        gpu_product_clear(&product, stream);
        CUDA(cudaGraphLaunch(graph, stream));
        GPU_JUDGE(&product, stream);
        CUDA(cudaGraphExecDestroy(graph));
        gpu_product_fini(&product);
    }
    CUDA(cudaStreamDestroy(stream));
}

static void two_graphs_replay_at_once(void **state)
{
    static const char *const texts[] = {"16x1024x4096", "16x1024x4096:bias"};
    struct gpu_product products[2];
    cudaStream_t streams[2];
    cudaGraphExec_t graphs[2];
    (void)state;
    if (!context) skip();
    for (int i = 0; i < 2; i++) {
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        gpu_product_init(&products[i], texts[i], (uint64_t)i + 8);
        graphs[i] = capture(&products[i], streams[i], 20);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2; i++)
            gpu_product_clear(&products[i], streams[i]);
        for (int i = 0; i < 2; i++)
            CUDA(cudaGraphLaunch(graphs[i], streams[i]));
        for (int i = 0; i < 2; i++)
            GPU_JUDGE(&products[i], streams[i]);
    }
    for (int i = 0; i < 2; i++) {
        CUDA(cudaGraphExecDestroy(graphs[i]));
        gpu_product_fini(&products[i]);
        CUDA(cudaStreamDestroy(streams[i]));
    }
}

/* A graph holds where operands lie, not what was there. */
static void replays_see_new_data(void **state)
{
    struct gpu_product product, other;
    cudaStream_t stream;
    (void)state;
    if (!context) skip();
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    gpu_product_init(&product, "24x256x512:bias", 1);
    gpu_product_init(&other, "24x256x512:bias", 2);
    cudaGraphExec_t graph = capture(&product, stream, 1);
    for (int i = 0; i < SAMPLE_OPERANDS; i++) {
        const struct sample_block *from = &other.host.blocks[i];
        if (product.blocks[i] && i != SAMPLE_OUT)
            CUDA(gpu_memory_put(product.blocks[i], from->memory, from->size_bytes));
    }
    gpu_product_clear(&other, stream);
    CUDA(cudaGraphLaunch(graph, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(gpu_memory_settle(cudaMemcpy(other.blocks[SAMPLE_OUT], product.blocks[SAMPLE_OUT],
                                      other.host.blocks[SAMPLE_OUT].size_bytes, cudaMemcpyDeviceToDevice)));
    GPU_JUDGE(&other, stream);
    CUDA(cudaGraphExecDestroy(graph));
    gpu_product_fini(&product);
    gpu_product_fini(&other);
    CUDA(cudaStreamDestroy(stream));
}

/* Rows that are quantised on the way need workspace: refused while capturing, by a line that says what to do, and the
 * capture goes on; with workspace of one's own they are captured. */
static void workspace_is_the_callers_while_capturing(void **state)
{
    struct gpu_product product;
    cudaStream_t stream;
    fp8r_plan *plan = NULL;
    void *space = NULL;
    (void)state;
    if (!context) skip();
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    gpu_product_init(&product, "16x256x4096:a=bf16", 6);
    for (int warm = 0; warm < 2; warm++) {
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        assert_int_equal(fp8r_scaled_mm(context, &product.matmul, stream), FP8R_ERROR_UNSUPPORTED);
        assert_non_null(strstr(fp8r_last_error(), "fp8r_plan_run"));
        CUDA(cudaGraphExecDestroy(instantiate(stream))); /* it was not invalidated */
        gpu_product_clear(&product, stream);
        if (fp8r_scaled_mm(context, &product.matmul, stream) != FP8R_OK) fail_msg("%s", fp8r_last_error());
        GPU_JUDGE(&product, stream);
    }
    if (fp8r_plan_create(context, &product.matmul, NULL, &plan) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    const size_t bytes = fp8r_plan_workspace(plan);
    assert_true(bytes >= 16 * 4096);
    CUDA(cudaMalloc(&space, bytes));
    const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = 16, .a = product.matmul.a.data,
                                    .b = product.matmul.b.data, .out = product.matmul.out.data,
                                    .scale_b = product.matmul.scale_b.data};
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 5; i++)
        if (fp8r_plan_run(plan, &pointers, space, bytes, stream) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    cudaGraphExec_t graph = instantiate(stream);
    gpu_product_clear(&product, stream);
    CUDA(cudaGraphLaunch(graph, stream));
    GPU_JUDGE(&product, stream);
    CUDA(cudaGraphExecDestroy(graph));
    CUDA(cudaFree(space));
    fp8r_plan_destroy(plan);
    gpu_product_fini(&product);
    CUDA(cudaStreamDestroy(stream));
}

/* Another stream is capturing in the strictest mode while this one plans, allocates and runs. */
static void other_streams_captures_are_left_alone(void **state)
{
    struct gpu_product captured, eager;
    cudaStream_t streams[2];
    (void)state;
    if (!context) skip();
    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    gpu_product_init(&captured, "12x640x512", 1);
    gpu_product_init(&eager, "12x640x768:a=bf16", 2);
    gpu_product_clear(&eager, streams[1]);
    CUDA(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    if (fp8r_scaled_mm(context, &eager.matmul, streams[1]) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    if (fp8r_scaled_mm(context, &captured.matmul, streams[0]) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    cudaGraphExec_t graph = instantiate(streams[0]);
    GPU_JUDGE(&eager, streams[1]);
    gpu_product_clear(&captured, streams[0]);
    CUDA(cudaGraphLaunch(graph, streams[0]));
    GPU_JUDGE(&captured, streams[0]);
    CUDA(cudaGraphExecDestroy(graph));
    gpu_product_fini(&captured);
    gpu_product_fini(&eager);
    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamDestroy(streams[i]));
}

/* The per-thread default stream captures like any other. */
static void the_threads_own_stream_is_captured(void **state)
{
    struct gpu_product product;
    (void)state;
    if (!context) skip();
    gpu_product_init(&product, "20x512x1024:bias", 3);
    cudaGraphExec_t graph = capture(&product, cudaStreamPerThread, 2);
    gpu_product_clear(&product, cudaStreamPerThread);
    CUDA(cudaGraphLaunch(graph, cudaStreamPerThread));
    GPU_JUDGE(&product, cudaStreamPerThread);
    CUDA(cudaGraphExecDestroy(graph));
    gpu_product_fini(&product);
}

/* The legacy stream waits for all blocking ones, which a capture of one of them cannot: the call says so and runs nothing. A
 * stream that does not block is no obstacle. */
static void the_legacy_stream_while_another_captures(void **state)
{
    void *const legacy[] = {NULL, cudaStreamLegacy};
    (void)state;
    if (!context) skip();
    for (int i = 0; i < 4; i++) {
        struct gpu_product captured, eager;
        cudaStream_t stream;
        const bool blocks = i < 2;
        CUDA(cudaStreamCreateWithFlags(&stream, blocks ? cudaStreamDefault : cudaStreamNonBlocking));
        gpu_product_init(&captured, "12x640x512", 1);
        gpu_product_init(&eager, "12x512x768", 2);
        gpu_product_clear(&captured, stream);
        gpu_product_clear(&eager, stream);
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        if (fp8r_scaled_mm(context, &captured.matmul, stream) != FP8R_OK) fail_msg("%s", fp8r_last_error());
        const fp8r_status status = fp8r_scaled_mm(context, &eager.matmul, legacy[i % 2]);
        cudaGraph_t graph = NULL;
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        if (blocks) {
            assert_int_equal(status, FP8R_ERROR_DEVICE);
            assert_true(strlen(fp8r_last_error()) > 0);
            (void)cudaGetLastError(); /* a capture that was drawn in may be invalid now */
        } else {
            if (status != FP8R_OK) fail_msg("%s", fp8r_last_error());
            CUDA(ended);
            GPU_JUDGE(&eager, NULL);
        }
        if (graph) CUDA(cudaGraphDestroy(graph));
        gpu_product_clear(&eager, stream);
        if (fp8r_scaled_mm(context, &eager.matmul, legacy[i % 2]) != FP8R_OK) fail_msg("%s", fp8r_last_error());
        GPU_JUDGE(&eager, NULL);
        gpu_product_fini(&captured);
        gpu_product_fini(&eager);
        CUDA(cudaStreamDestroy(stream));
    }
}

int main(void)
{
#define CAPTURE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CAPTURE_TEST(unplanned_families_are_captured),
        CAPTURE_TEST(two_graphs_replay_at_once),
        CAPTURE_TEST(replays_see_new_data),
        CAPTURE_TEST(workspace_is_the_callers_while_capturing),
        CAPTURE_TEST(other_streams_captures_are_left_alone),
        CAPTURE_TEST(the_threads_own_stream_is_captured),
        CAPTURE_TEST(the_legacy_stream_while_another_captures),
    };
    return cmocka_run_group_tests_name("capture on a GPU", tests, NULL, NULL);
}
