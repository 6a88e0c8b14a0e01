/* Large M whose last rows would need a tile of their own: operands swapped as in the skinny family, rows of b
 * (64 a warpgroup) on the tensor core's wide side, rows of a on the narrow one, whose tiles may be any
 * multiple of 8 high. Everything else is as in wide.cuh. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_SWAPPED_CUH
#define FP8R_SM90_WIDE_SWAPPED_CUH

#include "backend/sm90/wide.cuh"

/* What every warp of a block knows: its place, the pipeline, the barriers. */
struct wide_block {
    struct wide_place place;
    struct pipeline pipe;
    struct wide_barriers barriers;
    uint8_t *memory; /* aligned */
    int warp, first; /* first: number of its first cluster tile */
};

/* Builds the block in place and initialises its barriers. sharers: warpgroups that multiply one tile. */
template <int GROUPS>
FP8R_DEVICE void wide_enter(const struct fp8r_sm90_args *args, uint8_t *dynamic_memory, int sharers,
                            struct wide_block *block)
{
    const uint32_t raw = smem_address(dynamic_memory), memory = kept((raw + 1023) & ~1023u);
    int rest;
    block->memory = dynamic_memory + (memory - raw);
    block->warp = (int)kept(threadIdx.x / 32);
    block->first = divide(blockIdx.x, &args->by_size, &rest);
    block->place = wide_locate(args);
    const uint32_t full = memory + args->barriers_offset, received = full + 16 * FP8R_SM90_STAGES_MAX;
    const uint32_t peers =
        args->share_m * args->share_n > 1 ? (uint32_t)(block->place.share_a | block->place.share_b) : 0u;
    block->barriers = {received, received + 8, received + 24};
    block->pipe = {memory, full, full + 8 * FP8R_SM90_STAGES_MAX, args->stages, args->stage_bytes, 1, 1,
                   0,      0,    peers, false, false};
    wide_begin<GROUPS>(args, &block->pipe, &block->barriers, block->warp, sharers);
}

/* The warps that load. */
template <int GROUPS, int ROWS, int COLUMNS, bool SWAPPED>
FP8R_DEVICE void wide_load(const struct fp8r_sm90_args *args, const struct wide_block *block)
{
    if (block->warp == 4 * GROUPS)
        wide_load_tiles_of_b<ROWS, COLUMNS>(args, &block->place, &block->pipe, block->first);
    else if (block->warp == 4 * GROUPS + 2)
        wide_load_tiles_of_a<ROWS, COLUMNS>(args, &block->place, &block->pipe, block->first);
    else if (block->warp == 4 * GROUPS + 1)
        wide_load_scales<ROWS, COLUMNS, SWAPPED>(args, &block->place, &block->barriers,
                                                 (float *)(block->memory + args->scales_offset),
                                                 block->first);
}

/* sums[i] (+)= 64 rows of b times rows N i and on of a, over the reader's block of K. */
template <int PARTS, int N>
FP8R_DEVICE void multiply_swapped(float (&sums)[PARTS][N / 2], const struct reader *at, bool fresh)
{
    const uint32_t p = at->p, q = at->p + at->apart;
#pragma unroll
    for (int step = 0; step < FP8R_SM90_BLOCK_K / 32; ++step) {
#pragma unroll
        for (int i = 0; i < PARTS; ++i)
            wgmma<N, FP8R_WGMMA_E4M3_E4M3>::run(
                sums[i], wgmma_descriptor(p + 2 * step),
                wgmma_descriptor(q + i * (N * FP8R_SM90_BLOCK_K / 16) + 2 * step), step > 0 || !fresh);
    }
    wgmma_commit();
}

/* The same over all blocks of K. */
template <int PARTS, int N>
FP8R_DEVICE void accumulate_swapped(float (&sums)[PARTS][N / 2], struct wide_consumer *own)
{
    const struct pipeline *const pipe = own->pipe;
    struct reader *const at = &own->at;
    reader_wait(at, pipe);
    wgmma_fence();
    multiply_swapped<PARTS, N>(sums, at, true);
    uint32_t behind = reader_advance(at, pipe, pipe->stages);
    for (int left = own->place->blocks - 1; left > 0; --left) {
        reader_wait(at, pipe);
        multiply_swapped<PARTS, N>(sums, at, false);
        const uint32_t here = reader_advance(at, pipe, pipe->stages);
        wgmma_wait<1>();
        stage_release(pipe, behind);
        behind = here;
    }
    wgmma_wait<0>();
    stage_release(pipe, behind);
}

/* 16 columns of out, those of one warp from n on, and all rows of the tile from m on. */
template <int PARTS, int N>
FP8R_DEVICE void store_swapped_tile(const struct fp8r_sm90_args *args, const struct wide_tile *tile, int n,
                                    const float (&sums)[PARTS][N / 2], const float *scale_b,
                                    const float *bias, const float *scale_a)
{
    uint16_t *const out = (uint16_t *)args->out + tile->batch * args->out_batch;
    const bool fours = (args->flags & FP8R_SM90_OUT_FOURS) && !args->bias;
    const struct swapped_columns columns = swapped_columns_at(args, tile->batch, n, args->n, scale_b, bias);
#pragma unroll
    for (int i = 0; i < PARTS; ++i) {
#pragma unroll
        for (int j = 0; j < N / 8; ++j) {
            const int row = i * N + 8 * j;
            const float *s = &sums[i][4 * j];
            const float4 four = make_float4(s[0], s[1], s[2], s[3]);
            if (fours)
                store_swapped_fours<false>(args, out, four, tile->m + row, n, args->n, scale_b, bias,
                                           scale_a + row);
            else
                store_swapped(args, &columns, four, tile->m + row, scale_a + row);
        }
    }
}

/* A multiplying warpgroup's way over the tiles. */
template <int GROUPS, int PARTS, int N>
FP8R_DEVICE void wide_consume_swapped(struct wide_consumer *own, int first)
{
    constexpr int rows = PARTS * N, columns = GROUPS * 64;
    const struct fp8r_sm90_args *const args = own->args;
    float sums[PARTS][N / 2];
    for (int index = first, count = 0; index < args->tiles; index += args->step, ++count) {
        const struct wide_tile tile = wide_tile_at(args, own->place, index, rows, columns);
        accumulate_swapped<PARTS, N>(sums, own);
        const float *const scales = wide_scales(own, count, 2 * columns + rows);
        store_swapped_tile<PARTS, N>(args, &tile, tile.n + own->row, sums, scales + own->row,
                                     scales + columns + own->row, scales + 2 * columns);
        wide_scales_release(own, count);
    }
}

/* A tile: PARTS times N rows of a, GROUPS times 64 rows of b. */
template <int GROUPS, int PARTS, int N>
__global__ void __launch_bounds__(FP8R_SM90_WIDE_BOUND(GROUPS, PARTS *N / 2), 1)
    wide_swapped(const __grid_constant__ struct fp8r_sm90_args args)
{
    constexpr int rows = PARTS * N, columns = GROUPS * 64;
    extern __shared__ uint8_t dynamic_memory[];
    struct wide_block block;
    wide_enter<GROUPS>(&args, dynamic_memory, GROUPS, &block);
    const int group = block.warp / 4;
    if (group == GROUPS) {
        registers_shrink<FP8R_SM90_WIDE_LOADER_REGISTERS>();
        wide_load<GROUPS, rows, columns, true>(&args, &block);
    } else {
        registers_grow<FP8R_SM90_WIDE_REGISTERS(PARTS * N / 2)>();
        grid_wait();
        struct wide_consumer own = {&args,
                                    &block.place,
                                    &block.pipe,
                                    &block.barriers,
                                    block.memory,
                                    group,
                                    group * 64 + block.warp % 4 * 16,
                                    reader_start(&block.pipe, (rows + group * 64) * FP8R_SM90_BLOCK_K, 0, 0,
                                                 args.stages)};
        wide_consume_swapped<GROUPS, PARTS, N>(&own, block.first);
    }
}

#endif
