/* Speed of the portable CUDA row and of the quantiser: a graph a candidate over rotating operands, rounds
 * interleaved, the median and what the middle half of the rounds spans. One JSON line a candidate.
 *
 *     bench_cuda products|quantiser ROUNDS [PROBLEM...]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/quantize.h"
#include "base/dtype.h"
#include "problem/problem.h"

extern const fp8r_backend fp8r_backend_cuda;

enum { MOST_ROUNDS = 101, MOST_COPIES = 64, CANDIDATES = 4, OPERANDS = 5, NOISE_BYTES = 1 << 26 };

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const int error_ = (int)(call);                                                                      \
        if (error_ != 0) {                                                                                   \
            fprintf(stderr, "%s: %s; %s\n", #call, cudaGetErrorString((cudaError_t)error_),                  \
                    fp8r_last_error());                                                                      \
            exit(4);                                                                                         \
        }                                                                                                    \
    } while (0)

static fp8r_device_facts facts;
static cudaStream_t stream;
static unsigned char *noise; /* random codes on the host, none of them NaN as e4m3 or e5m2 */

struct candidate {
    char name[64];
    cudaGraphExec_t graph;
    int launches;
    int round_count;
    double us[MOST_ROUNDS]; /* a launch */
};

/* ---- Memory ---- */

static void make_noise(void)
{
    unsigned state = 1;
    noise = malloc(NOISE_BYTES);
    if (!noise) exit(6);
    for (int i = 0; i < NOISE_BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        noise[i] = (unsigned char)(state >> 24 & 0xBF); /* exponents of ordinary size */
    }
}

static void *device_noise(int64_t bytes)
{
    void *memory;
    CHECK(cudaMalloc(&memory, (size_t)bytes));
    for (int64_t at = 0; at < bytes; at += NOISE_BYTES) {
        const int64_t size = bytes - at < NOISE_BYTES ? bytes - at : NOISE_BYTES;
        CHECK(cudaMemcpy((char *)memory + at, noise, (size_t)size, cudaMemcpyHostToDevice));
    }
    return memory;
}

static int64_t span_bytes(const fp8r_operand *operand, int64_t batch, int64_t rows, int64_t cols)
{
    if (operand->dtype == FP8R_DTYPE_NONE) return 0;
    return ((batch - 1) * operand->batch_stride + (rows - 1) * operand->row_stride +
            (cols - 1) * operand->col_stride + 1) *
           fp8r_dtype_bytes(operand->dtype);
}

/* ---- Rounds ---- */

static void finish_capture(struct candidate *candidate)
{
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&candidate->graph, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphLaunch(candidate->graph, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static void time_rounds(struct candidate *candidates, int count, int rounds)
{
    cudaEvent_t start, stop;
    unsigned state = 7;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int round = 0; round < rounds; round++) {
        state = state * 1664525u + 1013904223u;
        for (int i = 0; i < count; i++) {
            struct candidate *it = &candidates[(i + (int)(state >> 20)) % count];
            float ms;
            CHECK(cudaEventRecord(start, stream));
            CHECK(cudaGraphLaunch(it->graph, stream));
            CHECK(cudaEventRecord(stop, stream));
            CHECK(cudaEventSynchronize(stop));
            CHECK(cudaEventElapsedTime(&ms, start, stop));
            it->us[it->round_count++] = (double)ms * 1e3 / it->launches;
        }
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double quantile(struct candidate *candidate, double at)
{
    qsort(candidate->us, (size_t)candidate->round_count, sizeof *candidate->us, by_value);
    return candidate->us[(int)(at * (candidate->round_count - 1) + 0.5)];
}

static void print_times(struct candidate *it)
{
    printf("\"us\": %.3f, \"us_quartiles\": [%.3f, %.3f], \"rounds\": %d", quantile(it, 0.5),
           quantile(it, 0.25), quantile(it, 0.75), it->round_count);
}

/* ---- Products ---- */

struct product {
    fp8r_problem problem;
    int64_t span[OPERANDS]; /* a, b, out, scale_a, scale_b; rounded up so that copies stay aligned */
    char *memory[OPERANDS];
    int copies, offset; /* offset: bytes that spoil the alignment */
};

static void prepare_product(const char *text, struct product *product)
{
    fp8r_matmul matmul;
    struct fp8r_product parsed;
    CHECK(fp8r_matmul_parse(text, &matmul));
    CHECK(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &parsed));
    const fp8r_problem *p = &parsed.problem;
    const int64_t spans[OPERANDS] = {
        span_bytes(&p->a, p->batch, p->m, p->k), span_bytes(&p->b, p->batch, p->k, p->n),
        span_bytes(&p->out, p->batch, p->m, p->n), span_bytes(&p->scale_a, p->batch, p->m, 1),
        span_bytes(&p->scale_b, p->batch, 1, p->n)};
    product->problem = *p;
    product->offset =
        p->a.align_bytes < 256 && p->a.row_stride != 1 ? (int)(uintptr_t)matmul.a.data % 256 : 0;
    const int64_t most = 5 * facts.l2_bytes / (spans[0] + spans[1] + 1) + 2;
    product->copies = most < 4 ? 4 : most > MOST_COPIES ? MOST_COPIES : (int)most;
    for (int i = 0; i < OPERANDS; i++) {
        product->span[i] = (spans[i] + 511) / 256 * 256;
        if (i < 3) {
            product->memory[i] = device_noise(product->span[i] * product->copies);
            continue;
        }
        CHECK(cudaMalloc((void **)&product->memory[i], (size_t)product->span[i]));
        CHECK(cudaMemset(product->memory[i], 0x3D,
                         (size_t)product->span[i])); /* 0.046: large enough, no overflow */
    }
}

static void queue_product(const struct product *product, int config, int copy)
{
    const int64_t spans[3] = {copy * product->span[0], copy * product->span[1], copy * product->span[2]};
    const fp8r_pointers pointers = {.struct_size = sizeof pointers,
                                    .m = product->problem.m,
                                    .a = product->memory[0] + spans[0] + product->offset,
                                    .b = product->memory[1] + spans[1] + product->offset,
                                    .out = product->memory[2] + spans[2],
                                    .scale_a = product->memory[3],
                                    .scale_b = product->memory[4]};
    CHECK(fp8r_backend_cuda.run(NULL, NULL, NULL, &product->problem, config, &pointers, NULL, 0, stream));
}

static int capture_products(const struct product *product, struct candidate *candidates)
{
    int count = 0;
    fp8r_reason reason;
    for (int config = 0; fp8r_backend_cuda.configs[config]; config++) {
        if (!fp8r_backend_cuda.supports(NULL, &facts, &product->problem, config, &reason)) continue;
        struct candidate *it = &candidates[count++];
        (void)snprintf(it->name, sizeof it->name, "%s", fp8r_backend_cuda.configs[config]);
        it->launches = product->copies;
        it->round_count = 0;
        CHECK(fp8r_backend_cuda.prepare(NULL, NULL, &facts, &product->problem, config, NULL));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int copy = 0; copy < product->copies; copy++)
            queue_product(product, config, copy);
        finish_capture(it);
    }
    return count;
}

static void bench_product(const char *text, int rounds)
{
    struct candidate candidates[CANDIDATES];
    struct product product;
    prepare_product(text, &product);
    const fp8r_problem *p = &product.problem;
    const int count = capture_products(&product, candidates);
    const char *picked = fp8r_backend_cuda.configs[fp8r_backend_cuda.pick(NULL, &facts, p)];
    time_rounds(candidates, count, rounds);
    for (int i = 0; i < count; i++) {
        const double us = quantile(&candidates[i], 0.5),
                     operations = 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
        printf("{\"problem\": \"%s\", \"config\": \"%s\", \"picked\": %s, \"tflops\": %.1f, \"weights_gbs\": "
               "%.0f, ",
               text, candidates[i].name, strcmp(picked, candidates[i].name) ? "false" : "true",
               operations / us * 1e-6, (double)product.span[1] / us * 1e-3);
        print_times(&candidates[i]);
        printf("}\n");
        CHECK(cudaGraphExecDestroy(candidates[i].graph));
    }
    for (int i = 0; i < OPERANDS; i++)
        CHECK(cudaFree(product.memory[i]));
}

/* ---- The quantiser beside a copy ---- */

struct conversion {
    const char *name;
    int32_t dtype;
    int64_t rows, cols, pitch;
    int scale_per_row;
};

static void bench_conversion(const struct conversion *it, int rounds)
{
    struct candidate candidates[2] = {{.launches = 2}, {.launches = 2}};
    const int64_t bytes = it->rows * it->pitch * 2,
                  copied = bytes / 4 * 3; /* read and write as many as the quantiser */
    char *in = device_noise(bytes), *out = device_noise(copied);
    float *scales;
    CHECK(cudaMalloc((void **)&scales, (size_t)it->rows * sizeof *scales));
    const fp8r_matrix from = {in, it->dtype, 0, 1, it->rows, it->cols, 0, it->pitch, 1};
    const fp8r_matrix to = {out, FP8R_DTYPE_E4M3, 0, 1, it->rows, it->cols, 0, it->pitch, 1};
    const fp8r_matrix scale = {scales, FP8R_DTYPE_FP32, 0, 1, it->scale_per_row ? it->rows : 1, 1, 0, 1, 1};
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 2; i++)
        CHECK(fp8r_cuda_quantize(&facts, 0, &from, &to, &scale, FP8R_SCALING_COMPUTE, stream));
    finish_capture(&candidates[0]);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 2; i++)
        CHECK(cudaMemcpyAsync(out, in, (size_t)copied, cudaMemcpyDeviceToDevice, stream));
    finish_capture(&candidates[1]);
    time_rounds(candidates, 2, rounds);
    const double moved = (double)it->rows * (double)it->cols * 3.0,
                 mine = moved / quantile(&candidates[0], 0.5);
    const double copy = 2.0 * (double)copied / quantile(&candidates[1], 0.5);
    printf("{\"quantise\": \"%s\", \"rows\": %lld, \"cols\": %lld, \"gbs\": %.0f, \"copy_gbs\": %.0f, "
           "\"over_copy\": %.3f, ",
           it->name, (long long)it->rows, (long long)it->cols, mine * 1e-3, copy * 1e-3, mine / copy);
    print_times(&candidates[0]);
    printf("}\n");
    for (int i = 0; i < 2; i++)
        CHECK(cudaGraphExecDestroy(candidates[i].graph));
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    CHECK(cudaFree(scales));
}

static void bench_conversions(int rounds)
{
    static const struct conversion cases[] = {
        {"bf16 rows", FP8R_DTYPE_BF16, 65536, 4096, 4096, 1},
        {"fp16 rows", FP8R_DTYPE_FP16, 65536, 4096, 4096, 1},
        {"bf16 rows", FP8R_DTYPE_BF16, 49152, 5376, 5376, 1},
        {"bf16 rows", FP8R_DTYPE_BF16, 32768, 14336, 14336, 1},
        {"bf16 rows", FP8R_DTYPE_BF16, 16384, 28672, 28672, 1},
        {"bf16 rows", FP8R_DTYPE_BF16, 4096, 65536, 65536, 1},
        {"bf16 rows", FP8R_DTYPE_BF16, 262144, 1024, 1024, 1},
        {"bf16 rows", FP8R_DTYPE_BF16, 98304, 3420, 3420, 1},
        {"bf16 rows, padded", FP8R_DTYPE_BF16, 65536, 4096, 4224, 1},
        {"bf16 tensor", FP8R_DTYPE_BF16, 65536, 4096, 4096, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bench_conversion(&cases[i], rounds);
}

static void read_facts(void)
{
    struct cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    facts = (fp8r_device_facts){.struct_size = sizeof facts,
                                .kind = FP8R_DEVICE_CUDA,
                                .arch = 10 * properties.major + properties.minor,
                                .sm_count = properties.multiProcessorCount,
                                .l2_bytes = properties.l2CacheSize,
                                .last_level_bytes = properties.l2CacheSize};
    printf("{\"device\": \"%s\", \"sm_count\": %d, \"l2_bytes\": %lld}\n", properties.name,
           (int)facts.sm_count, (long long)facts.l2_bytes);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 3 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_cuda products|quantiser ROUNDS(1..%d) [PROBLEM...]\n", MOST_ROUNDS);
        return 2;
    }
    read_facts();
    make_noise();
    CHECK(cudaStreamCreate(&stream));
    CHECK(fp8r_cuda_quantize_load());
    if (strcmp(argv[1], "quantiser") == 0) bench_conversions(rounds);
    for (int i = 3; i < argc; i++)
        bench_product(argv[i], rounds);
    return 0;
}
