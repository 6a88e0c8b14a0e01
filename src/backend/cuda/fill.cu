/* K = 0: out becomes the bias, or zeros. A thread an element at a time, in steps of the grid.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/fill.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backend/cuda/launch.h"
#include "device/cuda.h"

enum { THREADS = 256, BLOCKS_MOST = 4096 };

struct fill_args {
    const void *bias; /* NULL: zeros */
    void *out;
    int64_t m, n, count;
    int64_t bias_batch, bias_col, out_batch, out_row, out_col;
    int32_t bias_dtype, out_dtype;
};

static __device__ float load(const void *data, int64_t at, int32_t dtype)
{
    if (dtype == FP8R_DTYPE_FP32) return ((const float *)data)[at];
    if (dtype == FP8R_DTYPE_BF16) return __bfloat162float(((const __nv_bfloat16 *)data)[at]);
    return __half2float(((const __half *)data)[at]);
}

static __device__ void store(void *data, int64_t at, int32_t dtype, float value)
{
    if (dtype == FP8R_DTYPE_FP32)
        ((float *)data)[at] = value;
    else if (dtype == FP8R_DTYPE_BF16)
        ((__nv_bfloat16 *)data)[at] = __float2bfloat16_rn(value);
    else
        ((__half *)data)[at] = __float2half_rn(value);
}

static __global__ void fill(const __grid_constant__ fill_args args)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < args.count; i += step) {
        const int64_t line = i / args.n, col = i % args.n, batch = line / args.m, row = line % args.m;
        const float value =
            args.bias ? load(args.bias, batch * args.bias_batch + col * args.bias_col, args.bias_dtype) : 0.0f;
        store(args.out, batch * args.out_batch + row * args.out_row + col * args.out_col, args.out_dtype, value);
    }
}

fp8r_status fp8r_cuda_fill_load(void)
{
    return fp8r_cuda_load((const void *)fill, 0);
}

fp8r_status fp8r_cuda_fill(const fp8r_problem *problem, const fp8r_pointers *pointers, void *stream)
{
    fill_args args = {};
    args.bias = pointers->bias;
    args.out = pointers->out;
    args.m = problem->m;
    args.n = problem->n;
    args.count = problem->batch * problem->m * problem->n;
    args.bias_batch = problem->bias.batch_stride;
    args.bias_col = problem->bias.col_stride;
    args.out_batch = problem->out.batch_stride;
    args.out_row = problem->out.row_stride;
    args.out_col = problem->out.col_stride;
    args.bias_dtype = problem->bias.dtype;
    args.out_dtype = problem->out.dtype;
    const int64_t blocks = (args.count - 1) / THREADS + 1;
    void *parameters[] = {&args};
    const dim3 grid((unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST));
    const cudaError_t error =
        cudaLaunchKernel((const void *)fill, grid, dim3(THREADS), parameters, 0, (cudaStream_t)stream);
    return error == cudaSuccess ? FP8R_OK : fp8r_cuda_fail("cudaLaunchKernel of a product over nothing", error);
}
