/* The GPU's quantiser against the CPU's, byte for byte over whole buffers, gaps and guards included: every
 * type, granularity, stride and alignment, on values of every kind. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/quantize.h"
#include "base/convert.h"
#include "base/dtype.h"
#include "gpu_sample.h"
#include "support/gpu_memory.h"
#include "support/rows.h"

enum { GUARD = 256, IN = 0, OUT = 1, SCALE = 2, BUFFERS = 3 };

static fp8r_device_facts facts;
static fp8r_context *cpu;
static long runs;

/* How a matrix lies: elements between rows beyond packed, between columns, in front; rows contiguous instead.
 */
struct layout {
    int64_t pad, step, at;
    bool rows_contiguous;
};

struct job {
    const char *name;
    int32_t in_dtype, out_dtype, scaling;
    int64_t batch, rows, cols;
    int scale_extents; /* bits 0, 1, 2: batch, rows, cols have a scale each; 8: no scale at all */
    struct layout in, out;
    uint64_t seed;
};

/* One operand twice on the host and once on the device. */
struct buffer {
    fp8r_matrix matrix; /* data: offset_bytes into a buffer */
    size_t offset_bytes, size_bytes;
    unsigned char *start, *host, *fetched;
    void *device;
};

static fp8r_matrix lay_out(int64_t batch, int64_t rows, int64_t cols, int32_t dtype, struct layout layout)
{
    const int64_t step = layout.step ? layout.step : 1;
    const int64_t inner = layout.rows_contiguous ? rows : cols, outer = layout.rows_contiguous ? cols : rows;
    const int64_t pitch = inner * step + layout.pad;
    return (fp8r_matrix){NULL,
                         dtype,
                         0,
                         batch,
                         rows,
                         cols,
                         outer * pitch,
                         layout.rows_contiguous ? step : pitch,
                         layout.rows_contiguous ? pitch : step};
}

static int64_t last_of(const fp8r_matrix *matrix)
{
    return (matrix->batch - 1) * matrix->batch_stride + (matrix->rows - 1) * matrix->row_stride +
           (matrix->cols - 1) * matrix->col_stride;
}

/* fp32 numbers of all kinds: many ordinary ones, zeros, dust, infinities, NaN of both signs. Rows 3 and 4 are
 * zeros. */
static float any_value(uint64_t bits, int64_t row)
{
    static const float special[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-140f, 448.0f, -464.0f, 1e30f, -1e-30f};
    uint32_t word = (uint32_t)(bits >> 32);
    float value;
    if (row == 3 || row == 4) return row == 3 ? 0.0f : -0.0f;
    if ((bits & 0x3F) == 0) return special[bits >> 6 & 7];
    if ((bits & 0xFFFF) == 1)
        word = 0x7F800000u | (word & 0x80000000u) | (bits & 0x10000 ? 0x400000u : 0);
    else
        word = (word & 0x807FFFFFu) | (118u + (uint32_t)(bits >> 20 & 15) + (uint32_t)(row % 5)) << 23;
    memcpy(&value, &word, sizeof value);
    return value;
}

static void put(unsigned char *data, int64_t at, int32_t dtype, uint64_t bits, int64_t row)
{
    const float value = any_value(bits, row);
    if (fp8r_dtype_is_fp8(dtype))
        data[at] = (unsigned char)(bits >> 8);
    else
        fp8r_store(data, at, dtype, value);
}

static void fill(struct buffer *buffer, uint64_t seed)
{
    const fp8r_matrix *it = &buffer->matrix;
    for (int64_t b = 0; b < it->batch; b++)
        for (int64_t r = 0; r < it->rows; r++)
            for (int64_t c = 0; c < it->cols; c++)
                put(buffer->start + buffer->offset_bytes,
                    b * it->batch_stride + r * it->row_stride + c * it->col_stride, it->dtype,
                    sample_random(&seed), r);
}

static void make(struct buffer *buffer, fp8r_matrix matrix, int64_t at)
{
    const size_t element = (size_t)fp8r_dtype_bytes(matrix.dtype);
    buffer->matrix = matrix;
    buffer->offset_bytes = GUARD + (size_t)at * element;
    buffer->size_bytes = buffer->offset_bytes + (size_t)(last_of(&matrix) + 1) * element + GUARD;
    buffer->start = malloc(buffer->size_bytes);
    buffer->host = malloc(buffer->size_bytes);
    buffer->fetched = malloc(buffer->size_bytes);
    assert_true(buffer->start && buffer->host && buffer->fetched);
    memset(buffer->start, 0x7F, buffer->size_bytes);
    gpu_check("cudaMalloc", cudaMalloc(&buffer->device, buffer->size_bytes));
}

static void send(struct buffer *buffer)
{
    memcpy(buffer->host, buffer->start, buffer->size_bytes);
    gpu_check("gpu_memory_put",
              gpu_memory_put(buffer->device, buffer->start, buffer->size_bytes));
}

static fp8r_matrix on_host(const struct buffer *buffer)
{
    fp8r_matrix matrix = buffer->matrix;
    matrix.data = buffer->host ? buffer->host + buffer->offset_bytes : NULL;
    return matrix;
}

static fp8r_matrix on_device(const struct buffer *buffer)
{
    fp8r_matrix matrix = buffer->matrix;
    matrix.data = buffer->device ? (unsigned char *)buffer->device + buffer->offset_bytes : NULL;
    return matrix;
}

static void compare(struct buffer *buffer, const struct job *job, const char *what)
{
    gpu_check("cudaMemcpy",
              cudaMemcpy(buffer->fetched, buffer->device, buffer->size_bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < buffer->size_bytes; i++)
        if (buffer->fetched[i] != buffer->host[i])
            fail_msg("%s, %lld x %lld x %lld, types %d -> %d, scale extents %d, scaling %d: byte %lld of %s "
                     "is 0x%02x, wanted "
                     "0x%02x",
                     job->name, (long long)job->batch, (long long)job->rows, (long long)job->cols,
                     (int)job->in_dtype, (int)job->out_dtype, job->scale_extents, (int)job->scaling,
                     (long long)i - (long long)buffer->offset_bytes, what, buffer->fetched[i],
                     buffer->host[i]);
}

static void convert(const struct job *job, const struct buffer buffers[BUFFERS])
{
    const fp8r_matrix host[] = {on_host(&buffers[IN]), on_host(&buffers[OUT]), on_host(&buffers[SCALE])};
    const fp8r_matrix device[] = {on_device(&buffers[IN]), on_device(&buffers[OUT]),
                                  on_device(&buffers[SCALE])};
    fp8r_status on_cpu, on_gpu;
    if (job->out_dtype == FP8R_DTYPE_E4M3) {
        on_cpu = fp8r_quantize(cpu, &host[IN], &host[OUT], &host[SCALE], job->scaling, NULL);
        on_gpu = fp8r_cuda_quantize(&facts, 0, &device[IN], &device[OUT], &device[SCALE], job->scaling, NULL);
    } else {
        on_cpu = fp8r_dequantize(cpu, &host[IN], &host[SCALE], &host[OUT], NULL);
        on_gpu = fp8r_cuda_dequantize(&facts, 0, &device[IN], &device[SCALE], &device[OUT], NULL);
    }
    if (on_cpu != FP8R_OK || on_gpu != FP8R_OK) fail_msg("%s: %s", job->name, fp8r_last_error());
}

static void drop(struct buffer *buffer)
{
    free(buffer->start);
    free(buffer->host);
    free(buffer->fetched);
    gpu_check("cudaFree", cudaFree(buffer->device));
}

static void run(const struct job *job)
{
    struct buffer buffers[BUFFERS] = {{.offset_bytes = 0}};
    const int64_t extents[] = {job->scale_extents & 1 ? job->batch : 1,
                               job->scale_extents & 2 ? job->rows : 1,
                               job->scale_extents & 4 ? job->cols : 1};
    make(&buffers[IN], lay_out(job->batch, job->rows, job->cols, job->in_dtype, job->in), job->in.at);
    make(&buffers[OUT], lay_out(job->batch, job->rows, job->cols, job->out_dtype, job->out), job->out.at);
    fill(&buffers[IN], job->seed);
    if (!(job->scale_extents & 8))
        make(&buffers[SCALE],
             lay_out(extents[0], extents[1], extents[2], FP8R_DTYPE_FP32, (struct layout){.step = 2}), 0);
    for (int64_t i = 0; buffers[SCALE].start && i <= last_of(&buffers[SCALE].matrix); i++)
        ((float *)(void *)(buffers[SCALE].start + GUARD))[i] = 0.037f * (float)(i + 1);
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].start) send(&buffers[i]);
    convert(job, buffers);
    compare(&buffers[OUT], job, "out");
    compare(&buffers[IN], job, "in");
    if (buffers[SCALE].start) compare(&buffers[SCALE], job, "scale");
    runs++;
    for (int i = 0; i < BUFFERS; i++)
        drop(&buffers[i]);
}

static const struct {
    const char *name;
    struct layout in, out;
} layouts[] = {
    {"packed", {0}, {0}},
    {"padded", {.pad = 24}, {.pad = 8}},
    {"odd pitches", {.pad = 3}, {.pad = 5}},
    {"odd starts", {.at = 1}, {.at = 3}},
    {"apart", {.step = 3}, {.step = 2}},
    {"rows contiguous", {.rows_contiguous = true}, {.rows_contiguous = true, .pad = 1}},
    {"mixed", {.rows_contiguous = true, .pad = 2}, {.pad = 4, .at = 4}},
};

/* Captured as the first thing a context does, through the public call; scales are gathered in place, and must
 * start anew at each replay. */
static void replayed(void **state)
{
    enum { ROWS = 40, COLS = 96 };
    static float values[ROWS * COLS];
    const fp8r_matrix in = {NULL, FP8R_DTYPE_FP32, 0, 1, ROWS, COLS, 0, COLS, 1};
    fp8r_matrix from = in, to = in, scale = {NULL, FP8R_DTYPE_FP32, 0, 1, 1, 1, 0, 0, 0};
    fp8r_context *context;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    char *memory;
    (void)state;
    const fp8r_context_options options = {.struct_size = sizeof options,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    assert_int_equal(fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, &options, &context), FP8R_OK);
    gpu_check("cudaMalloc", cudaMalloc((void **)&memory, sizeof values + sizeof values / 4 + sizeof(float)));
    from.data = memory, to.data = memory + sizeof values, scale.data = memory + sizeof values / 4 * 5;
    to.dtype = FP8R_DTYPE_E4M3;
    gpu_check("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    gpu_check("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_int_equal(fp8r_quantize(context, &from, &to, &scale, FP8R_SCALING_COMPUTE, stream), FP8R_OK);
    gpu_check("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
    gpu_check("cudaGraphInstantiate", cudaGraphInstantiate(&executable, graph, 0));
    for (int turn = 0; turn < 3; turn++) { /* smaller from turn to turn */
        const float largest = 448.0f * (float)(3 - turn);
        float got;
        for (int i = 0; i < ROWS * COLS; i++)
            values[i] = i == 1234 ? -largest : (float)(i % 7);
        gpu_check("gpu_memory_put", gpu_memory_put(memory, values, sizeof values));
        gpu_check("cudaGraphLaunch", cudaGraphLaunch(executable, stream));
        gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(stream));
        gpu_check("cudaMemcpy", cudaMemcpy(&got, scale.data, sizeof got, cudaMemcpyDeviceToHost));
        assert_true(got == (float)(3 - turn));
    }
    gpu_check("cudaGraphExecDestroy", cudaGraphExecDestroy(executable));
    gpu_check("cudaGraphDestroy", cudaGraphDestroy(graph));
    gpu_check("cudaStreamDestroy", cudaStreamDestroy(stream));
    gpu_check("cudaFree", cudaFree(memory));
    fp8r_context_destroy(context);
}

static const int32_t wide[] = {FP8R_DTYPE_BF16, FP8R_DTYPE_FP16, FP8R_DTYPE_FP32};

static void every_granularity(void **state)
{
    (void)state;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        for (int d = 0; d < 3; d++)
            for (int extents = 0; extents < 8; extents++)
                for (int32_t scaling = 0; scaling < 2; scaling++)
                    run(&(struct job){layouts[l].name, wide[d], FP8R_DTYPE_E4M3, scaling, 2, 37, 300, extents,
                                      layouts[l].in, layouts[l].out, (uint64_t)(extents + 1)});
}

/* Widths around what a thread, a warp and a block hold. */
static void every_width(void **state)
{
    static const int64_t widths[] = {1,     2,     3,     4,     7,     8,     9,    511,
                                     512,   513,   1016,  1024,  1076,  1368,  3420, 4096,
                                     14336, 16384, 28672, 32768, 32776, 40001, 65536};
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int d = 0; d < 3; d++)
            for (int extents = 0; extents < 3; extents += 2)
                run(&(struct job){"packed",
                                  wide[d],
                                  FP8R_DTYPE_E4M3,
                                  FP8R_SCALING_COMPUTE,
                                  1,
                                  6,
                                  widths[w],
                                  extents,
                                  {0},
                                  {0},
                                  w});
}

/* Every fp16 and bf16 number, and codes back. */
static void every_code(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        uint16_t *in = malloc(65536 * sizeof *in);
        uint8_t wanted[65536], got[65536];
        float one = 1.0f;
        void *memory;
        assert_non_null(in);
        for (int i = 0; i < 65536; i++)
            in[i] = (uint16_t)i;
        gpu_check("cudaMalloc", cudaMalloc(&memory, 65536 * 3 + 4));
        gpu_check("gpu_memory_put", gpu_memory_put(memory, in, 65536 * 2));
        gpu_check("gpu_memory_put", gpu_memory_put((char *)memory + 65536 * 3, &one, 4));
        fp8r_matrix from = {in, wide[d], 0, 1, 256, 256, 0, 256, 1},
                    to = {wanted, FP8R_DTYPE_E4M3, 0, 1, 256, 256, 0, 256, 1};
        fp8r_matrix scale = {&one, FP8R_DTYPE_FP32, 0, 1, 1, 1, 0, 0, 0};
        assert_int_equal(fp8r_quantize(cpu, &from, &to, &scale, FP8R_SCALING_GIVEN, NULL), FP8R_OK);
        from.data = memory, to.data = (char *)memory + 65536 * 2, scale.data = (char *)memory + 65536 * 3;
        assert_int_equal(fp8r_cuda_quantize(&facts, 0, &from, &to, &scale, FP8R_SCALING_GIVEN, NULL), FP8R_OK);
        gpu_check("cudaMemcpy", cudaMemcpy(got, to.data, 65536, cudaMemcpyDeviceToHost));
        assert_memory_equal(got, wanted, 65536);
        gpu_check("cudaFree", cudaFree(memory));
        free(in);
    }
}

static void and_back(void **state)
{
    (void)state;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        for (int d = 0; d < 3; d++)
            for (int extents = 0; extents <= 8; extents++)
                for (int32_t type = FP8R_DTYPE_E4M3; type <= FP8R_DTYPE_E5M2; type++)
                    run(&(struct job){layouts[l].name, type, wide[d], FP8R_SCALING_GIVEN, 2, 37, 300, extents,
                                      layouts[l].in, layouts[l].out, (uint64_t)(extents + 1)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replayed),   cmocka_unit_test(every_granularity), cmocka_unit_test(every_width),
        cmocka_unit_test(every_code), cmocka_unit_test(and_back),
    };
    facts = gpu_facts();
    cpu = plain_context(1);
    if (fp8r_cuda_quantize_load() != FP8R_OK) return 1;
    const int failed = cmocka_run_group_tests_name("gpu quantize", tests, NULL, NULL);
    fp8r_context_destroy(cpu);
    printf("%ld conversions\n", runs);
    return failed;
}
