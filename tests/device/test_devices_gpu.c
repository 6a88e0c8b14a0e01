/* Several GPUs in one process (field reports F3, F8): contexts of their own, one thread that alternates, threads on all of them,
 * workspaces and vendor handles that belong to their device. Skipped by name where there are fewer than two.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu_product.h"

#include <pthread.h>

enum { DEVICES = 2, THREADS = 8, CALLS = 200 };

/* Some rows need workspace: one that is quantised on the way, and the vendor's. */
static const char *const texts[] = {"16x256x4096:a=bf16", "33x512x1024:bias", "300x384x512", "9x17x35"};

static fp8r_context *contexts[DEVICES];

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES && gpu_count() >= DEVICES; i++)
        contexts[i] = gpu_context(i, FP8R_NO_ENVIRONMENT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++) {
        fp8r_context_destroy(contexts[i]);
        contexts[i] = NULL;
    }
    return 0;
}

/* Whatever was current stays current: a device is chosen only to make and to judge operands. */
static void make(struct gpu_product products[DEVICES], const char *text)
{
    for (int i = 0; i < DEVICES; i++) {
        CUDA(cudaSetDevice(i));
        gpu_product_init(&products[i], text, (uint64_t)i + 5);
        gpu_product_clear(&products[i], NULL);
    }
    CUDA(cudaSetDevice(0));
}

static void judge(struct gpu_product products[DEVICES])
{
    for (int i = 0; i < DEVICES; i++) {
        CUDA(cudaSetDevice(i));
        GPU_JUDGE(&products[i], NULL);
        gpu_product_fini(&products[i]);
    }
    CUDA(cudaSetDevice(0));
}

static void f8_one_thread_alternates(void **state)
{
    (void)state;
    if (!contexts[1]) skip();
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct gpu_product products[DEVICES];
        int current = -1;
        make(products, texts[t]);
        for (int call = 0; call < CALLS; call++) {
            const int i = call % DEVICES;
            if (fp8r_scaled_mm(contexts[i], &products[i].matmul, NULL) != FP8R_OK) fail_msg("%s", fp8r_last_error());
            CUDA(cudaGetDevice(&current));
            assert_int_equal(current, 0);
        }
        judge(products);
    }
}

/* Every row that has a library or configurations of its own, by name, on either device. */
static void rows_run_on_every_device(void **state)
{
    static const char *const names[] = {"sm90", "cublaslt", "cuda"};
    (void)state;
    if (!contexts[1]) skip();
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct gpu_product products[DEVICES];
        int taken = 0;
        make(products, "48x512x1024");
        for (int i = 0; i < DEVICES; i++) {
            fp8r_plan *plan = NULL;
            const fp8r_matmul *matmul = &products[i].matmul;
            const fp8r_status status = fp8r_plan_create(contexts[i], matmul, names[n], &plan);
            if (status == FP8R_ERROR_UNSUPPORTED) continue;
            if (status != FP8R_OK) fail_msg("%s", fp8r_last_error());
            const size_t bytes = fp8r_plan_workspace(plan);
            void *space = NULL;
            CUDA(cudaSetDevice(i));
            CUDA(cudaMalloc(&space, bytes + 1));
            CUDA(cudaSetDevice(1 - i));
            const fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = 48, .a = matmul->a.data,
                                            .b = matmul->b.data, .out = matmul->out.data,
                                            .scale_a = matmul->scale_a.data, .scale_b = matmul->scale_b.data};
            if (fp8r_plan_run(plan, &pointers, space, bytes, NULL) != FP8R_OK) fail_msg("%s", fp8r_last_error());
            CUDA(cudaSetDevice(i));
            GPU_JUDGE(&products[i], NULL);
            CUDA(cudaFree(space));
            fp8r_plan_destroy(plan);
            taken++;
        }
        assert_true(taken == 0 || taken == DEVICES);
        for (int i = 0; i < DEVICES; i++) {
            CUDA(cudaSetDevice(i));
            gpu_product_fini(&products[i]);
        }
        CUDA(cudaSetDevice(0));
    }
}

struct worker {
    int device;
    struct gpu_product product;
    cudaStream_t stream;
    char fault[200];
};

/* A thread's current device is the other one all the time. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    int current = -1;
    (void)cudaSetDevice(1 - worker->device);
    for (int call = 0; call < CALLS && !worker->fault[0]; call++)
        if (fp8r_scaled_mm(contexts[worker->device], &worker->product.matmul, worker->stream) != FP8R_OK)
            snprintf(worker->fault, sizeof worker->fault, "%s", fp8r_last_error());
    if (cudaGetDevice(&current) != cudaSuccess || current != 1 - worker->device)
        snprintf(worker->fault, sizeof worker->fault, "device %d is current after the calls", current);
    return NULL;
}

static void f8_threads_on_both(void **state)
{
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    if (!contexts[1]) skip();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.device = i % DEVICES};
        CUDA(cudaSetDevice(i % DEVICES));
        gpu_product_init(&workers[i].product, texts[(size_t)(i / DEVICES) % 4], (uint64_t)i + 1);
        CUDA(cudaStreamCreateWithFlags(&workers[i].stream, cudaStreamNonBlocking));
        gpu_product_clear(&workers[i].product, workers[i].stream);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].fault[0]) fail_msg("thread %d: %s", i, workers[i].fault);
        CUDA(cudaSetDevice(i % DEVICES));
        GPU_JUDGE(&workers[i].product, workers[i].stream);
        gpu_product_fini(&workers[i].product);
        CUDA(cudaStreamDestroy(workers[i].stream));
    }
    CUDA(cudaSetDevice(0));
}

static void equal_devices_decide_alike(void **state)
{
    unsigned char ids[DEVICES][32];
    (void)state;
    if (!contexts[1]) skip();
    for (int i = 0; i < DEVICES; i++)
        fp8r_context_routes_id(contexts[i], ids[i]);
    if (fp8r_context_device(contexts[0])->arch == fp8r_context_device(contexts[1])->arch)
        assert_memory_equal(ids[0], ids[1], 32);
}

/* Operands on two devices: named, and nothing runs. */
static void f3_operands_on_different_devices(void **state)
{
    struct gpu_product products[DEVICES];
    fp8r_plan *plan = NULL;
    (void)state;
    if (!contexts[1]) skip();
    make(products, "4x64x128");
    fp8r_matmul mixed = products[0].matmul;
    mixed.b.data = products[1].matmul.b.data;
    assert_int_equal(fp8r_plan_create(contexts[0], &mixed, NULL, &plan), FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "b.data is on CUDA device 1"));
    for (int i = 0; i < DEVICES; i++)
        if (fp8r_scaled_mm(contexts[i], &products[i].matmul, NULL) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    judge(products);
}

int main(void)
{
#define DEVICES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {DEVICES_TEST(f8_one_thread_alternates), DEVICES_TEST(rows_run_on_every_device),
                                       DEVICES_TEST(f8_threads_on_both), DEVICES_TEST(equal_devices_decide_alike),
                                       DEVICES_TEST(f3_operands_on_different_devices)};
    return cmocka_run_group_tests_name("several GPUs", tests, NULL, NULL);
}
