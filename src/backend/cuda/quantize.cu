/* The quantiser's kernels. Every step is fp32 with subnormals and IEEE division, as in base/quantize.c.
 *
 * All of them may start while the kernel before runs out, and wait for it before they touch memory; what
 * follows may start as early, or, where it is known to touch static weights alone before its own wait, at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/quantize_args.h"

#include "backend/cuda/encode.cuh"
#include "backend/cuda/epilogue.cuh"

enum { VECTOR = FP8R_CUDA_QUANTIZE_VECTOR };

FP8R_DEVICE void wait_and_release(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

FP8R_DEVICE void release_if_ahead(const struct fp8r_cuda_quantize_args *args)
{
#if __CUDA_ARCH__ >= 900
    if (args->is_ahead) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#else
    (void)args;
#endif
}

FP8R_DEVICE int64_t at_place(const struct fp8r_cuda_place *place, int64_t batch, int64_t row, int64_t col)
{
    return batch * place->batch_stride + row * place->row_stride + col * place->col_stride;
}

FP8R_DEVICE float *scale_place(const struct fp8r_cuda_quantize_args *args, int64_t batch, int64_t row,
                               int64_t col)
{
    return (float *)args->scale.data + at_place(&args->scale, batch, row, col);
}

/* Over the threads of a row, to all of them. */
FP8R_DEVICE float row_max(float value, int threads)
{
    __shared__ float of_warps[32];
    for (int step = 16; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
    if (threads == 32) return value;
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? of_warps[threadIdx.x % 32] : 0.0f;
    for (int step = 16; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
    __syncthreads(); /* the next use may write */
    return value;
}

/* Magnitudes order like their bits, so the largest wins in any order. Most are not: they need not wait for
 * each other. */
FP8R_DEVICE void raise_scale(float *scale, float amax)
{
    if (amax > *(volatile float *)scale) atomicMax((unsigned *)scale, __float_as_uint(amax));
}

/* ---- Whole rows ---- */

struct line {
    int64_t batch, row;
    int place, threads; /* of this thread among those of the row */
};

FP8R_DEVICE int64_t lines_at_once(const struct fp8r_cuda_quantize_args *args)
{
    return (int64_t)gridDim.x * (blockDim.x / args->row_threads);
}

FP8R_DEVICE int64_t first_line(const struct fp8r_cuda_quantize_args *args)
{
    return (int64_t)blockIdx.x * (blockDim.x / args->row_threads) + threadIdx.x / args->row_threads;
}

FP8R_DEVICE struct line line_at(const struct fp8r_cuda_quantize_args *args, int64_t index)
{
    struct line line;
    line.batch = args->batch == 1 ? 0 : index / args->rows;
    line.row = index - line.batch * args->rows;
    line.threads = args->row_threads;
    line.place = threadIdx.x % args->row_threads;
    return line;
}

/* From a thread's amax to the scale that the row's codes are made with; 0: none are to be made. */
FP8R_DEVICE float settle_scale(const struct fp8r_cuda_quantize_args *args, const struct line *line,
                               float *scale, float amax)
{
    if (args->step == FP8R_CUDA_QUANTIZE_ENCODE) return *scale;
    amax = row_max(amax, line->threads);
    if (args->step == FP8R_CUDA_QUANTIZE_GATHER) {
        if (line->place == 0) raise_scale(scale, amax);
        return 0.0f;
    }
    if (line->place == 0) *scale = scale_of(amax);
    return scale_of(amax);
}

/* A thread's part of a row: every `threads`th vector from `from` on, while the number of vectors passed is
 * below `left`; of the up to 7 elements in front of and behind all vectors one, or none. */
struct part {
    const uint4 *from;
    uint2 *to;
    int64_t left;
    const uint16_t *edge; /* NULL: none */
    uint8_t *edge_out;
    float *scale; /* the row's */
};

FP8R_DEVICE struct part part_of(const struct fp8r_cuda_quantize_args *args, const struct line *line)
{
    const uint16_t *in = (const uint16_t *)args->in.data + at_place(&args->in, line->batch, line->row, 0);
    uint8_t *out = (uint8_t *)args->out.data + at_place(&args->out, line->batch, line->row, 0);
    const int64_t cols = args->cols, head = min((int64_t)(-(uintptr_t)in / 2 % VECTOR), cols);
    const int64_t vectors = (cols - head) / VECTOR;
    const int place = line->place;
    const int64_t edge = place < VECTOR ? place : head + vectors * VECTOR + place - VECTOR;
    const bool has_edge = place < 2 * VECTOR && edge < (place < VECTOR ? head : cols);
    struct part part;
    part.from = (const uint4 *)(in + head) + place;
    part.to = (uint2 *)(out + head) + place;
    part.left = vectors - place;
    part.edge = has_edge ? in + edge : NULL;
    part.edge_out = out + edge;
    part.scale = scale_place(args, line->batch, line->row, 0);
    return part;
}

/* The row stays in registers between its two looks, HELD vectors a thread; what is beyond is read twice. */
template <bool BF16, int HELD>
FP8R_DEVICE void quantize_part(const struct fp8r_cuda_quantize_args *args, const struct line *line,
                               const struct part *part)
{
    const int threads = line->threads;
    uint4 held[HELD];
#pragma unroll
    for (int i = 0; i < HELD; ++i)
        held[i] = i * threads < part->left ? __ldcs(part->from + i * threads) : make_uint4(0, 0, 0, 0);
    const float edge =
        part->edge ? load_value(part->edge, 0, BF16 ? FP8R_DTYPE_BF16 : FP8R_DTYPE_FP16) : 0.0f;
    float amax = 0.0f;
    if (args->step != FP8R_CUDA_QUANTIZE_ENCODE) {
        uint32_t most = 0;
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            most = raise_vector<BF16>(most, held[i]);
        for (int64_t at = HELD * threads; at < part->left; at += threads)
            most = raise_vector<BF16>(most, part->from[at]);
        amax = raise(largest_of<BF16>(most), edge);
    }
    const float scale = settle_scale(args, line, part->scale, amax), inverse = __frcp_rn(scale);
    if (args->step == FP8R_CUDA_QUANTIZE_GATHER) return;
#pragma unroll
    for (int i = 0; i < HELD; ++i)
        if (i * threads < part->left) part->to[i * threads] = encode_vector<BF16>(held[i], inverse);
    for (int64_t at = HELD * threads; at < part->left; at += threads)
        part->to[at] = encode_vector<BF16>(part->from[at], inverse);
    if (part->edge) *part->edge_out = (uint8_t)encode_pair(__fmul_rn(edge, inverse), 0.0f);
}

/* Few rows are a matter of latency: where they lie is worked out while the kernel in front runs out. A branch
 * on all of it keeps the compiler from moving that behind the wait; what it asks is true. */
FP8R_DEVICE bool is_known(const struct part *part)
{
    const uint64_t all = (uint64_t)part->scale | (uint64_t)part->from | (uint64_t)part->to |
                         (uint64_t)part->left | (uint64_t)part->edge | (uint64_t)part->edge_out;
    return all != 0;
}

/* BLOCKS: of the largest size, a multiprocessor: as many bytes as can be are under way. */
template <bool BF16, int HELD, int BLOCKS>
static __global__ void __launch_bounds__(FP8R_CUDA_QUANTIZE_THREADS, BLOCKS)
    quantize_lines(const __grid_constant__ struct fp8r_cuda_quantize_args args)
{
    release_if_ahead(&args);
    const int64_t count = args.batch * args.rows;
    int64_t index = first_line(&args);
    struct line line = line_at(&args, index);
    struct part part = part_of(&args, &line);
    if (!is_known(&part)) return;
    wait_and_release();
    while (index < count) {
        quantize_part<BF16, HELD>(&args, &line, &part);
        index += lines_at_once(&args);
        line = line_at(&args, index);
        part = part_of(&args, &line);
    }
}

static __global__ void quantize_any(const __grid_constant__ struct fp8r_cuda_quantize_args args)
{
    release_if_ahead(&args);
    wait_and_release();
    for (int64_t index = first_line(&args); index < args.batch * args.rows; index += lines_at_once(&args)) {
        const struct line line = line_at(&args, index);
        float amax = 0.0f;
        for (int64_t col = line.place; args.step != FP8R_CUDA_QUANTIZE_ENCODE && col < args.cols;
             col += line.threads)
            amax = raise(
                amax, load_value(args.in.data, at_place(&args.in, line.batch, line.row, col), args.in_dtype));
        const float inverse =
            __frcp_rn(settle_scale(&args, &line, scale_place(&args, line.batch, line.row, 0), amax));
        for (int64_t col = line.place; args.step != FP8R_CUDA_QUANTIZE_GATHER && col < args.cols;
             col += line.threads) {
            const float value =
                load_value(args.in.data, at_place(&args.in, line.batch, line.row, col), args.in_dtype);
            ((uint8_t *)args.out.data)[at_place(&args.out, line.batch, line.row, col)] =
                (uint8_t)encode_pair(__fmul_rn(value, inverse), 0.0f);
        }
    }
}

/* ---- Columns, scales, values ---- */

/* A thread's column of a tile, and the tile's rows. */
struct tile {
    int64_t batch, row, row_end, col;
};

FP8R_DEVICE struct tile tile_at(const struct fp8r_cuda_quantize_args *args, int64_t index)
{
    struct tile tile;
    tile.col = index % args->col_tiles * FP8R_CUDA_QUANTIZE_COLS + threadIdx.x;
    tile.row = index / args->col_tiles % args->row_tiles * FP8R_CUDA_QUANTIZE_ROWS;
    tile.row_end = min(tile.row + FP8R_CUDA_QUANTIZE_ROWS, args->rows);
    tile.batch = index / args->col_tiles / args->row_tiles;
    return tile;
}

FP8R_DEVICE int64_t tile_count(const struct fp8r_cuda_quantize_args *args)
{
    return args->batch * args->row_tiles * args->col_tiles;
}

static __global__ void gather_columns(const __grid_constant__ struct fp8r_cuda_quantize_args args)
{
    wait_and_release();
    for (int64_t index = blockIdx.x; index < tile_count(&args); index += gridDim.x) {
        const struct tile tile = tile_at(&args, index);
        if (tile.col >= args.cols) continue;
        float amax = 0.0f;
#pragma unroll 8
        for (int64_t row = tile.row; row < tile.row_end; ++row) {
            amax = raise(
                amax, load_value(args.in.data, at_place(&args.in, tile.batch, row, tile.col), args.in_dtype));
            if (args.scale_rows == 1) continue;
            raise_scale(scale_place(&args, tile.batch, row, tile.col), amax);
            amax = 0.0f;
        }
        if (args.scale_rows == 1) raise_scale(scale_place(&args, tile.batch, tile.row, tile.col), amax);
    }
}

/* The scales, a thread each. FINISH: what was gathered becomes a scale; else 0, to gather in. */
template <bool FINISH>
static __global__ void change_scales(const __grid_constant__ struct fp8r_cuda_quantize_args args)
{
    wait_and_release();
    const int64_t count = args.scale_batch * args.scale_rows * args.scale_cols;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        float *scale = scale_place(&args, i / args.scale_cols / args.scale_rows,
                                   i / args.scale_cols % args.scale_rows, i % args.scale_cols);
        *scale = FINISH ? scale_of(*scale) : 0.0f;
    }
}

static __global__ void encode_tiles(const __grid_constant__ struct fp8r_cuda_quantize_args args)
{
    wait_and_release();
    for (int64_t index = blockIdx.x; index < tile_count(&args); index += gridDim.x) {
        const struct tile tile = tile_at(&args, index);
        if (tile.col >= args.cols) continue;
        float inverse = __frcp_rn(*scale_place(&args, tile.batch, tile.row, tile.col));
#pragma unroll 8
        for (int64_t row = tile.row; row < tile.row_end; ++row) {
            if (args.scale_rows > 1) inverse = __frcp_rn(*scale_place(&args, tile.batch, row, tile.col));
            const float value =
                load_value(args.in.data, at_place(&args.in, tile.batch, row, tile.col), args.in_dtype);
            ((uint8_t *)args.out.data)[at_place(&args.out, tile.batch, row, tile.col)] =
                (uint8_t)encode_pair(__fmul_rn(value, inverse), 0.0f);
        }
    }
}

/* A NaN code keeps its sign, as in base/convert.h; every other step is plain arithmetic. */
FP8R_DEVICE void store_value(const struct fp8r_cuda_quantize_args *args, int64_t at, uint8_t code,
                             float scale)
{
    const float value = decode_one(code, args->in_dtype), result = __fmul_rn(value, scale);
    if (value == value) {
        store_one(args->out.data, at, args->out_dtype, result);
        return;
    }
    /* A product makes a signalling NaN quiet, and so does becoming narrower. */
    const uint32_t payload = args->in_dtype == FP8R_DTYPE_E5M2 ? (code & 3u) << 21 : 0x400000u;
    const bool quiet = args->scale.data || args->out_dtype != FP8R_DTYPE_FP32;
    const uint32_t bits = (code & 0x80u) << 24 | 0x7F800000u | payload | (quiet ? 0x400000u : 0u);
    if (args->out_dtype == FP8R_DTYPE_FP32)
        ((uint32_t *)args->out.data)[at] = bits;
    else if (args->out_dtype == FP8R_DTYPE_BF16)
        ((uint16_t *)args->out.data)[at] = (uint16_t)(bits >> 16);
    else
        ((uint16_t *)args->out.data)[at] = (uint16_t)(bits >> 16 & 0x8000u | 0x7C00u | (bits >> 13 & 0x3FFu));
}

static __global__ void decode_tiles(const __grid_constant__ struct fp8r_cuda_quantize_args args)
{
    wait_and_release();
    for (int64_t index = blockIdx.x; index < tile_count(&args); index += gridDim.x) {
        const struct tile tile = tile_at(&args, index);
        if (tile.col >= args.cols) continue;
#pragma unroll 4
        for (int64_t row = tile.row; row < tile.row_end; ++row) {
            const float scale = args.scale.data ? *scale_place(&args, tile.batch, row, tile.col) : 1.0f;
            store_value(&args, at_place(&args.out, tile.batch, row, tile.col),
                        ((const uint8_t *)args.in.data)[at_place(&args.in, tile.batch, row, tile.col)],
                        scale);
        }
    }
}

const void *fp8r_cuda_quantize_kernel(enum fp8r_cuda_quantize_kernel kernel)
{
    static const void *const kernels[] = {
        (const void *)quantize_lines<true, FP8R_CUDA_QUANTIZE_SHORT, 3>,
        (const void *)quantize_lines<true, FP8R_CUDA_QUANTIZE_LONG, 2>,
        (const void *)quantize_lines<false, FP8R_CUDA_QUANTIZE_SHORT, 3>,
        (const void *)quantize_lines<false, FP8R_CUDA_QUANTIZE_LONG, 2>,
        (const void *)quantize_any,
        (const void *)change_scales<false>,
        (const void *)change_scales<true>,
        (const void *)gather_columns,
        (const void *)encode_tiles,
        (const void *)decode_tiles,
    };
    return kernels[kernel];
}
