/* Device memory, streams, captured graphs and rounds of them, behind a C interface for the benchmark's driver. A function
 * answers a cudaError_t.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_API __attribute__((visibility("default")))

enum { GRAPHS_MOST = 64 };

BENCH_API int bench_device(char *name, int size, int *driver);
BENCH_API const char *bench_error_text(int error);
BENCH_API int bench_allocate(void **memory, int64_t bytes);
BENCH_API int bench_free(void *memory);
BENCH_API int bench_stream(void **stream);
BENCH_API int bench_wait(void *stream);
BENCH_API int bench_copy(void *to, const void *from, int64_t bytes, void *stream);
BENCH_API int bench_capture_begin(void *stream);
BENCH_API int bench_capture_end(void *stream, void **graph);
BENCH_API int bench_graph_free(void *graph);
BENCH_API int bench_replay(void *graph, void *stream, int times);
BENCH_API int bench_rounds(void *const *graphs, int count, int rounds, uint32_t seed, void *stream, double *us);

/* Name and driver of the current device. */
int bench_device(char *name, int size, int *driver)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, 0);
    if (error == cudaSuccess) (void)snprintf(name, (size_t)size, "%s", properties.name);
    return error != cudaSuccess ? (int)error : (int)cudaDriverGetVersion(driver);
}

const char *bench_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

int bench_allocate(void **memory, int64_t bytes)
{
    return cudaMalloc(memory, (size_t)bytes);
}

int bench_free(void *memory)
{
    return cudaFree(memory);
}

int bench_stream(void **stream)
{
    return cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking);
}

int bench_wait(void *stream)
{
    return cudaStreamSynchronize(stream);
}

int bench_copy(void *to, const void *from, int64_t bytes, void *stream)
{
    return cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, stream);
}

/* Relaxed: a framework that takes part may ask its allocator. */
int bench_capture_begin(void *stream)
{
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
}

int bench_capture_end(void *stream, void **graph)
{
    cudaGraph_t captured;
    cudaError_t error = cudaStreamEndCapture(stream, &captured);
    if (error != cudaSuccess) return error;
    error = cudaGraphInstantiate((cudaGraphExec_t *)graph, captured, 0);
    (void)cudaGraphDestroy(captured);
    return error;
}

int bench_graph_free(void *graph)
{
    return cudaGraphExecDestroy(graph);
}

int bench_replay(void *graph, void *stream, int times)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < times && error == cudaSuccess; i++)
        error = cudaGraphLaunch(graph, stream);
    return error != cudaSuccess ? (int)error : (int)cudaStreamSynchronize(stream);
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void shuffle(int *order, int count, uint32_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)(next(state) % (uint32_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* All graphs of a round are queued before the first is waited for: the device is never idle between two of them. */
static cudaError_t run_round(void *const *graphs, int count, const int *order, cudaEvent_t events[][2], void *stream,
                             double *us)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < count && error == cudaSuccess; i++) {
        error = cudaEventRecord(events[order[i]][0], stream);
        if (error == cudaSuccess) error = cudaGraphLaunch(graphs[order[i]], stream);
        if (error == cudaSuccess) error = cudaEventRecord(events[order[i]][1], stream);
    }
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    for (int i = 0; i < count && error == cudaSuccess; i++) {
        float ms;
        error = cudaEventElapsedTime(&ms, events[i][0], events[i][1]);
        us[i] = (double)ms * 1e3;
    }
    return error;
}

/* us[round * count + i]: of a whole replay of graph i; every round has them in a new random order. One round before the
 * first is not counted. */
int bench_rounds(void *const *graphs, int count, int rounds, uint32_t seed, void *stream, double *us)
{
    cudaEvent_t events[GRAPHS_MOST][2];
    int order[GRAPHS_MOST];
    cudaError_t error = count <= GRAPHS_MOST ? cudaSuccess : cudaErrorInvalidValue;
    int made = 0;
    for (; made < 2 * count && error == cudaSuccess; made++) {
        order[made / 2] = made / 2;
        error = cudaEventCreate(&events[made / 2][made % 2]);
    }
    for (int round = -1; round < rounds && error == cudaSuccess; round++) {
        shuffle(order, count, &seed);
        error = run_round(graphs, count, order, events, stream, us + (round < 0 ? 0 : round) * count);
    }
    for (int i = 0; i < made; i++)
        (void)cudaEventDestroy(events[i / 2][i % 2]);
    return error;
}
