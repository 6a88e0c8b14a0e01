/* Every sm90 configuration against a double-precision reference on the device, element by element: integers
 * exactly, random data within a bound, results of one numerics class bit for bit, nothing written outside of
 * out.
 *
 *     check_sm90 [--alone] [PROBLEM...]      problem text as in docs/grammar.md; default: the list below
 *
 * --alone: only configurations whose blocks exchange no sums. racecheck takes the writes of the others into a
 * neighbour's shared memory for writes into a block that may have ended: it does not see that the neighbour
 * waits for them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/sm90/sm90.h"

extern "C" {
#include "base/dtype.h"
#include "problem/problem.h"
}

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                \
            exit(4);                                                                                         \
        }                                                                                                    \
    } while (0)

static const char *const default_cases[] = {
    "1x4096x4096:static",
    "1x64x128",
    "2x80x144:fp32:bias=fp32",
    "3x200x4112:bias",
    "5x1000x1040:fp16:bias=fp16",
    "8x6144x1024:static",
    "9x333x2064:ldo=340",
    "16x4096x14336:static",
    "17x1001x512:fp32",
    "23x132x3088:precise",
    "24x528x1152:a=e5m2",
    "31x777x4096:tensor:bias=fp32",
    "32x2048x2048:precise:static",
    "33x516x640:sa=row:sb=tensor",
    "48x1024x4096:fp16:static",
    "50x999x1552:a=e5m2:precise:bias",
    "64x5376x3584:static",
    "65x640x2176:sa=tensor:sb=row",
    "70x1300x1040:bias",
    "80x1300x400:fp32:ldo=1312",
    "96x4096x4096:bias:static",
    "97x257x8208:precise",
    "127x2000x1280:fp16:bias=fp32",
    "128x4096x2048:static",
    "129x1100x1024:bias",
    "136x2304x1152:fp16:bias=fp32",
    "192x1536x2048:static",
    "200x900x752:a=e5m2",
    "255x4104x656:fp32:bias",
    "256x2048x4096:static:bias",
    "257x1040x1152:precise",
    "264x1999x1168:fp32:ldo=2001",
    "300x777x2064:ldo=779",
    "383x3000x640:precise:a=e5m2:fp16",
    "512x5376x1024:static",
    "513x1999x1168:fp32:ldo=2001",
    "1000x1504x896:fp16:bias=bf16",
    "1025x2050x384:bias",
    "2048x2304x512:static",
    "2049x1792x512:precise:bias",
    "2049x3584x1408:precise",
    "4097x2100x128:precise",
    "1025x3600x256:precise:a=e5m2:fp16:bias=fp16",
    "4100x520x256:lda=512:ldb=384:ldo=1024",
    "3*1x512x1024:sb=batch:sa=batch",
    "128*4x128x512:tensor",
    "5*17x200x272:bias=fp32:fp32",
    "4*130x520x640:fp16:static",
    "3*257x300x1168:sa=batch:sb=row:precise",
    "7*300x136x512:static:tensor",
    "1x3x16",
    "2x1x16:fp32",
    "300x5x48:fp32",
    "64x28672x4096:static",
    "16x21504x5376",
    "256x28672x512:static",
    "100x1040x1424:static",
    "190x2000x2064:static:bias",
    /* Rows that the copy engine does not take. */
    "16x1280x3420:static",
    "1x4096x3420",
    "256x1280x3420:bias",
    "1024x4096x3420",
    "129x640x3420:precise:fp16:bias=fp16",
    "3x100x3419:precise",
    "300x777x3419:a=e5m2",
    "65x333x17",
    "130x257x17:fp32",
    "1x5x1",
    "2x3x15:precise",
    "7x64x127",
    "300x129x129:a=e5m2:precise",
    "33x130x1000:align=1",
    "64x96x2048:align=8:precise",
    "66x96x2048:align=2",
    "200x520x640:align=4:lda=700:ldb=644",
    "17x1001x513:lda=520:ldb=519:align=1",
    "3*70x300x1170:tensor",
    "5*9x65x3:fp32",
    /* That it takes by eights. */
    "129x640x3418:ldb=3420:fp16:bias=fp16",
    "33x96x1004:fp32:bias=fp32",
    "5x64x132:align=4",
    "70x160x1000:lda=1008:ldb=1004:align=4",
    "70x160x1004:lda=1008",
    "2*70x96x1004:tensor",
    "300x288x300",
    "513x992x516:bias:ldo=999",
    "257x320x3420:static",
    "17x1024x20",
    "1x32x36",
    "65x72x1012:align=4",
    "65x136x1028:align=4",
    "17x200x2036:align=4",
    "64x88x252",
    "300x1288x4484:align=4",
    "513x264x1004:align=4:bias",
    "16x64x3417:lda=3419:ldb=3420:align=1",
    "3*7x64x900:tensor:align=4",
    "40x72x1021:align=2:ldb=1028",
    "100x64x96:align=4",
    "200x224x777:ldb=788",
};

/* ---- Data
 * -------------------------------------------------------------------------------------------------------- */

enum data_kind { DATA_INTEGERS, DATA_RANDOM, DATA_NAN, DATA_KINDS };
static const char *const data_names[] = {"integers", "random", "nan"};

static __host__ __device__ uint32_t hash(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xFF51AFD7ED558CCDull;
    x ^= x >> 33;
    x *= 0xC4CEB9FE1A85EC53ull;
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

static __device__ uint8_t code_of(bool e5m2, int kind, uint64_t index)
{
    const uint32_t h = hash(index);
    if (kind == DATA_INTEGERS) {
        const uint8_t one = e5m2 ? 0x3C : 0x38, magnitude[5] = {0, one, 0x40, one, 0x40};
        const uint32_t v = h % 5;
        return (uint8_t)(magnitude[v] | (v > 2 ? 0x80 : 0));
    }
    if (e5m2) return (uint8_t)((h & 0x80) | (12 + (h >> 8) % 5) << 2 | (h >> 16 & 3));
    return (uint8_t)((h & 0x80) | (3 + (h >> 8) % 7) << 3 | (h >> 16 & 7));
}

/* An operand in memory: rows of k codes; from one row and one matrix to the next. */
struct rows {
    int64_t k, rows, row_stride, batch_stride;
};

/* What is no code of a row is NaN: a kernel must not let it matter. */
static __global__ void fill_codes(uint8_t *data, int64_t count, struct rows rows, bool e5m2, int kind, uint64_t seed)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t in_matrix = rows.batch_stride > 0 ? i % rows.batch_stride : i;
        const bool inside = in_matrix / rows.row_stride < rows.rows && in_matrix % rows.row_stride < rows.k;
        data[i] = inside ? code_of(e5m2, kind, i + (seed << 40)) : 0x7F;
    }
}

static __global__ void fill_scales(float *data, int64_t count, uint64_t seed)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        data[i] = 0.25f + (float)(hash(i + (seed << 40)) >> 8) / 16777216.0f;
}

static __device__ void store_as(void *data, int dtype, int64_t index, float value)
{
    if (dtype == FP8R_DTYPE_BF16)
        ((__nv_bfloat16 *)data)[index] = __float2bfloat16_rn(value);
    else if (dtype == FP8R_DTYPE_FP16)
        ((__half *)data)[index] = __float2half_rn(value);
    else
        ((float *)data)[index] = value;
}

static __device__ float load_as(const void *data, int dtype, int64_t index)
{
    if (dtype == FP8R_DTYPE_BF16) return __bfloat162float(((const __nv_bfloat16 *)data)[index]);
    if (dtype == FP8R_DTYPE_FP16) return __half2float(((const __half *)data)[index]);
    return ((const float *)data)[index];
}

static __global__ void fill_bias(void *data, int dtype, int64_t count)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        store_as(data, dtype, i, 8.0f * ((float)(hash(i + (77ull << 40)) >> 8) / 16777216.0f - 0.5f));
}

/* ---- Reference and comparison
 * ------------------------------------------------------------------------------------ */

static __device__ float decode(bool e5m2, uint8_t code)
{
    if (e5m2) {
        __nv_fp8_e5m2 value;
        value.__x = code;
        return float(value);
    }
    __nv_fp8_e4m3 value;
    value.__x = code;
    return float(value);
}

/* sums and sums of magnitudes, [batch][m][n]. */
static __global__ void reference(fp8r_problem p, const uint8_t *a, const uint8_t *b, double *sums,
                                 double *magnitudes)
{
    const int64_t n = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, m = blockIdx.y, i = blockIdx.z;
    if (n >= p.n) return;
    const uint8_t *ar = a + i * p.a.batch_stride + m * p.a.row_stride,
                  *br = b + i * p.b.batch_stride + n * p.b.col_stride;
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < p.k; ++k) {
        const float product = decode(p.a.dtype == FP8R_DTYPE_E5M2, ar[k]) * decode(false, br[k]);
        sum += product;
        magnitude += fabsf(product);
    }
    sums[(i * p.m + m) * p.n + n] = sum;
    magnitudes[(i * p.m + m) * p.n + n] = magnitude;
}

struct verdict {
    unsigned long long wrong, first; /* count; index of the first */
    float got, want;
};

struct data {
    uint8_t *a, *b;
    float *scale_a, *scale_b;
    void *bias, *out;
    double *sums, *magnitudes;
};

static __device__ void blame(struct verdict *verdict, int64_t index, float got, float want)
{
    atomicAdd(&verdict->wrong, 1);
    if (atomicMin(&verdict->first, (unsigned long long)index) > (unsigned long long)index) {
        verdict->got = got;
        verdict->want = want;
    }
}

/* All elements of out's rows, gaps between rows included: those must still be poison. */
static __global__ void compare(fp8r_problem p, struct data d, bool exact, double tolerance,
                               struct verdict *verdict)
{
    const int64_t n = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, m = blockIdx.y, i = blockIdx.z;
    const int64_t pitch = p.m > 1 ? p.out.row_stride : p.n;
    if (n >= pitch) return;
    const int64_t at = i * p.out.batch_stride + m * p.out.row_stride + n;
    const float got = load_as(d.out, p.out.dtype, at);
    if (n >= p.n) {
        const bool poison = p.out.dtype == FP8R_DTYPE_FP32 ? ((const uint32_t *)d.out)[at] == 0xFFFFFFFFu
                                                           : ((const uint16_t *)d.out)[at] == 0xFFFFu;
        if (!poison) blame(verdict, at, got, -1.0f);
        return;
    }
    const int64_t index = (i * p.m + m) * p.n + n;
    const float scale_b =
        p.scale_b.dtype ? d.scale_b[i * p.scale_b.batch_stride + n * p.scale_b.col_stride] : 1.0f;
    const float scale_a =
        p.scale_a.dtype ? d.scale_a[i * p.scale_a.batch_stride + m * p.scale_a.row_stride] : 1.0f;
    float want = __fmul_rn(__fmul_rn((float)d.sums[index], scale_b), scale_a);
    if (p.bias.dtype != FP8R_DTYPE_NONE)
        want =
            __fadd_rn(want, load_as(d.bias, p.bias.dtype, i * p.bias.batch_stride + n * p.bias.col_stride));
    if (isnan(want)) {
        if (!isnan(got)) blame(verdict, at, got, want);
        return;
    }
    float rounded = want;
    if (p.out.dtype == FP8R_DTYPE_BF16)
        rounded = __bfloat162float(__float2bfloat16_rn(want));
    else if (p.out.dtype == FP8R_DTYPE_FP16)
        rounded = __half2float(__float2half_rn(want));
    if (exact) {
        if (!(got == rounded)) blame(verdict, at, got, rounded);
        return;
    }
    /* Both sides are rounded: next to a border by a whole step. */
    const double unit = p.out.dtype == FP8R_DTYPE_BF16   ? 1.0 / 128
                        : p.out.dtype == FP8R_DTYPE_FP16 ? 1.0 / 1024
                                                         : 1e-6;
    const double slack =
        tolerance * d.magnitudes[index] * scale_a * scale_b + unit * fabs((double)want) + 1e-6;
    if (!(fabs((double)got - (double)rounded) <= slack) && !(isinf(rounded) && got == rounded))
        blame(verdict, at, got, rounded);
}

static __global__ void compare_bits(const uint8_t *x, const uint8_t *y, int64_t count,
                                    struct verdict *verdict)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        if (x[i] != y[i]) blame(verdict, i, x[i], y[i]);
}

/* ---- Cases
 * ------------------------------------------------------------------------------------------------------- */

static int failures, runs;
static int by_config[256][2]; /* runs, failures */
static bool only_alone;

static void *device_bytes(int64_t bytes)
{
    void *memory;
    CHECK(cudaMalloc(&memory, (size_t)bytes + 256));
    return memory;
}

/* NaN in front of an operand, and behind a: b ends with its memory, so that memcheck sees what reads on. */
enum { GUARD_BYTES = 256 };

/* Where an operand that is aligned to so much only begins behind a guard. */
static int64_t offset_of(int align_bytes, int times)
{
    return GUARD_BYTES + (align_bytes < GUARD_BYTES ? align_bytes * times : 0);
}

static int64_t extent(int64_t batch, int64_t batch_stride, int64_t rows, int64_t row_stride, int64_t columns)
{
    return (batch - 1) * batch_stride + (rows - 1) * row_stride + columns;
}

static void report(const char *text, const char *config, const char *what, const struct verdict *verdict)
{
    ++failures;
    printf("WRONG %s %s %s: %llu elements, first at %llu: got %g, want %g\n", text, config, what,
           verdict->wrong, verdict->first, (double)verdict->got, (double)verdict->want);
}

static struct verdict judge(struct verdict *on_device)
{
    struct verdict verdict;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&verdict, on_device, sizeof verdict, cudaMemcpyDeviceToHost));
    return verdict;
}

static void reset(struct verdict *on_device)
{
    const struct verdict none = {0, ~0ull, 0, 0};
    CHECK(cudaMemcpy(on_device, &none, sizeof none, cudaMemcpyHostToDevice));
}

/* A kernel that hangs would take the machine with it: give up after five seconds. */
static cudaError_t wait_for_kernel()
{
    for (int i = 0; i < 50000; ++i) {
        const cudaError_t error = cudaStreamQuery(NULL);
        if (error != cudaErrorNotReady) return error;
        usleep(100);
    }
    return cudaErrorLaunchTimeout;
}

static void run_configs(const char *text, const fp8r_device_facts *device, const fp8r_problem *problem,
                        struct data *data, int64_t out_bytes, enum data_kind kind, struct verdict *on_device)
{
    const char *classes[64];
    void *outs[64];
    int class_count = 0;
    const fp8r_pointers pointers = {sizeof pointers,
                                    problem->m,
                                    data->a,
                                    data->b,
                                    data->out,
                                    problem->scale_a.dtype ? data->scale_a : NULL,
                                    problem->scale_b.dtype ? data->scale_b : NULL,
                                    problem->bias.dtype ? data->bias : NULL};
    const dim3 grid(
        (unsigned)((problem->out.row_stride > problem->n ? problem->out.row_stride : problem->n) / 128 + 1),
        (unsigned)problem->m, (unsigned)problem->batch);
    const bool precise = problem->accumulation == FP8R_ACCUMULATE_PRECISE;
    /* The accumulator keeps 13 bits and truncates at every step of 32; promoted, only inside 128. */
    const double tolerance = precise ? 1.0 / 512 : (1.0 + (double)problem->k / 2048) / 512;
    for (int config = 0; config < fp8r_sm90_config_count; ++config) {
        fp8r_reason reason;
        struct fp8r_sm90_plan plan;
        const char *name = fp8r_sm90_configs[config].name;
        if (only_alone && fp8r_sm90_configs[config].split > 1) continue;
        if (!fp8r_sm90_supports(device, problem, config, &reason)) continue;
        if (fp8r_sm90_prepare(device, problem, config, &plan) != FP8R_OK) {
            ++failures;
            printf("WRONG %s %s does not prepare: %s\n", text, name, fp8r_last_error());
            continue;
        }
        CHECK(cudaMemset(data->out, 0xFF, out_bytes));
        reset(on_device);
        const size_t needed = fp8r_sm90_workspace(problem, config);
        void *workspace = NULL;
        if (needed) {
            CHECK(cudaMalloc(&workspace, needed));
            CHECK(cudaMemset(workspace, 0x7F, needed));
        }
        const fp8r_status status = fp8r_sm90_launch(&plan, problem, &pointers, workspace, NULL);
        const cudaError_t error = wait_for_kernel();
        if (error == cudaSuccess) CHECK(cudaFree(workspace));
        ++runs;
        ++by_config[config][0];
        if (status != FP8R_OK || error != cudaSuccess) {
            printf("WRONG %s %s: %s, %s\n", text, name, fp8r_last_error(), cudaGetErrorString(error));
            fflush(stdout);
            _exit(1);
        }
        compare<<<grid, 128>>>(*problem, *data, kind == DATA_INTEGERS, tolerance, on_device);
        struct verdict verdict = judge(on_device);
        if (verdict.wrong) {
            ++by_config[config][1];
            report(text, name, data_names[kind], &verdict);
        }
        const char *numerics = fp8r_sm90_class(device, problem, config);
        int known = 0;
        while (known < class_count && strcmp(classes[known], numerics) != 0)
            ++known;
        if (known == class_count) {
            classes[class_count] = numerics;
            outs[class_count] = device_bytes(out_bytes);
            CHECK(cudaMemcpy(outs[class_count++], data->out, out_bytes, cudaMemcpyDeviceToDevice));
        } else {
            reset(on_device);
            compare_bits<<<512, 256>>>((const uint8_t *)data->out, (const uint8_t *)outs[known], out_bytes,
                                       on_device);
            verdict = judge(on_device);
            if (verdict.wrong) {
                ++by_config[config][1];
                report(text, name, numerics, &verdict);
            }
        }
    }
    for (int i = 0; i < class_count; ++i)
        CHECK(cudaFree(outs[i]));
}

static void run_case(const char *text, const fp8r_device_facts *device)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    if (fp8r_matmul_parse(text, &matmul) != FP8R_OK ||
        fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product) != FP8R_OK) {
        printf("%s: %s\n", text, fp8r_last_error());
        exit(2);
    }
    const fp8r_problem *p = &product.problem;
    const int64_t a_bytes = extent(p->batch, p->a.batch_stride, p->m, p->a.row_stride, p->k);
    const int64_t b_bytes = extent(p->batch, p->b.batch_stride, p->n, p->b.col_stride, p->k);
    const int64_t out_bytes = extent(p->batch, p->out.batch_stride, p->m, p->out.row_stride,
                                     p->out.row_stride > p->n ? p->out.row_stride : p->n) *
                              fp8r_dtype_bytes(p->out.dtype);
    const int64_t scales_a = p->batch * p->m, scales_b = p->batch * p->n, elements = p->batch * p->m * p->n;
    const int64_t a_offset = offset_of(p->a.align_bytes, 1), b_offset = offset_of(p->b.align_bytes, 3);
    uint8_t *a_memory, *b_memory;
    CHECK(cudaMalloc(&a_memory, a_offset + a_bytes + GUARD_BYTES));
    CHECK(cudaMalloc(&b_memory, b_offset + b_bytes));
    CHECK(cudaMemset(a_memory, 0x7F, a_offset + a_bytes + GUARD_BYTES));
    CHECK(cudaMemset(b_memory, 0x7F, b_offset));
    const struct rows a_rows = {p->k, p->m, p->a.row_stride, p->a.batch_stride},
                      b_rows = {p->k, p->n, p->b.col_stride, p->b.batch_stride};
    struct data data = {a_memory + a_offset,                  b_memory + b_offset,
                        (float *)device_bytes(4 * scales_a),  (float *)device_bytes(4 * scales_b),
                        device_bytes(4 * scales_b),           device_bytes(out_bytes),
                        (double *)device_bytes(8 * elements), (double *)device_bytes(8 * elements)};
    struct verdict *verdict = (struct verdict *)device_bytes(sizeof *verdict);
    fill_scales<<<64, 256>>>(data.scale_a, scales_a, 5);
    fill_scales<<<64, 256>>>(data.scale_b, scales_b, 6);
    if (p->bias.dtype) fill_bias<<<64, 256>>>(data.bias, p->bias.dtype, scales_b);
    for (int kind = 0; kind < DATA_KINDS; ++kind) {
        fill_codes<<<1024, 256>>>(data.a, a_bytes, a_rows, p->a.dtype == FP8R_DTYPE_E5M2, kind, 1);
        fill_codes<<<1024, 256>>>(data.b, b_bytes, b_rows, false, kind, 2);
        if (kind == DATA_NAN) {
            CHECK(cudaMemset(data.a + (p->m / 2) * p->a.row_stride + p->k - 1, 0x7F, 1));
            CHECK(cudaMemset(data.b + (p->n / 3) * p->b.col_stride + p->k / 2, 0xFF, 1));
        }
        reference<<<dim3((unsigned)(p->n / 128 + 1), (unsigned)p->m, (unsigned)p->batch), 128>>>(
            *p, data.a, data.b, data.sums, data.magnitudes);
        CHECK(cudaDeviceSynchronize());
        run_configs(text, device, p, &data, out_bytes, (enum data_kind)kind, verdict);
    }
    void *const all[] = {a_memory, b_memory,  data.scale_a,    data.scale_b, data.bias,
                         data.out, data.sums, data.magnitudes, verdict};
    for (void *memory : all)
        CHECK(cudaFree(memory));
}

int main(int argc, char **argv)
{
    cudaDeviceProp properties;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("skipped: there is no GPU");
        return 77;
    }
    CHECK(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9) {
        puts("skipped: the kernels are for compute capability 9.0");
        return 77;
    }
    fp8r_device_facts device = {};
    device.struct_size = sizeof device;
    device.kind = FP8R_DEVICE_CUDA;
    device.arch = 10 * properties.major + properties.minor;
    device.sm_count = properties.multiProcessorCount;
    device.l2_bytes = properties.l2CacheSize;
    only_alone = argc > 1 && strcmp(argv[1], "--alone") == 0;
    if (argc > 1 + only_alone) {
        for (int i = 1 + only_alone; i < argc; ++i)
            run_case(argv[i], &device);
    } else {
        for (const char *text : default_cases)
            run_case(text, &device);
    }
    for (int config = 0; config < fp8r_sm90_config_count; ++config)
        if (by_config[config][1] || !by_config[config][0])
            printf("%-20s %d runs, %d wrong\n", fp8r_sm90_configs[config].name, by_config[config][0],
                   by_config[config][1]);
    printf("%s: %d runs, %d failures\n", properties.name, runs, failures);
    return failures ? 1 : 0;
}
