/* Large and small M over rows of b that the copy engine takes by fours only: their pitch is a multiple of 4
 * bytes, and not of 16. Four rows are 16-byte granules then, so that one map brings rows of all four classes,
 * each begun a few words early; warps read their words from where they are into registers, as the tensor
 * core's first operand. Operands are swapped as in wide_swapped.cuh; rows of a are 16-byte granules, or were
 * copied in front (shifted_copy.cu). SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SHIFTED_CUH
#define FP8R_SM90_SHIFTED_CUH

#include "backend/sm90/fours_shift.h"
#include "backend/sm90/wgmma_registers.cuh"
#include "backend/sm90/wide_swapped.cuh"

/* What a thread reads of a tile of b: row lane / 4 and lane / 4 + 8 of its warp's part of the product. In the
 * stage 32 rows lie in the order of their classes (row % 4), eight each, so that what eight lanes read begins
 * in as many banks. */
struct shifted_rows {
    uint32_t row[2];  /* in the stage: the row, and the word in a granule */
    uint32_t back[2]; /* bytes of granules that its first word lies in front of the block: 0, 16 or 32 */
    uint32_t phase;   /* of the swizzle */
    int column;       /* of the tile: of out, the first of two neighbours */
};

/* tokens: rows of a in front of those of b. warp: of those that multiply. */
FP8R_DEVICE struct shifted_rows shifted_locate(const struct fp8r_sm90_args *args, int tokens, int warp)
{
    struct shifted_rows rows;
    const int lane = threadIdx.x % 32, pair = warp % 2 * 2, group = warp / 2;
    rows.phase = lane / 4 * 16;
    rows.column = 32 * group + lane / 4 * 4 + pair;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int late = FP8R_SM90_SHIFTED_LEAD -
                         fp8r_sm90_fours_shift((uintptr_t)args->packed_b.data, args->packed_b.row, pair + half);
        const int from = lane % 4 * 4 - late; /* of the block's beginning */
        rows.row[half] =
            (tokens + 32 * group + 8 * (pair + half) + lane / 4) * FP8R_SM90_BLOCK_K + (from & 15);
        rows.back[half] = -(from & ~15);
    }
    return rows;
}

FP8R_DEVICE uint32_t shared_word(uint32_t from)
{
    uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
    return value;
}

/* A block's words, from its stage and, the first ones, from the one before. */
FP8R_DEVICE void shifted_read(uint32_t (&words)[16], const struct shifted_rows *rows, uint32_t here,
                              uint32_t before)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint32_t stage = i < 2 && 16 * i < rows->back[half] ? before : here;
            words[2 * i + half] =
                shared_word(stage + rows->row[half] + (((16 * i - rows->back[half]) & 0x70) ^ rows->phase));
        }
    }
}

/* A row's word from k on, from memory; where the row ends, what it has of it. */
FP8R_DEVICE uint32_t shifted_word(const uint8_t *row, int k, int extent)
{
    uint32_t word = 0;
    if (k + 4 <= extent) return *(const uint32_t *)(row + k);
#pragma unroll 1
    for (int i = 0; k + i < extent; ++i)
        word |= (uint32_t)row[k + i] << 8 * i;
    return word;
}

/* The first block's words that no stage holds: of a segment that does not begin K, straight from memory. */
FP8R_DEVICE void shifted_lead(uint32_t (&lead)[4], const struct fp8r_sm90_args *args,
                              const struct wide_place *place, const struct wide_tile *tile,
                              const struct shifted_rows *rows)
{
    const struct fp8r_sm90_matrix *const b = &args->packed_b;
    const int k = place->first_block * FP8R_SM90_BLOCK_K - FP8R_SM90_SHIFTED_LEAD + threadIdx.x % 4 * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int n = tile->n + rows->column + i % 2;
        const bool wanted = place->first_block > 0 && 16 * (i / 2) < (int)rows->back[i % 2] && n < args->n;
        lead[i] = wanted
                      ? shifted_word(b->data + tile->batch * b->batch + n * b->row, k + 16 * (i / 2), args->k)
                      : 0;
    }
}

/* What lies in front of K, or in front of the segment's first stage. */
FP8R_DEVICE void shifted_begin(uint32_t (&words)[16], const uint32_t (&lead)[4],
                               const struct shifted_rows *rows, bool begins_k)
{
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (begins_k || 16 * (i / 2) < (int)rows->back[i % 2]) words[i] = lead[i];
}

/* What lies behind K belongs to other rows, and may be NaN. left: codes from the block's first one on. */
FP8R_DEVICE void shifted_end(uint32_t (&words)[16], int left)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int rest = left - 16 * i - (int)(threadIdx.x % 4 * 4);
        const uint32_t mask = rest >= 4 ? 0xFFFFFFFFu : rest <= 0 ? 0u : (1u << 8 * rest) - 1;
        words[2 * i] &= mask;
        words[2 * i + 1] &= mask;
    }
}

/* Until here they are in use. */
FP8R_DEVICE void shifted_hold(uint32_t (&words)[16])
{
#pragma unroll
    for (int i = 0; i < 16; ++i)
        asm volatile("" : "+r"(words[i])::"memory");
}

/* A tile of one warpgroup on its way. */
struct shifted_walk {
    struct shifted_rows rows;
    uint32_t lead[4];
    int block; /* done */
    uint32_t before, behind; /* the stage before: address and empty barrier; 0: none */
};

/* The next block's products, and the end of those before, whose words these are. */
template <int N>
FP8R_DEVICE void shifted_block(float (&sums)[N / 2], uint32_t (&words)[16], uint32_t (&others)[16],
                               struct wide_consumer *own, struct shifted_walk *walk)
{
    const struct pipeline *const pipe = own->pipe;
    const int block = own->place->first_block + walk->block;
    const int k = block * FP8R_SM90_BLOCK_K - FP8R_SM90_SHIFTED_LEAD;
    const uint32_t q = own->at.p, here = wgmma_descriptor_address(q);
    reader_wait(&own->at, pipe);
    shifted_read(words, &walk->rows, here, walk->behind ? walk->before : here);
    if (walk->block == 0) shifted_begin(words, walk->lead, &walk->rows, block == 0);
    if (k + FP8R_SM90_BLOCK_K > own->args->k) shifted_end(words, own->args->k - k);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < FP8R_SM90_BLOCK_K / 32; ++step)
        wgmma_registers<N>::run(sums, words + 4 * step, wgmma_descriptor(q + 2 * step),
                                step + walk->block > 0);
    wgmma_commit();
    const uint32_t empty = reader_advance(&own->at, pipe, pipe->stages);
    wgmma_wait<1>();
    shifted_hold(others);
    if (walk->behind) stage_release(pipe, walk->behind);
    walk->before = here;
    walk->behind = empty;
    ++walk->block;
}

/* sums = 64 rows of b times N rows of a, over all blocks of K. */
template <int N>
FP8R_DEVICE void accumulate_shifted(float (&sums)[N / 2], struct wide_consumer *own,
                                    struct shifted_walk *walk)
{
    const int blocks = own->place->blocks;
    uint32_t even[16], odd[16] = {};
    walk->block = 0;
    walk->before = walk->behind = 0;
    for (;;) {
        shifted_block<N>(sums, even, odd, own, walk);
        if (walk->block == blocks) break;
        shifted_block<N>(sums, odd, even, own, walk);
        if (walk->block == blocks) break;
    }
    wgmma_wait<0>();
    shifted_hold(even);
    shifted_hold(odd);
    stage_release(own->pipe, walk->behind);
}

/* Two neighbouring columns from n on, two rows from m on: x, z: of the first row; y, w: of the second.
 * scale_b, bias: of column n; scale_a: of row m. */
FP8R_DEVICE void shifted_store(const struct fp8r_sm90_args *args, int batch, float4 sums, int m, int n,
                               const float *scale_b, const float *bias, const float *scale_a)
{
    const float2 b = *(const float2 *)scale_b, biases = *(const float2 *)bias, a = *(const float2 *)scale_a;
    const bool biased = args->bias != NULL, vectors = args->flags & FP8R_SM90_OUT_VECTORS;
    const float results[2][2] = {
        {finish(sums.x, b.x, a.x, biased, biases.x), finish(sums.z, b.y, a.x, biased, biases.y)},
        {finish(sums.y, b.x, a.y, biased, biases.x), finish(sums.w, b.y, a.y, biased, biases.y)}};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int64_t at = batch * args->out_batch + (int64_t)(m + i) * args->out_row + n;
        if (m + i >= args->m || n >= args->n) continue;
        if (args->out_dtype == FP8R_DTYPE_FP32) {
            float *const to = (float *)args->out + at;
            if (vectors) {
                *(float2 *)to = make_float2(results[i][0], results[i][1]);
            } else {
                to[0] = results[i][0];
                to[1] = results[i][1];
            }
        } else {
            uint16_t *const to = (uint16_t *)args->out + at;
            const uint32_t both = pack_halves(args->out_dtype, results[i][0], results[i][1]);
            if (vectors) {
                *(uint32_t *)to = both;
            } else {
                to[0] = (uint16_t)both;
                to[1] = (uint16_t)(both >> 16);
            }
        }
    }
}

/* The tile's scales: of columns, biases, of rows. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void shifted_store_part(const struct fp8r_sm90_args *args, const struct wide_tile *tile,
                                    float4 sums, int row, int column, const float *scales)
{
    row += threadIdx.x % 4 * 2;
    shifted_store(args, tile->batch, sums, tile->m + row, tile->n + column, scales + column,
                  scales + COLUMNS + column, scales + 2 * COLUMNS + row);
}

/* Parts of 16 columns and 8 rows, of a warp each, meet at their owners, numbers modulo the split, and become
 * results. */
template <int ROWS, int COLUMNS, int GROUPS>
FP8R_DEVICE void shifted_reduce(struct wide_consumer *own, const struct wide_tile *tile, int warp,
                                const float (&sums)[ROWS / 2], const float *scales)
{
    constexpr int each = ROWS / 8, units = 4 * GROUPS * each;
    const struct fp8r_sm90_args *const args = own->args;
    const int split = args->split, rank = own->place->k_rank, lane = threadIdx.x % 32;
    if (args->flags & FP8R_SM90_RECEIVE_IN_STAGES) { /* nobody may still be reading them */
        cluster_arrive_relaxed();
        cluster_wait();
    }
    int owner, slot = divide(warp * each, &args->by_split, &owner);
    const uint32_t memory = own->pipe->tiles + args->receive_offset + rank * 512 + lane * 16;
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const float *s = &sums[4 * j];
        if (tile->m + 8 * j < args->m)
            cluster_store(cluster_address(memory + slot * split * 512, owner),
                          make_float4(s[0], s[1], s[2], s[3]));
        if (++owner == split) {
            owner = 0;
            ++slot;
        }
    }
    barrier_arrive_release(own->barriers->received, 0, split);
    barrier_wait_cluster(own->barriers->received, 0);
    for (slot = warp; slot * split + rank < units; slot += 4 * GROUPS) {
        const int unit = slot * split + rank, from = unit / each, row = unit % each * 8;
        if (tile->m + row >= args->m) continue;
        const float4 *const parts =
            (const float4 *)(own->memory + args->receive_offset) + slot * split * 32 + lane;
        shifted_store_part<ROWS, COLUMNS>(args, tile, sum_parts<32>(parts, split), row,
                                          32 * (from / 2) + lane / 4 * 4 + from % 2 * 2, scales);
    }
}

/* A multiplying warpgroup's way over the tiles. */
template <int GROUPS, int N> FP8R_DEVICE void shifted_consume(struct wide_consumer *own, int warp, int first)
{
    constexpr int columns = GROUPS * 64;
    const struct fp8r_sm90_args *const args = own->args;
    float sums[N / 2];
    struct shifted_walk walk;
    walk.rows = shifted_locate(args, N, warp);
    for (int index = first, count = 0; index < args->tiles; index += args->step, ++count) {
        const struct wide_tile tile = wide_tile_at(args, own->place, index, N, columns);
        shifted_lead(walk.lead, args, own->place, &tile, &walk.rows);
        accumulate_shifted<N>(sums, own, &walk);
        const float *const scales = wide_scales(own, count, 2 * columns + N);
        if (args->split > 1) {
            shifted_reduce<N, columns, GROUPS>(own, &tile, warp, sums, scales);
        } else {
#pragma unroll
            for (int j = 0; j < N / 8; ++j) {
                const float *s = &sums[4 * j];
                shifted_store_part<N, columns>(args, &tile, make_float4(s[0], s[1], s[2], s[3]), 8 * j,
                                               walk.rows.column, scales);
            }
        }
        wide_scales_release(own, count);
    }
}

/* The warp that loads tiles of a: its blocks of K begin in front of K, too. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void shifted_load_a(const struct fp8r_sm90_args *args, const struct wide_block *block)
{
    const struct wide_place *const place = &block->place;
    struct cursor at = cursor_start(&block->pipe);
    grid_wait();
    if (!elected()) return;
    for (int index = block->first; index < args->tiles; index += args->step) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        const int y = tile.m, z = args->a_batch * tile.batch;
        int k = place->first_block * FP8R_SM90_BLOCK_K - FP8R_SM90_SHIFTED_LEAD;
        for (int left = place->blocks; left > 0; --left, k += FP8R_SM90_BLOCK_K) {
            barrier_wait(at.full + FP8R_SM90_EMPTY_OFFSET, at.parity);
            tma_load(at.to, &args->map_a, k, y, z, at.full, FP8R_L2_EVICT_NORMAL);
            cursor_advance(&at, &block->pipe);
        }
    }
}

/* A tile: N rows of a, GROUPS times 64 rows of b. */
template <int GROUPS, int N>
__global__ void __launch_bounds__(FP8R_SM90_WIDE_BOUND(2, FP8R_SM90_SHIFTED_REGISTERS(N)), 1)
    shifted(const __grid_constant__ struct fp8r_sm90_args args)
{
    extern __shared__ uint8_t dynamic_memory[];
    struct wide_block block;
    wide_enter<GROUPS>(&args, dynamic_memory, GROUPS, &block);
    if (block.warp / 4 == GROUPS) {
        registers_shrink<FP8R_SM90_WIDE_LOADER_REGISTERS>();
        if (block.warp == 4 * GROUPS + 2)
            shifted_load_a<N, 64 * GROUPS>(&args, &block);
        else
            wide_load<GROUPS, N, 64 * GROUPS, true>(&args, &block);
    } else {
        registers_grow<FP8R_SM90_WIDE_REGISTERS(FP8R_SM90_SHIFTED_REGISTERS(N))>();
        grid_wait();
        struct wide_consumer own = {&args, &block.place, &block.pipe, &block.barriers, block.memory, 0, 0,
                                    reader_start(&block.pipe, 0, 0, 0, args.stages)};
        shifted_consume<GROUPS, N>(&own, block.warp, block.first);
    }
}

#endif
