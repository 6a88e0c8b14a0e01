/* Contexts on a GPU: facts, streams, threads, two contexts, the current device, pending errors, pointers elsewhere, products
 * over nothing. Skipped by name where there is no GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu_product.h"

#include <pthread.h>
#include <time.h>

#include "api/context.h"

enum { STREAMS = 8, THREADS = 4 };

static void facts_are_plausible(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    const fp8r_device_facts *facts = fp8r_context_device(context);
    assert_int_equal(facts->kind, FP8R_DEVICE_CUDA);
    assert_true(facts->arch >= 75 && facts->sm_count > 0 && facts->driver >= 13000);
    assert_true(facts->l2_bytes > 1 << 20 && facts->bandwidth_gbs > 100 && facts->name[0]);
    print_message("%s: sm_%d, %d multiprocessors, L2 %lld bytes, %lld GB/s, driver %d\n", facts->name, (int)facts->arch,
                  (int)facts->sm_count, (long long)facts->l2_bytes, (long long)facts->bandwidth_gbs,
                  (int)facts->driver);
    fp8r_context_destroy(context);
    fp8r_context *none = NULL;
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 4096}, NULL, &none),
                     FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "device.index is 4096"));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void products_are_right(void **state)
{
    static const char *const texts[] = {"1x4096x512:bias", "16x256x1024",        "33x132x3088",        "128x512x256:fp32",
                                        "300x520x640:fp16", "5*7x96x128:sa=batch:sb=batch", "9x17x35:ta:tb",
                                        "1x1x1",           "64x128x0:bias:fp32", "3x40x0"};
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct gpu_product product;
        gpu_product_init(&product, texts[i], 3);
        gpu_product_clear(&product, NULL);
        fp8r_status status = fp8r_scaled_mm(context, &product.matmul, NULL);
        if (status == FP8R_ERROR_UNSUPPORTED)
            print_message("%s: %s\n", texts[i], fp8r_last_error());
        else if (status != FP8R_OK)
            fail_msg("%s: %s", texts[i], fp8r_last_error());
        else
            GPU_JUDGE(&product, NULL);
        gpu_product_fini(&product);
    }
    fp8r_context_destroy(context);
}

/* Field report F7: workspaces of several streams are not shared. Rows that are quantised on the way need some. */
static void f7_streams_have_workspaces_of_their_own(void **state)
{
    struct gpu_product products[STREAMS];
    cudaStream_t streams[STREAMS];
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    for (int i = 0; i < STREAMS; i++) {
        gpu_product_init(&products[i], "16x256x4096:a=bf16", (uint64_t)i + 1);
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        gpu_product_clear(&products[i], streams[i]);
    }
    for (int call = 0; call < 200; call++) {
        for (int i = 0; i < STREAMS; i++) {
            fp8r_status status = fp8r_scaled_mm(context, &products[i].matmul, streams[i]);
            if (status != FP8R_OK) fail_msg("%s", fp8r_last_error());
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        GPU_JUDGE(&products[i], streams[i]);
        gpu_product_fini(&products[i]);
        CUDA(cudaStreamDestroy(streams[i]));
    }
    fp8r_context_destroy(context);
}

struct worker {
    fp8r_context *context;
    struct gpu_product product;
    cudaStream_t stream;
    fp8r_status status;
    char fault[200];
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int call = 0; call < 500 && worker->status == FP8R_OK; call++) {
        worker->status = fp8r_scaled_mm(worker->context, &worker->product.matmul, worker->stream);
        if (worker->status != FP8R_OK) snprintf(worker->fault, sizeof worker->fault, "%s", fp8r_last_error());
    }
    return NULL;
}

static void work_together(fp8r_context *contexts[THREADS])
{
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.context = contexts[i]};
        gpu_product_init(&workers[i].product, i % 2 ? "7x512x1024" : "200x384x512:bias", (uint64_t)i + 5);
        CUDA(cudaStreamCreateWithFlags(&workers[i].stream, cudaStreamNonBlocking));
        gpu_product_clear(&workers[i].product, workers[i].stream);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].status != FP8R_OK) fail_msg("thread %d: %s", i, workers[i].fault);
        GPU_JUDGE(&workers[i].product, workers[i].stream);
        gpu_product_fini(&workers[i].product);
        CUDA(cudaStreamDestroy(workers[i].stream));
    }
}

static void threads_share_a_context(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *context = gpu_context(0, FP8R_NO_ENVIRONMENT), *contexts[THREADS];
    for (int i = 0; i < THREADS; i++)
        contexts[i] = context;
    work_together(contexts);
    fp8r_context_destroy(context);
}

static void two_contexts_on_one_device(void **state)
{
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *first = gpu_context(0, FP8R_NO_ENVIRONMENT), *second = gpu_context(0, FP8R_NO_ENVIRONMENT);
    fp8r_context *contexts[THREADS] = {first, second, second, first};
    work_together(contexts);
    fp8r_context_destroy(first);
    contexts[0] = contexts[3] = second;
    work_together(contexts);
    fp8r_context_destroy(second);
}

/* A thread that never chose a device has none current after a call either, or its next allocation would land on ours. */
static void *call_on_a_fresh_thread(void *argument)
{
    struct worker *worker = argument;
    void *before = (void *)1, *after = (void *)1;
    int (*get_current)(void **) = NULL;
    enum cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&get_current, 12000, cudaEnableDefault, &found) !=
            cudaSuccess || !get_current) {
        snprintf(worker->fault, sizeof worker->fault, "cuCtxGetCurrent is not to be had");
        return NULL;
    }
    (void)get_current(&before);
    worker->status = fp8r_scaled_mm(worker->context, &worker->product.matmul, worker->stream);
    (void)get_current(&after);
    if (before != after)
        snprintf(worker->fault, sizeof worker->fault, "current context before the call %p, after it %p", before, after);
    return NULL;
}

static void nothing_current_stays_so(void **state)
{
    static struct worker worker;
    pthread_t thread;
    (void)state;
    if (gpu_count() == 0) skip();
    worker = (struct worker){.context = gpu_context(0, FP8R_NO_ENVIRONMENT)};
    gpu_product_init(&worker.product, "4x64x128", 1);
    gpu_product_clear(&worker.product, NULL);
    assert_int_equal(pthread_create(&thread, NULL, call_on_a_fresh_thread, &worker), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (worker.fault[0]) fail_msg("%s", worker.fault);
    assert_int_equal(worker.status, FP8R_OK);
    GPU_JUDGE(&worker.product, NULL);
    gpu_product_fini(&worker.product);
    fp8r_context_destroy(worker.context);
}

/* Field report F3: operands on one device while another is current. */
static void f3_the_current_device_is_restored(void **state)
{
    struct gpu_product product;
    int current = -1;
    (void)state;
    if (gpu_count() < 2) skip();
    fp8r_context *context = gpu_context(1, FP8R_NO_ENVIRONMENT);
    CUDA(cudaSetDevice(1));
    gpu_product_init(&product, "16x256x512:a=bf16", 2);
    gpu_product_clear(&product, NULL);
    CUDA(cudaSetDevice(0));
    if (fp8r_scaled_mm(context, &product.matmul, NULL) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    CUDA(cudaGetDevice(&current));
    assert_int_equal(current, 0);
    fp8r_matmul wrong = product.matmul;
    wrong.a.dtype = FP8R_DTYPE_FP32;
    assert_int_equal(fp8r_scaled_mm(context, &wrong, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    CUDA(cudaGetDevice(&current));
    assert_int_equal(current, 0);
    fp8r_context *first = gpu_context(0, FP8R_NO_ENVIRONMENT);
    fp8r_plan *plan = NULL;
    assert_int_equal(fp8r_plan_create(first, &product.matmul, NULL, &plan), FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "a.data is on CUDA device 1"));
    fp8r_context_destroy(first);
    CUDA(cudaSetDevice(1));
    GPU_JUDGE(&product, NULL);
    gpu_product_fini(&product);
    CUDA(cudaSetDevice(0));
    fp8r_context_destroy(context);
    CUDA(cudaGetDevice(&current));
    assert_int_equal(current, 0);
}

/* A call that fails for what another did would hide it; one that clears it, too. */
static void pending_errors_are_returned_and_kept(void **state)
{
    struct gpu_product product;
    fp8r_plan *plan = NULL, *none = NULL;
    fp8r_explanation *explanation = NULL;
    fp8r_context *other = NULL;
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    gpu_product_init(&product, "4x64x128", 1);
    gpu_product_clear(&product, NULL);
    assert_int_equal(fp8r_plan_create(context, &product.matmul, NULL, &plan), FP8R_OK);
    fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = 4, .a = product.matmul.a.data,
                              .b = product.matmul.b.data, .out = product.matmul.out.data,
                              .scale_a = product.matmul.scale_a.data, .scale_b = product.matmul.scale_b.data};
    assert_int_equal(cudaMemcpy(NULL, NULL, 16, (enum cudaMemcpyKind)77), cudaErrorInvalidMemcpyDirection);
    assert_int_equal(fp8r_scaled_mm(context, &product.matmul, NULL), FP8R_ERROR_DEVICE);
    assert_non_null(strstr(fp8r_last_error(), "cudaErrorInvalidMemcpyDirection"));
    assert_int_equal(fp8r_plan_run(plan, &pointers, NULL, 0, NULL), FP8R_ERROR_DEVICE);
    assert_int_equal(fp8r_plan_create(context, &product.matmul, NULL, &none), FP8R_ERROR_DEVICE);
    assert_int_equal(fp8r_explain(context, &product.matmul, &explanation), FP8R_ERROR_DEVICE);
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, NULL, &other), FP8R_ERROR_DEVICE);
    assert_true(!none && !explanation && !other);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidMemcpyDirection); /* still there, and now taken */
    const struct sample_block *out = &product.host.blocks[SAMPLE_OUT];
    unsigned char *seen = malloc(out->size_bytes);
    assert_non_null(seen);
    CUDA(cudaMemcpy(seen, product.blocks[SAMPLE_OUT], out->size_bytes, cudaMemcpyDeviceToHost));
    assert_memory_equal(seen, out->memory, out->size_bytes); /* nothing ran */
    free(seen);
    void *space = NULL;
    size_t bytes = fp8r_plan_workspace(plan);
    CUDA(cudaMalloc(&space, bytes + 1));
    if (fp8r_plan_run(plan, &pointers, space, bytes, NULL) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    GPU_JUDGE(&product, NULL);
    CUDA(cudaFree(space));
    fp8r_plan_destroy(plan);
    gpu_product_fini(&product);
    fp8r_context_destroy(context);
}

static void pointers_elsewhere_are_named(void **state)
{
    struct gpu_product product;
    fp8r_plan *plan = NULL;
    static _Alignas(256) unsigned char host[64 * 128];
    (void)state;
    if (gpu_count() == 0) skip();
    assert_int_equal(setenv("FP8ROUTE_CHECK", "1", 1), 0);
    fp8r_context *context = gpu_context(0, 0);
    assert_int_equal(unsetenv("FP8ROUTE_CHECK"), 0);
    gpu_product_init(&product, "4x64x128", 1);
    gpu_product_clear(&product, NULL);
    fp8r_matmul wrong = product.matmul;
    wrong.b.data = host;
    assert_int_equal(fp8r_plan_create(context, &wrong, NULL, &plan), FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "b.data is unregistered host memory"));
    assert_int_equal(fp8r_scaled_mm(context, &wrong, NULL), FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "b.data is unregistered host memory"));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    if (fp8r_scaled_mm(context, &product.matmul, NULL) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    GPU_JUDGE(&product, NULL);
    gpu_product_fini(&product);
    fp8r_context_destroy(context);
}

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Field report I6: what a warm call costs the host, the launch included. */
static void i6_a_warm_call_costs_the_host_little(void **state)
{
    struct gpu_product product;
    double best_us = 1e9;
    (void)state;
    if (gpu_count() == 0) skip();
    fp8r_context *context = gpu_context(0, FP8R_NO_ENVIRONMENT);
    gpu_product_init(&product, "1x4096x4096", 1);
    for (int round = 0; round < 20; round++) {
        enum { CALLS = 100 };
        CUDA(cudaDeviceSynchronize());
        double start_us = now_us();
        for (int call = 0; call < CALLS; call++)
            assert_int_equal(fp8r_scaled_mm(context, &product.matmul, NULL), FP8R_OK);
        double call_us = (now_us() - start_us) / CALLS;
        best_us = call_us < best_us ? call_us : best_us;
    }
    CUDA(cudaDeviceSynchronize());
    print_message("a warm scaled_mm of 1x4096x4096 takes %.2f us of the host\n", best_us);
    assert_true(best_us < 10); /* the kernel itself takes about as long, and its queue is bounded */
    gpu_product_fini(&product);
    fp8r_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_plausible),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(f7_streams_have_workspaces_of_their_own),
        cmocka_unit_test(threads_share_a_context),
        cmocka_unit_test(two_contexts_on_one_device),
        cmocka_unit_test(nothing_current_stays_so),
        cmocka_unit_test(f3_the_current_device_is_restored),
        cmocka_unit_test(pending_errors_are_returned_and_kept),
        cmocka_unit_test(pointers_elsewhere_are_named),
        cmocka_unit_test(i6_a_warm_call_costs_the_host_little),
    };
    return cmocka_run_group_tests_name("contexts on a GPU", tests, NULL, NULL);
}
