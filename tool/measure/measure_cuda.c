/* Measuring on a GPU: device memory, copies, and batches that are captured into a graph once and replayed, or queued call
 * by call. Times are those of events on the device, around the whole batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "base/status.h"
#include "measure/clock.h"
#include "measure/judge_cuda.h"
#include "measure/measure_device.h"
#include "measure/nvml.h"
#include "measure/producer_cuda.h"

/* Starting a graph costs the device a few microseconds, which a sample must not show. */
enum { SAMPLE_NS = 500000, STATE_NS = 50000000 };

/* What the device's sensors said last, and when. */
struct state {
    int64_t at_ns;
    int mhz, watts, celsius;
};

struct gpu {
    int index;
    bool is_graph, has_dependents; /* of programmatic launches */
    cudaStream_t stream;
    cudaEvent_t start, end;
    struct fp8r_nvml nvml;
    struct state state;
    struct fp8r_comparison_result *result; /* on the device */
};

struct fp8r_recording {
    int64_t count;
    fp8r_measured_call call;
    void *arg;
    cudaGraphExec_t graph; /* NULL: the calls are queued each time */
};

static fp8r_status check(const char *call, cudaError_t error)
{
    if (error == cudaSuccess) return FP8R_OK;
    (void)cudaGetLastError();
    return fp8r_fail(error == cudaErrorMemoryAllocation ? FP8R_ERROR_OUT_OF_MEMORY : FP8R_ERROR_DEVICE, "%s: %s", call,
                     cudaGetErrorString(error));
}

#define TRY_CUDA(call, arguments) FP8R_TRY(check(#call, call arguments))

static void *allocate(void *user, size_t bytes)
{
    const struct gpu *gpu = user;
    void *memory = NULL;
    if (check("cudaSetDevice", cudaSetDevice(gpu->index)) != FP8R_OK ||
        check("cudaMalloc", cudaMalloc(&memory, bytes > 0 ? bytes : 1)) != FP8R_OK)
        return NULL;
    return memory;
}

static void release(void *user, void *memory)
{
    (void)user;
    if (memory) (void)check("cudaFree", cudaFree(memory));
}

/* Pageable memory: the call returns when the source may be reused, and the stream sees the copy in order. */
static fp8r_status copy(const struct gpu *gpu, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    if (bytes == 0) return FP8R_OK;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    TRY_CUDA(cudaMemcpyAsync, (to, from, bytes, kind, gpu->stream));
    return check("cudaStreamSynchronize", cudaStreamSynchronize(gpu->stream));
}

static fp8r_status copy_in(void *user, void *to, const void *from_host, size_t bytes)
{
    return copy(user, to, from_host, bytes, cudaMemcpyHostToDevice);
}

static fp8r_status copy_out(void *user, void *to_host, const void *from, size_t bytes)
{
    return copy(user, to_host, from, bytes, cudaMemcpyDeviceToHost);
}

static fp8r_status copy_across(void *user, void *to, const void *from, size_t bytes)
{
    return copy(user, to, from, bytes, cudaMemcpyDeviceToDevice);
}

/* ---- Judging ---- */

static fp8r_status fill(void *user, void *memory, int byte, size_t bytes)
{
    const struct gpu *gpu = user;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    return check("cudaMemsetAsync", cudaMemsetAsync(memory, byte, bytes, gpu->stream));
}

static fp8r_status spread(void *user, const fp8r_matrix *matrix, int64_t batch, int of_rows, float *to)
{
    const struct gpu *gpu = user;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    return check("the spread of a line", (cudaError_t)fp8r_judge_cuda_spread(matrix, batch, of_rows, to, gpu->stream));
}

static fp8r_status gather(void *user, const float *from, const int64_t *places, size_t count, float *values)
{
    const struct gpu *gpu = user;
    const size_t place_bytes = count * sizeof *places, value_bytes = count * sizeof *values;
    uint8_t *room = allocate(user, place_bytes + value_bytes);
    if (!room) return fp8r_fail_memory("elements to look at on the device");
    fp8r_status status = copy_in(user, room, places, place_bytes);
    if (status == FP8R_OK)
        status = check("gathering elements", (cudaError_t)fp8r_judge_cuda_gather(
                                                 from, (const int64_t *)(const void *)room, count,
                                                 (float *)(void *)(room + place_bytes), gpu->stream));
    if (status == FP8R_OK) status = copy_out(user, values, room + place_bytes, value_bytes);
    release(user, room);
    return status;
}

static fp8r_status compare(void *user, const struct fp8r_comparison *comparison, struct fp8r_comparison_result *result)
{
    const struct gpu *gpu = user;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    *result = (struct fp8r_comparison_result){.wrong = 0, .first = UINT64_MAX};
    FP8R_TRY(copy_in(user, gpu->result, result, sizeof *result));
    FP8R_TRY(check("comparing results", (cudaError_t)fp8r_judge_cuda_compare(comparison, gpu->result, gpu->stream)));
    return copy_out(user, result, gpu->result, sizeof *result);
}

static const struct fp8r_judge judge = {.fill = fill, .spread = spread, .gather = gather, .compare = compare};

/* ---- Timing ---- */

static fp8r_status produce(void *user, void *to, const void *from, size_t bytes, void *stream)
{
    const struct gpu *gpu = user;
    return check("the kernel in front of a product",
                 (cudaError_t)fp8r_producer_cuda(to, from, bytes, gpu->has_dependents, stream));
}

static fp8r_status make_calls(const struct gpu *gpu, const struct fp8r_recording *recording)
{
    fp8r_status status = FP8R_OK;
    for (int64_t i = 0; i < recording->count && status == FP8R_OK; i++)
        status = recording->call(recording->arg, gpu->stream);
    return status;
}

/* The capture is ended on every path, or the stream could not be used again. */
static fp8r_status capture(const struct gpu *gpu, struct fp8r_recording *recording)
{
    cudaGraph_t graph = NULL;
    TRY_CUDA(cudaStreamBeginCapture, (gpu->stream, cudaStreamCaptureModeThreadLocal));
    fp8r_status status = make_calls(gpu, recording);
    cudaError_t ended = cudaStreamEndCapture(gpu->stream, &graph);
    if (status == FP8R_OK)
        status = check("cudaStreamEndCapture", ended);
    else
        (void)cudaGetLastError(); /* the call's own line stays */
    if (status == FP8R_OK)
        status = check("cudaGraphInstantiate", cudaGraphInstantiate(&recording->graph, graph, 0));
    if (status == FP8R_OK) status = check("cudaGraphUpload", cudaGraphUpload(recording->graph, gpu->stream));
    if (graph) (void)cudaGraphDestroy(graph);
    return status;
}

static void forget(void *user, struct fp8r_recording *recording)
{
    (void)user;
    if (recording && recording->graph) (void)check("cudaGraphExecDestroy", cudaGraphExecDestroy(recording->graph));
    free(recording);
}

static fp8r_status record(void *user, int64_t count, fp8r_measured_call call, void *arg,
                          struct fp8r_recording **result)
{
    const struct gpu *gpu = user;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    struct fp8r_recording *made = malloc(sizeof *made);
    if (!made) return fp8r_fail_memory("a recording");
    *made = (struct fp8r_recording){.count = count, .call = call, .arg = arg};
    fp8r_status status = gpu->is_graph ? capture(gpu, made) : FP8R_OK;
    if (status == FP8R_OK)
        *result = made;
    else
        forget(user, made);
    return status;
}

static fp8r_status time_batch(void *user, const struct fp8r_recording *recording, int64_t *elapsed_ns)
{
    const struct gpu *gpu = user;
    float elapsed_ms;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    TRY_CUDA(cudaEventRecord, (gpu->start, gpu->stream));
    if (recording->graph)
        TRY_CUDA(cudaGraphLaunch, (recording->graph, gpu->stream));
    else
        FP8R_TRY(make_calls(gpu, recording));
    TRY_CUDA(cudaEventRecord, (gpu->end, gpu->stream));
    TRY_CUDA(cudaEventSynchronize, (gpu->end));
    TRY_CUDA(cudaEventElapsedTime, (&elapsed_ms, gpu->start, gpu->end));
    *elapsed_ns = (int64_t)((double)elapsed_ms * 1e6);
    return FP8R_OK;
}

/* Asking takes a millisecond, and the answers are averages of longer times: they are asked anew when they are old. */
static const struct state *state_now(struct gpu *gpu)
{
    const int64_t now_ns = fp8r_clock_ns();
    if (gpu->state.at_ns > 0 && now_ns - gpu->state.at_ns < STATE_NS) return &gpu->state;
    gpu->state = (struct state){.at_ns = now_ns,
                                .mhz = fp8r_nvml_clock_mhz(&gpu->nvml),
                                .watts = fp8r_nvml_power_watts(&gpu->nvml),
                                .celsius = fp8r_nvml_temperature_celsius(&gpu->nvml)};
    return &gpu->state;
}

static int clock_mhz(void *user)
{
    return state_now(user)->mhz;
}

static int power_watts(void *user)
{
    return state_now(user)->watts;
}

static int temperature_celsius(void *user)
{
    return state_now(user)->celsius;
}

static void close_gpu(void *user)
{
    struct gpu *gpu = user;
    if (gpu->start) (void)cudaEventDestroy(gpu->start);
    if (gpu->end) (void)cudaEventDestroy(gpu->end);
    if (gpu->result) (void)cudaFree(gpu->result);
    if (gpu->stream) (void)cudaStreamDestroy(gpu->stream);
    (void)cudaGetLastError();
    free(gpu);
}

static fp8r_status open_gpu(struct gpu *gpu, size_t *free_bytes)
{
    char bus_id[32];
    size_t total_bytes;
    TRY_CUDA(cudaSetDevice, (gpu->index));
    TRY_CUDA(cudaStreamCreateWithFlags, (&gpu->stream, cudaStreamNonBlocking));
    TRY_CUDA(cudaEventCreate, (&gpu->start));
    TRY_CUDA(cudaEventCreate, (&gpu->end));
    TRY_CUDA(cudaMalloc, ((void **)&gpu->result, sizeof *gpu->result));
    /* Once outside of a capture, in which its code might not be loaded. */
    if (gpu->is_graph) FP8R_TRY(produce(gpu, gpu->result, gpu->result, sizeof *gpu->result, gpu->stream));
    TRY_CUDA(cudaMemGetInfo, (free_bytes, &total_bytes));
    TRY_CUDA(cudaDeviceGetPCIBusId, (bus_id, (int)sizeof bus_id, gpu->index));
    (void)fp8r_nvml_open(bus_id, &gpu->nvml);
    return FP8R_OK;
}

fp8r_status fp8r_measure_cuda_init(const fp8r_device_facts *facts, bool is_graph, struct fp8r_measure_device *device)
{
    size_t free_bytes = 0;
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return fp8r_fail_memory("a device to measure");
    gpu->index = facts->index;
    gpu->is_graph = is_graph;
    gpu->has_dependents = facts->arch >= 90;
    fp8r_status status = open_gpu(gpu, &free_bytes);
    if (status != FP8R_OK) {
        close_gpu(gpu);
        return status;
    }
    const bool has_nvml = gpu->nvml.device != NULL;
    *device = (struct fp8r_measure_device){
        /* A quarter more than it is: parts of it keep lines longer than their turn, and 5 times its size is enough. */
        .cache_bytes = facts->l2_bytes + facts->l2_bytes / 4,
        .sample_ns = SAMPLE_NS,
        .available_bytes = (int64_t)free_bytes,
        .is_remote = true,
        .records = is_graph,
        .user = gpu,
        .allocate = allocate,
        .release = release,
        .copy_in = copy_in,
        .copy_out = copy_out,
        .copy_across = copy_across,
        .judge = &judge,
        .record = record,
        .time = time_batch,
        .forget = forget,
        .produce = is_graph ? produce : NULL,
        .clock_mhz = has_nvml ? clock_mhz : NULL,
        .power_watts = has_nvml ? power_watts : NULL,
        .temperature_celsius = has_nvml ? temperature_celsius : NULL,
        .close = close_gpu};
    return FP8R_OK;
}
