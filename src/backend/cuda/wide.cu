/* The portable kernel for every problem: tiles of out, codes decoded to fp16 from shared memory, fp16
 * tensor-core products with fp32 sums, one chain in ascending k whatever the tile.
 *
 * Inside a block of 64 k, a thread's 16-byte piece of a row serves four steps of 16 k: which k stands where
 * in a step is free as long as both operands agree, so nothing has to be shuffled. SPDX-License-Identifier:
 * Apache-2.0 */
#include "backend/cuda/args.h"
#include "backend/cuda/decode.cuh"
#include "backend/cuda/epilogue.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/load.cuh"

enum { THREADS = 128 };

/* Rows m .. and columns n .. of one product of the batch. */
struct tile {
    int64_t batch, m, n;
};

/* Neighbours in time share rows and columns: groups of 8 rows of tiles are walked column by column. */
FP8R_DEVICE struct tile tile_at(const struct fp8r_cuda_args *args, int64_t index, int rows, int cols)
{
    const int64_t each = args->tiles_m * args->tiles_n, in_group = 8 * args->tiles_n;
    const int64_t in_batch = index % each, group = in_batch / in_group, at = in_batch % in_group;
    const int64_t height = min((int64_t)8, args->tiles_m - 8 * group);
    struct tile tile;
    tile.batch = index / each;
    tile.m = (8 * group + at % height) * rows;
    tile.n = at / height * cols;
    return tile;
}

FP8R_DEVICE struct panel panel_at(const struct fp8r_cuda_operand *operand, int64_t k, int64_t batch,
                                  int64_t row, int64_t rows)
{
    struct panel panel;
    panel.data = operand->data + batch * operand->batch_stride + row * operand->row_stride;
    panel.row_stride = operand->row_stride;
    panel.k_stride = operand->k_stride;
    panel.k = k;
    panel.rows = (int)min(rows - row, (int64_t)1 << 30);
    panel.load = operand->load;
    return panel;
}

/* Where a thread reads a stage's panels: whole rows of fragments further on, only a constant is added. */
struct reader {
    int a[2], b[2];
};

/* Fragment `i` of b has column (i / 4 * 32 + i % 4 * 2 + place / 2 * 8 + place % 2) at place lane / 4: four
 * fragments share 32 columns so that a thread ends up with eight neighbours in a row of out. */
FP8R_DEVICE struct reader reader_at(int first_row, int first_col)
{
    const int place = threadIdx.x % 32 / 4, piece = threadIdx.x % 4;
    struct reader reader;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        reader.a[half] = piece_at(first_row + place + 8 * half, piece);
        reader.b[half] = piece_at(first_col + place / 2 * 8 + place % 2 + 4 * half, piece);
    }
    return reader;
}

/* Codes of two steps of 16 k: of 16 rows of a a fragment, of 8 columns of b. */
template <int COUNT_M, int COUNT_N> struct codes {
    uint2 a[COUNT_M][2], b[COUNT_N];
};

/* half: of a block of K. */
template <int COUNT_M, int COUNT_N>
FP8R_DEVICE void read_half(const uint8_t *a, const uint8_t *b, const struct reader *reader, int half,
                           struct codes<COUNT_M, COUNT_N> *codes)
{
    constexpr int ROW = FP8R_CUDA_BLOCK_K;
#pragma unroll
    for (int i = 0; i < 2 * COUNT_M; ++i)
        codes->a[i / 2][i % 2] = *(const uint2 *)(a + reader->a[i % 2] + i / 2 * 16 * ROW + 8 * half);
#pragma unroll
    for (int i = 0; i < COUNT_N; ++i)
        codes->b[i] = *(const uint2 *)(b + reader->b[i % 4 / 2] + (i / 4 * 32 + i % 2 * 2) * ROW + 8 * half);
}

/* Each fragment of b is decoded right before its products, between those of the one before. */
template <int COUNT_M, int COUNT_N, bool E5M2>
FP8R_DEVICE void multiply_step(const struct codes<COUNT_M, COUNT_N> *codes, int step,
                               float sums[COUNT_M][COUNT_N][4])
{
    uint32_t rows[COUNT_M][4], cols[2];
#pragma unroll
    for (int i = 0; i < COUNT_M; ++i) {
        decode_four<E5M2>(step ? codes->a[i][0].y : codes->a[i][0].x, &rows[i][0], &rows[i][2]);
        decode_four<E5M2>(step ? codes->a[i][1].y : codes->a[i][1].x, &rows[i][1], &rows[i][3]);
    }
#pragma unroll
    for (int i = 0; i < COUNT_N; ++i) {
        decode_four<false>(step ? codes->b[i].y : codes->b[i].x, &cols[0], &cols[1]);
#pragma unroll
        for (int row = 0; row < COUNT_M; ++row)
            multiply_add(sums[row][i], rows[row], cols);
    }
}

/* A block of K: four steps, the second half's codes on their way while the first half's are multiplied. */
template <int COUNT_M, int COUNT_N, bool E5M2>
FP8R_DEVICE void multiply_block(const uint8_t *a, const uint8_t *b, const struct reader *reader,
                                float sums[COUNT_M][COUNT_N][4])
{
    struct codes<COUNT_M, COUNT_N> codes[2];
    read_half(a, b, reader, 0, &codes[0]);
    multiply_step<COUNT_M, COUNT_N, E5M2>(&codes[0], 0, sums);
    read_half(a, b, reader, 1, &codes[1]);
    multiply_step<COUNT_M, COUNT_N, E5M2>(&codes[0], 1, sums);
    multiply_step<COUNT_M, COUNT_N, E5M2>(&codes[1], 0, sums);
    multiply_step<COUNT_M, COUNT_N, E5M2>(&codes[1], 1, sums);
}

/* Sums a tile over all of K; STAGES - 1 blocks are on their way into shared memory. */
template <int ROWS, int COLS, int STAGES>
FP8R_DEVICE void sum_tile(const struct fp8r_cuda_args *args, const struct tile *tile,
                          const struct reader *reader, uint8_t *shared, float sums[ROWS / 32][COLS / 16][4])
{
    constexpr int STAGE_BYTES = (ROWS + COLS) * FP8R_CUDA_BLOCK_K;
    const struct panel a = panel_at(&args->a, args->k, tile->batch, tile->m, args->m);
    const struct panel b = panel_at(&args->b, args->k, tile->batch, tile->n, args->n);
    int load_stage = 0, stage = 0;
    for (int64_t k = -(STAGES - 1) * FP8R_CUDA_BLOCK_K; k < args->k; k += FP8R_CUDA_BLOCK_K) {
        if (k >= 0) {
            copies_wait<STAGES - 2>();
            __syncthreads(); /* block k is there, and all are done with the one that is overwritten next */
        }
        const int64_t ahead = k + (STAGES - 1) * FP8R_CUDA_BLOCK_K;
        if (ahead < args->k) {
            uint8_t *to = shared + load_stage * STAGE_BYTES;
            load_block<ROWS, THREADS>(&a, ahead, to);
            load_block<COLS, THREADS>(&b, ahead, to + ROWS * FP8R_CUDA_BLOCK_K);
            load_stage = load_stage == STAGES - 1 ? 0 : load_stage + 1;
        }
        copies_commit(); /* an empty group keeps the count */
        if (k < 0) continue;
        const uint8_t *from = shared + stage * STAGE_BYTES;
        if (args->a_is_e5m2)
            multiply_block<ROWS / 32, COLS / 16, true>(from, from + ROWS * FP8R_CUDA_BLOCK_K, reader, sums);
        else
            multiply_block<ROWS / 32, COLS / 16, false>(from, from + ROWS * FP8R_CUDA_BLOCK_K, reader, sums);
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
}

/* A warp's part of the tile, rows from m and columns from n on. */
template <int COUNT_M, int COUNT_N>
FP8R_DEVICE void store_sums(const struct fp8r_cuda_args *args, int64_t batch, int64_t m, int64_t n,
                            const float sums[COUNT_M][COUNT_N][4])
{
    const int lane = threadIdx.x % 32;
    const bool has_bias = args->bias.data != NULL;
#pragma unroll
    for (int quad = 0; quad < COUNT_N; quad += 4) {
        const int64_t col = n + quad * 8 + lane % 4 * 8;
        const int exist = (int)min(args->n - col, (int64_t)8);
        float scale_b[8], bias[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            scale_b[i] = i < exist ? scale_at(&args->scale_b, batch, col + i) : 1.0f;
            bias[i] = i < exist ? bias_at(args, batch, col + i) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < COUNT_M * 2; ++i) {
            const int64_t row = m + i * 8 + lane / 4;
            if (row >= args->m) continue;
            const float scale_a = scale_at(&args->scale_a, batch, row);
            float value[8];
#pragma unroll
            for (int j = 0; j < 8; ++j)
                value[j] = finish(sums[i / 2][quad + j / 2][i % 2 * 2 + j % 2], scale_b[j], scale_a, has_bias,
                                  bias[j]);
            store_eight(args,
                        batch * args->out_batch_stride + row * args->out_row_stride +
                            col * args->out_col_stride,
                        value, exist);
        }
    }
}

/* Four warps share a tile, 2 x 2. */
template <int ROWS, int COLS, int STAGES, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    multiply(const __grid_constant__ struct fp8r_cuda_args args)
{
    extern __shared__ __align__(128) uint8_t shared[];
    const int first_row = threadIdx.x / 64 * (ROWS / 2), first_col = threadIdx.x / 32 % 2 * (COLS / 2);
    const struct reader reader = reader_at(first_row, first_col);
    for (int64_t index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const struct tile tile = tile_at(&args, index, ROWS, COLS);
        float sums[ROWS / 32][COLS / 16][4] = {};
        sum_tile<ROWS, COLS, STAGES>(&args, &tile, &reader, shared, sums);
        store_sums<ROWS / 32, COLS / 16>(&args, tile.batch, tile.m + first_row, tile.n + first_col, sums);
        __syncthreads(); /* the next tile overwrites what slower warps still read */
    }
}

const void *fp8r_cuda_wide(int tile)
{
    return tile == 128 ? (const void *)multiply<128, 128, FP8R_CUDA_STAGES_128, 2>
                       : (const void *)multiply<64, 64, FP8R_CUDA_STAGES_64, 4>;
}
