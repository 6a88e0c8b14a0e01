/* Few rows of a: b is streamed once, straight from memory into fragments, 16 columns of out and 8 rows a
 * block. Its eight warps take every eighth block of K and their sums are added in the order of the warps,
 * which is the numerics class. SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/args.h"
#include "backend/cuda/decode.cuh"
#include "backend/cuda/epilogue.cuh"
#include "backend/cuda/kernels.h"

enum { COLS = 16, ROWS = 8, WARPS = 8, AHEAD = 4 /* blocks of K a warp loads before it multiplies */ };

/* 16 codes, of which the first `exist` are read. b is not read again soon: it need not stay in L1. */
FP8R_DEVICE uint4 load_codes(const uint8_t *from, int64_t exist, bool stream)
{
    uint4 codes = make_uint4(0, 0, 0, 0);
    if (exist >= 16) {
        if (!stream) return *(const uint4 *)from;
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(codes.x), "=r"(codes.y), "=r"(codes.z), "=r"(codes.w)
                     : "l"(from));
        return codes;
    }
    uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 15; ++i)
        if (i < exist) word[i / 4] |= (uint32_t)from[i] << 8 * (i % 4);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

template <bool E5M2>
FP8R_DEVICE void multiply_codes(float sums[4], uint32_t upper, uint32_t lower, uint32_t tokens)
{
    uint32_t a[4], b[2];
    decode_four<false>(upper, &a[0], &a[2]);
    decode_four<false>(lower, &a[1], &a[3]);
    decode_four<E5M2>(tokens, &b[0], &b[1]);
    multiply_add(sums, a, b);
}

/* upper: codes of column lane / 4; lower: of the one 8 further; tokens: of row lane / 4. */
template <bool E5M2> FP8R_DEVICE void multiply_block(float sums[4], uint4 upper, uint4 lower, uint4 tokens)
{
    multiply_codes<E5M2>(sums, upper.x, lower.x, tokens.x);
    multiply_codes<E5M2>(sums, upper.y, lower.y, tokens.y);
    multiply_codes<E5M2>(sums, upper.z, lower.z, tokens.z);
    multiply_codes<E5M2>(sums, upper.w, lower.w, tokens.w);
}

/* A line of K that a thread reads from; what does not exist has no end. */
FP8R_DEVICE const uint8_t *line_at(const struct fp8r_cuda_operand *operand, int64_t batch, int64_t row)
{
    return operand->data + batch * operand->batch_stride + row * operand->row_stride;
}

/* This warp's blocks of K. */
template <bool E5M2>
FP8R_DEVICE void sum_blocks(const struct fp8r_cuda_args *args, int64_t batch, int64_t m, int64_t n,
                            float sums[4])
{
    const int lane = threadIdx.x % 32, place = lane / 4;
    const uint8_t *upper = line_at(&args->b, batch, n + place),
                  *lower = line_at(&args->b, batch, n + 8 + place);
    const uint8_t *tokens = line_at(&args->a, batch, m + place);
    const int64_t upper_k = n + place < args->n ? args->k : 0,
                  lower_k = n + 8 + place < args->n ? args->k : 0;
    const int64_t tokens_k = m + place < args->m ? args->k : 0;
    const int64_t turn = WARPS * FP8R_CUDA_BLOCK_K;
    for (int64_t k = threadIdx.x / 32 * FP8R_CUDA_BLOCK_K; k < args->k; k += AHEAD * turn) {
        uint4 up[AHEAD], low[AHEAD], token[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int64_t at = k + i * turn + lane % 4 * 16;
            up[i] = load_codes(upper + at, upper_k - at, true);
            low[i] = load_codes(lower + at, lower_k - at, true);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int64_t at = k + i * turn + lane % 4 * 16;
            token[i] = load_codes(tokens + at, tokens_k - at, false);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i)
            multiply_block<E5M2>(sums, up[i], low[i], token[i]);
    }
}

/* Adds the warps' sums in their order and stores: a thread an element. */
FP8R_DEVICE void store_total(const struct fp8r_cuda_args *args, int64_t batch, int64_t m, int64_t n,
                             const float (*shared)[ROWS][COLS])
{
    const int row = threadIdx.x / COLS, col = threadIdx.x % COLS;
    if (threadIdx.x >= ROWS * COLS || m + row >= args->m || n + col >= args->n) return;
    float total = shared[0][row][col];
    for (int i = 1; i < WARPS; ++i)
        total = __fadd_rn(total, shared[i][row][col]);
    const float value =
        finish(total, scale_at(&args->scale_b, batch, n + col), scale_at(&args->scale_a, batch, m + row),
               args->bias.data != NULL, bias_at(args, batch, n + col));
    store_one(args->out,
              batch * args->out_batch_stride + (m + row) * args->out_row_stride +
                  (n + col) * args->out_col_stride,
              args->out_dtype, value);
}

static __global__ void __launch_bounds__(32 * WARPS)
    stream(const __grid_constant__ struct fp8r_cuda_args args)
{
    __shared__ float shared[WARPS][ROWS][COLS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const int64_t m = index % args.tiles_m * ROWS, n = index / args.tiles_m % args.tiles_n * COLS;
        const int64_t batch = index / args.tiles_m / args.tiles_n;
        float sums[4] = {};
        if (args.a_is_e5m2)
            sum_blocks<true>(&args, batch, m, n, sums);
        else
            sum_blocks<false>(&args, batch, m, n, sums);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            shared[warp][lane % 4 * 2 + i % 2][lane / 4 + i / 2 * 8] = sums[i];
        __syncthreads();
        store_total(&args, batch, m, n, shared);
        __syncthreads(); /* the next tile's sums */
    }
}

const void *fp8r_cuda_skinny(void)
{
    return (const void *)stream;
}
