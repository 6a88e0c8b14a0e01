/* The same product 20,000 times gives the same bits, while another stream keeps the device busy: no race between the parts of
 * a split, none with a neighbour. Compared on the device, whole, each time.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gpu_sample.h"
#include "gpu_whole.h"

enum { REPEATS = 20000, A_GRAPH = 100, AHEAD = 10 };

static fp8r_context *context;

static cudaGraphExec_t finish(void *stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t made;
    gpu_check("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
    gpu_check("cudaGraphInstantiate", cudaGraphInstantiate(&made, graph, 0));
    gpu_check("cudaGraphDestroy", cudaGraphDestroy(graph));
    return made;
}

/* Products behind each other; every second one on poison, every other one launched while its neighbour still runs. */
static cudaGraphExec_t capture_repeats(struct gpu_whole *it, const fp8r_plan *plan, void *first)
{
    void *const out = it->matmul.out.data;
    gpu_whole_run(it, plan, 0, it->matmul.a.rows, out); /* its workspace is there before the capture */
    gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(it->stream));
    gpu_check("cudaStreamBeginCapture", cudaStreamBeginCapture(it->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < A_GRAPH; i++) {
        if (i % 2 == 0) gpu_whole_poison(it, out);
        gpu_whole_run(it, plan, 0, it->matmul.a.rows, out);
        gpu_check("compare", gpu_bits_compare(out, first, (int64_t)it->out_bytes, it->difference, it->stream));
    }
    return finish(it->stream);
}

static cudaGraphExec_t capture_load(struct gpu_whole *it, const fp8r_plan *plan)
{
    gpu_check("cudaStreamBeginCapture", cudaStreamBeginCapture(it->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 20; i++)
        gpu_whole_run(it, plan, 0, it->matmul.a.rows, it->matmul.out.data);
    return finish(it->stream);
}

static void repeat(struct gpu_whole *it, cudaGraphExec_t repeats, struct gpu_whole *load, cudaGraphExec_t busy)
{
    for (int i = 0; i < REPEATS / A_GRAPH; i++) {
        gpu_check("cudaGraphLaunch", cudaGraphLaunch(repeats, it->stream));
        gpu_check("cudaGraphLaunch", cudaGraphLaunch(busy, load->stream));
        if (i % AHEAD == 0) gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(load->stream));
    }
}

static void check(const char *text, const char *backend)
{
    struct gpu_whole it, load;
    void *first;
    gpu_whole_init(&it, text, true, 3);
    gpu_whole_init(&load, "300x2048x2048", true, 4);
    fp8r_plan *plan = gpu_whole_plan(&it, context, backend), *other = gpu_whole_plan(&load, context, "sm90");
    if (!other) other = gpu_whole_plan(&load, context, "cuda");
    if (plan) {
        gpu_check("cudaMalloc", cudaMalloc(&first, it.out_bytes));
        gpu_whole_poison(&it, first);
        gpu_whole_run(&it, plan, 0, it.matmul.a.rows, first);
        cudaGraphExec_t repeats = capture_repeats(&it, plan, first), busy = capture_load(&load, other);
        repeat(&it, repeats, &load, busy);
        const struct gpu_difference found = gpu_whole_difference(&it);
        if (found.count > 0)
            fail_msg("%s on %s: %llu words of %d results differ", text, fp8r_plan_backend(plan, it.matmul.a.rows),
                     found.count, (int)REPEATS);
        print_message("%s on %s: %d results\n", text, fp8r_plan_backend(plan, it.matmul.a.rows), (int)REPEATS);
        gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(load.stream));
        gpu_check("cudaGraphExecDestroy", cudaGraphExecDestroy(repeats));
        gpu_check("cudaGraphExecDestroy", cudaGraphExecDestroy(busy));
        gpu_check("cudaFree", cudaFree(first));
    }
    fp8r_plan_destroy(plan);
    fp8r_plan_destroy(other);
    gpu_whole_fini(&it);
    gpu_whole_fini(&load);
}

static void split_decode(void **state)
{
    (void)state;
    check("4x512x8192:static", NULL);
}

/* Three blocks that share 241 rows and more each: their partial sums are more than 16 KB, and must not lie where a neighbour still
 * reads its stages. */
static void split_decode_of_many_rows(void **state)
{
    (void)state;
    check("16x28672x4096:static", "sm90:skinny_k3_b3_c11");
}

static void split_batch(void **state)
{
    (void)state;
    check("96x512x4096:static", NULL);
}

static void tiles(void **state)
{
    (void)state;
    check("200x1024x1024", NULL);
    check("257x520x2064:precise", NULL);
}

static void portable(void **state)
{
    (void)state;
    check("40x500x1003", "cuda");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(split_decode), cmocka_unit_test(split_decode_of_many_rows),
                                       cmocka_unit_test(split_batch),
                                       cmocka_unit_test(tiles), cmocka_unit_test(portable)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    (void)gpu_facts();
    context = gpu_routed_context();
    const int failed = cmocka_run_group_tests_name("repeats on a GPU", tests, NULL, NULL);
    fp8r_context_destroy(context);
    return failed;
}
