/* Spread, gather, compare. A block a line of the matrix at a time; sizes and strides are 64 bits wide.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/judge_cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>

enum { THREADS = 256, BLOCKS_MOST = 1 << 16, COLUMNS = 2048 /* of a line, a block */ };

static unsigned blocks_for(int64_t lines)
{
    return (unsigned)(lines < 1 ? 1 : lines < BLOCKS_MOST ? lines : BLOCKS_MOST);
}

static int launch(const void *kernel, unsigned blocks, void **parameters, void *stream)
{
    return (int)cudaLaunchKernel(kernel, dim3(blocks), dim3(THREADS), parameters, 0, (cudaStream_t)stream);
}

/* ---- Spread ---- */

struct spread_args {
    const uint8_t *codes;
    int64_t lines, count;            /* a batch item; elements of a line */
    int64_t batch_stride, line_stride, stride;
    int64_t all;                     /* lines of all items */
    bool is_e5m2;
    float *to;
};

static __device__ float decode(uint8_t code, bool is_e5m2)
{
    const __half_raw half = __nv_cvt_fp8_to_halfraw(code, is_e5m2 ? __NV_E5M2 : __NV_E4M3);
    return __half2float(*(const __half *)&half);
}

static __global__ void spread(const __grid_constant__ spread_args args)
{
    __shared__ double parts[THREADS];
    for (int64_t line = blockIdx.x; line < args.all; line += gridDim.x) {
        const uint8_t *codes = args.codes + line / args.lines * args.batch_stride + line % args.lines * args.line_stride;
        double sum = 0;
        for (int64_t i = threadIdx.x; i < args.count; i += THREADS) {
            const float value = decode(codes[i * args.stride], args.is_e5m2), square = value * value;
            sum += (double)square * (double)square;
        }
        parts[threadIdx.x] = sum;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if ((int)threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) args.to[line] = (float)sqrt(sqrt(parts[0]));
        __syncthreads();
    }
}

extern "C" int fp8r_judge_cuda_spread(const fp8r_matrix *matrix, int64_t batch, int of_rows, float *to, void *stream)
{
    spread_args args = {};
    args.codes = (const uint8_t *)matrix->data;
    args.lines = of_rows ? matrix->rows : matrix->cols;
    args.count = of_rows ? matrix->cols : matrix->rows;
    args.batch_stride = matrix->batch > 1 ? matrix->batch_stride : 0;
    args.line_stride = of_rows ? matrix->row_stride : matrix->col_stride;
    args.stride = of_rows ? matrix->col_stride : matrix->row_stride;
    args.all = batch * args.lines;
    args.is_e5m2 = matrix->dtype == FP8R_DTYPE_E5M2;
    args.to = to;
    void *parameters[] = {&args};
    return launch((const void *)spread, blocks_for(args.all), parameters, stream);
}

/* ---- Gather ---- */

struct gather_args {
    const float *from;
    const int64_t *places;
    float *values;
    int64_t count;
};

static __global__ void gather(const __grid_constant__ gather_args args)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < args.count; i += step)
        args.values[i] = args.from[args.places[i]];
}

extern "C" int fp8r_judge_cuda_gather(const float *from, const int64_t *places, size_t count, float *values, void *stream)
{
    gather_args args = {from, places, values, (int64_t)count};
    void *parameters[] = {&args};
    return launch((const void *)gather, blocks_for(((int64_t)count + THREADS - 1) / THREADS), parameters, stream);
}

/* ---- Compare ---- */

struct compare_args {
    fp8r_comparison comparison;
    int64_t pieces, all; /* of a line; of all lines */
    fp8r_comparison_result *result;
};

static __device__ float load(const void *data, int64_t at, int32_t dtype)
{
    if (dtype == FP8R_DTYPE_FP32) return ((const float *)data)[at];
    if (dtype == FP8R_DTYPE_BF16) return __bfloat162float(((const __nv_bfloat16 *)data)[at]);
    return __half2float(((const __half *)data)[at]);
}

/* Extents of 1 broadcast. */
static __device__ float value_at(const fp8r_matrix *matrix, int64_t batch, int64_t row, int64_t col, float absent)
{
    if (matrix->dtype == FP8R_DTYPE_NONE) return absent;
    return load(matrix->data,
                (matrix->batch > 1 ? batch * matrix->batch_stride : 0) + (matrix->rows > 1 ? row * matrix->row_stride : 0) +
                    (matrix->cols > 1 ? col * matrix->col_stride : 0),
                matrix->dtype);
}

static __device__ float round_to(double value, int32_t dtype)
{
    const float rounded = (float)value;
    if (dtype == FP8R_DTYPE_BF16) return __bfloat162float(__float2bfloat16_rn(rounded));
    return dtype == FP8R_DTYPE_FP16 ? __half2float(__float2half_rn(rounded)) : rounded;
}

static __device__ bool is_untouched(const void *out, int64_t at, int32_t dtype)
{
    return dtype == FP8R_DTYPE_FP32 ? ((const uint32_t *)out)[at] == 0xFFFFFFFFu
                                    : ((const uint16_t *)out)[at] == 0xFFFFu;
}

static __device__ bool is_right(const fp8r_comparison *it, int64_t batch, int64_t row, int64_t col, float scale_row,
                                float spread_row)
{
    const int64_t at = batch * it->out.batch_stride + row * it->out.row_stride + col * it->out.col_stride;
    const int64_t line = batch * it->out.rows + row;
    const float value = load(it->out.data, at, it->out.dtype), exact = it->expected[line * it->out.cols + col];
    if (is_untouched(it->out.data, at, it->out.dtype)) return false;
    if (isnan(exact)) return isnan(value);
    const double scale = fabs((double)scale_row * (double)value_at(&it->scale_b, batch, 0, col, 1.0f));
    const double sum = fabs((double)exact - (double)value_at(&it->bias, batch, 0, col, 0.0f));
    const double spread = scale * (double)spread_row * (double)it->spread_b[batch * it->out.cols + col];
    const double error = it->sum_share * sum + it->spread_share * spread + it->value_share * fabs((double)exact) + it->least;
    return value >= round_to((double)exact - error, it->out.dtype) &&
           value <= round_to((double)exact + error, it->out.dtype);
}

static __global__ void compare(const __grid_constant__ compare_args args)
{
    const fp8r_comparison *it = &args.comparison;
    for (int64_t piece = blockIdx.x; piece < args.all; piece += gridDim.x) {
        const int64_t line = piece / args.pieces, first = piece % args.pieces * COLUMNS;
        const int64_t batch = line / it->out.rows, row = line % it->out.rows;
        const int64_t end = first + COLUMNS < it->out.cols ? first + COLUMNS : it->out.cols;
        const float scale = value_at(&it->scale_a, batch, row, 0, 1.0f), spread_row = it->spread_a[line];
        for (int64_t col = first + threadIdx.x; col < end; col += THREADS) {
            if (is_right(it, batch, row, col, scale, spread_row)) continue;
            atomicAdd((unsigned long long *)&args.result->wrong, 1ull);
            atomicMin((unsigned long long *)&args.result->first, (unsigned long long)(line * it->out.cols + col));
        }
    }
}

extern "C" int fp8r_judge_cuda_compare(const struct fp8r_comparison *comparison, struct fp8r_comparison_result *result,
                                       void *stream)
{
    const int64_t pieces = (comparison->out.cols + COLUMNS - 1) / COLUMNS;
    compare_args args = {*comparison, pieces, comparison->out.batch * comparison->out.rows * pieces, result};
    void *parameters[] = {&args};
    return launch((const void *)compare, blocks_for(args.all), parameters, stream);
}
