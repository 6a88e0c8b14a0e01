/* Large and small M over rows of b that the copy engine takes by eights only: their pitch is a multiple of 4
 * bytes, and not of 16. Eight rows are a multiple of 32 bytes then, so that one map brings rows of all eight classes
 * (row % 8), each from a sector of the L2 on, up to 112 bytes in front of it; warps read their words from where
 * they are into registers, as the tensor core's first operand. Operands are swapped as in wide_swapped.cuh; rows
 * of a are 16-byte granules, or were copied in front (shifted_copy.cu). SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SHIFTED_CUH
#define FP8R_SM90_SHIFTED_CUH

#include "backend/sm90/eights_shift.h"
#include "backend/sm90/wgmma_registers.cuh"
#include "backend/sm90/wide_swapped.cuh"

/* What a thread reads of a block of b: rows lane / 4 and lane / 4 + 8 of its warp's part of the product, in eight
 * steps of 16 codes. In the stage rows lie in the order of their classes, so that what eight lanes read begins
 * in as many banks; where a row begins inside of its first block, a block's last words are in the next stage. */
struct shifted_rows {
    uint32_t word[16]; /* where they are, from the block's stage on, as if the ring had no end; the rows in turn */
    uint32_t next;     /* a bit for each in the next stage */
    int column;        /* of the tile: of out, the first of two neighbours */
};

/* Of a lane's results. warp: of those that multiply. */
FP8R_DEVICE int shifted_column(int warp)
{
    return 64 * (warp / 4) + threadIdx.x % 32 / 4 * 8 + warp % 4 * 2;
}

/* tokens: rows of a in front of those of b, of which there are `groups` times eight of a class. */
FP8R_DEVICE struct shifted_rows shifted_locate(const struct fp8r_sm90_args *args, int tokens, int groups, int warp)
{
    struct shifted_rows rows;
    const int lane = threadIdx.x % 32, pair = warp % 4 * 2;
    rows.column = shifted_column(warp);
    rows.next = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int from = lane % 4 * 4 +
                         fp8r_sm90_eights_shift((uintptr_t)args->packed_b.data, args->packed_b.row, pair + half);
        const uint32_t row = (tokens + 8 * groups * (pair + half) + warp / 4 * 8 + lane / 4) * FP8R_SM90_BLOCK_K;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int at = from + 16 * i;
            rows.word[2 * i + half] = row + (at & 15) + ((at & 0x70) ^ lane / 4 * 16) + /* swizzled */
                                      (at < FP8R_SM90_BLOCK_K ? 0 : args->stage_bytes);
            rows.next |= (at < FP8R_SM90_BLOCK_K ? 0u : 1u) << (2 * i + half);
        }
    }
    return rows;
}

FP8R_DEVICE uint32_t shared_word(uint32_t from)
{
    uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
    return value;
}

/* A block's words. turn: bytes from the ring's end to its beginning, if the next stage is its first; else 0. */
FP8R_DEVICE void shifted_read(uint32_t (&words)[16], const struct shifted_rows *rows, uint32_t here, uint32_t turn)
{
    if (turn == 0) {
#pragma unroll
        for (int i = 0; i < 16; ++i)
            words[i] = shared_word(here + rows->word[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 16; ++i)
            words[i] = shared_word(here + rows->word[i] - (rows->next >> i & 1 ? turn : 0));
    }
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
    int block;               /* done */
    uint32_t behind, empty; /* the stage with the block's first words, and its empty barrier */
};

/* The next block's products, and the end of those before, whose words these are. */
template <int N>
FP8R_DEVICE void shifted_block(float (&sums)[N / 2], uint32_t (&words)[16], uint32_t (&others)[16],
                               struct wide_consumer *own, struct shifted_walk *walk)
{
    const struct pipeline *const pipe = own->pipe;
    const int left = own->args->k - (own->place->first_block + walk->block) * FP8R_SM90_BLOCK_K;
    const uint32_t q = own->at.p, here = wgmma_descriptor_address(q);
    reader_wait(&own->at, pipe);
    shifted_read(words, &walk->rows, walk->behind,
                 here < walk->behind ? pipe->stages * pipe->stage_bytes : 0);
    if (left < FP8R_SM90_BLOCK_K) shifted_end(words, left);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < FP8R_SM90_BLOCK_K / 32; ++step)
        wgmma_registers<N>::run(sums, words + 4 * step, wgmma_descriptor(q + 2 * step),
                                step + walk->block > 0);
    wgmma_commit();
    const uint32_t empty = reader_advance(&own->at, pipe, pipe->stages);
    wgmma_wait<1>();
    shifted_hold(others);
    stage_release(pipe, walk->empty);
    walk->behind = here;
    walk->empty = empty;
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
    walk->behind = wgmma_descriptor_address(own->at.p);
    reader_wait(&own->at, own->pipe);
    walk->empty = reader_advance(&own->at, own->pipe, own->pipe->stages);
    for (;;) {
        shifted_block<N>(sums, even, odd, own, walk);
        if (walk->block == blocks) break;
        shifted_block<N>(sums, odd, even, own, walk);
        if (walk->block == blocks) break;
    }
    wgmma_wait<0>();
    shifted_hold(even);
    shifted_hold(odd);
    stage_release(own->pipe, walk->empty);
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

/* Words of four columns pairs that a lane finds turned by its row, in order. */
FP8R_DEVICE uint4 unturned(uint4 words, int turn)
{
    if (turn & 1) words = make_uint4(words.y, words.x, words.w, words.z);
    if (turn & 2) words = make_uint4(words.z, words.w, words.x, words.y);
    return words;
}

/* A warpgroup's 64 columns of a tile, through shared memory: a lane has two of each eight, four warps have them all.
 * Words of a row are turned so that no bank is met twice. column: the warpgroup's first; memory: its own. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void shifted_store_lines(const struct fp8r_sm90_args *args, const struct wide_tile *tile, int column,
                                     uint8_t *memory, const float (&sums)[ROWS / 2], const float *scales)
{
    constexpr int lines = ROWS < FP8R_SM90_SHIFTED_LINES ? ROWS : FP8R_SM90_SHIFTED_LINES;
    const int thread = threadIdx.x % 128, lane = thread % 32, own = shifted_column(thread / 32);
    const bool biased = args->bias != NULL;
    const float2 b = *(const float2 *)(scales + column + own),
                 biases = *(const float2 *)(scales + COLUMNS + column + own);
    uint32_t *const to = (uint32_t *)memory + lane % 4 * 64 + lane / 4 * 4 + (thread / 32 ^ lane % 4);
    uint16_t *const out = (uint16_t *)args->out + tile->batch * args->out_batch;
    const int n = tile->n + column + thread % 8 * 8;
#pragma unroll
    for (int first = 0; first < ROWS; first += lines) {
        if (tile->m + first >= args->m) break;
        named_barrier_sync(FP8R_SM90_LINES_BARRIER + column / 64, 128); /* nobody still reads them */
#pragma unroll
        for (int row = first; row < first + lines; row += 8) {
            const float *const s = &sums[row / 2];
            const float2 a = *(const float2 *)(scales + 2 * COLUMNS + row + lane % 4 * 2);
            to[(row - first) * 32] = pack_halves(args->out_dtype, finish(s[0], b.x, a.x, biased, biases.x),
                                                 finish(s[2], b.y, a.x, biased, biases.y));
            to[(row - first) * 32 + 32] = pack_halves(args->out_dtype, finish(s[1], b.x, a.y, biased, biases.x),
                                                      finish(s[3], b.y, a.y, biased, biases.y));
        }
        named_barrier_sync(FP8R_SM90_LINES_BARRIER + column / 64, 128);
#pragma unroll
        for (int row = thread / 8; row < lines; row += 16) {
            const uint4 line = unturned(((const uint4 *)memory)[row * 8 + thread % 8], row / 2 % 4);
            const int m = tile->m + first + row;
            if (m < args->m && n < args->n) *(uint4 *)(out + m * args->out_row + n) = line;
        }
    }
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
                                          shifted_column(from), scales);
    }
}

/* The tile's few rows of a, whole words, all of the segment's blocks of K at once, into the ring's first stages, which nobody else
 * fills and the copy engine only beside them. By one warpgroup: eight lanes a row. */
FP8R_DEVICE void shifted_gather(const struct wide_consumer *own, const struct wide_tile *tile)
{
    const struct fp8r_sm90_matrix *const a = &own->args->packed_a;
    const int row = threadIdx.x / 8, at = threadIdx.x % 8, blocks = own->place->blocks;
    const uint8_t *const from = a->data + tile->batch * a->batch + (tile->m + row) * a->row;
    const int extent = tile->m + row < own->args->m ? own->args->k : 0;
    const int k = own->place->first_block * FP8R_SM90_BLOCK_K + at * 16;
    uint8_t *const to = own->memory + row * FP8R_SM90_BLOCK_K + (at ^ row % 8) * 16; /* swizzled */
    uint32_t words[FP8R_SM90_GATHER_BLOCKS][4];
#pragma unroll
    for (int i = 0; i < FP8R_SM90_GATHER_BLOCKS; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int word = k + i * FP8R_SM90_BLOCK_K + 4 * j;
            words[i][j] = i < blocks && word < extent ? *(const uint32_t *)(from + word) : 0;
        }
    }
#pragma unroll
    for (int i = 0; i < FP8R_SM90_GATHER_BLOCKS; ++i)
        if (i < blocks)
            *(uint4 *)(to + (i + 1) * own->args->stage_bytes) =
                make_uint4(words[i][0], words[i][1], words[i][2], words[i][3]);
    async_fence();
    named_barrier_sync(FP8R_SM90_LINES_BARRIER, 128);
}

/* A multiplying warpgroup's way over the tiles. */
template <int GROUPS, int N> FP8R_DEVICE void shifted_consume(struct wide_consumer *own, int warp, int first)
{
    constexpr int columns = GROUPS * 64;
    const struct fp8r_sm90_args *const args = own->args;
    float sums[N / 2];
    struct shifted_walk walk;
    walk.rows = shifted_locate(args, N, GROUPS, warp);
    for (int index = first, count = 0; index < args->tiles; index += args->step, ++count) {
        const struct wide_tile tile = wide_tile_at(args, own->place, index, N, columns);
        if (N == FP8R_SM90_GATHER_ROWS && args->flags & FP8R_SM90_GATHERS) shifted_gather(own, &tile);
        accumulate_shifted<N>(sums, own, &walk);
        const float *const scales = wide_scales(own, count, 2 * columns + N);
        if (args->split > 1) {
            shifted_reduce<N, columns, GROUPS>(own, &tile, warp, sums, scales);
        } else if (args->flags & FP8R_SM90_OUT_LINES) {
            shifted_store_lines<N, columns>(args, &tile, warp / 4 * 64,
                                            own->memory + args->receive_offset + warp / 4 * (128 * FP8R_SM90_SHIFTED_LINES),
                                            sums, scales);
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

/* The warp that loads tiles of a. A tile's first stage has none of it. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void shifted_load_a(const struct fp8r_sm90_args *args, const struct wide_block *block)
{
    const struct wide_place *const place = &block->place;
    struct cursor at = cursor_start(&block->pipe);
    grid_wait();
    if (args->flags & FP8R_SM90_GATHERS || !elected()) return;
    for (int index = block->first; index < args->tiles; index += args->step) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        const int y = tile.m, z = args->a_batch * tile.batch;
        int k = place->first_block * FP8R_SM90_BLOCK_K;
        cursor_advance(&at, &block->pipe);
        for (int left = place->blocks; left > 0; --left, k += FP8R_SM90_BLOCK_K) {
            barrier_wait(at.full + FP8R_SM90_EMPTY_OFFSET, at.parity);
            tma_load(at.to, &args->map_a, k, y, z, at.full, FP8R_L2_EVICT_NORMAL);
            cursor_advance(&at, &block->pipe);
        }
    }
}

/* Stages begin .. end - 1 of a tile of b, by the thread that also says how much a stage will hold. fresh: no stage has
 * to be waited for. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void shifted_produce_b(const struct fp8r_sm90_args *args, const struct wide_block *block, int index,
                                   struct cursor *at, int begin, int end, bool fresh)
{
    const struct wide_tile tile = wide_tile_at(args, &block->place, index, ROWS, COLUMNS);
    const int y = tile.n / FP8R_SM90_SHIFTED_GROUP + args->b_groups * tile.batch;
    int k = (block->place.first_block + begin) * FP8R_SM90_BLOCK_K;
    uint32_t bytes = begin == 0 ? COLUMNS * FP8R_SM90_BLOCK_K : args->load_bytes;
    for (int left = end - begin; left > 0; --left, k += FP8R_SM90_BLOCK_K) {
        if (!fresh) barrier_wait(at->full + FP8R_SM90_EMPTY_OFFSET, at->parity);
        barrier_expect(at->full, bytes);
        tma_load_5d(at->to + ROWS * FP8R_SM90_BLOCK_K, &args->map_b, k, y, 0, 0, 0, at->full, FP8R_L2_EVICT_NORMAL);
        cursor_advance(at, &block->pipe);
        bytes = args->load_bytes;
    }
}

/* The warp that loads tiles of b: a stage more than there are blocks of K. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void shifted_load_b(const struct fp8r_sm90_args *args, const struct wide_block *block)
{
    const int stages = block->place.blocks + 1;
    int ahead = block->first < args->tiles ? min(min(args->ahead, args->stages), stages) : 0;
    struct cursor at = cursor_start(&block->pipe);
    if (ahead > 0 && elected()) shifted_produce_b<ROWS, COLUMNS>(args, block, block->first, &at, 0, ahead, true);
    grid_wait();
    named_barrier_sync(FP8R_SM90_EMPTY_BARRIER, 64);
    if (elected()) {
        grid_release();
        at = cursor_start(&block->pipe);
        cursor_skip(&at, &block->pipe, ahead);
        for (int index = block->first; index < args->tiles; index += args->step, ahead = 0)
            shifted_produce_b<ROWS, COLUMNS>(args, block, index, &at, ahead, stages, false);
    }
    if (args->by_size.d > 1) cluster_wait();
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
        if (block.warp == 4 * GROUPS)
            shifted_load_b<N, 64 * GROUPS>(&args, &block);
        else if (block.warp == 4 * GROUPS + 2)
            shifted_load_a<N, 64 * GROUPS>(&args, &block);
        else if (block.warp == 4 * GROUPS + 1)
            wide_load_scales<N, 64 * GROUPS, true>(&args, &block.place, &block.barriers,
                                                   (float *)(block.memory + args.scales_offset), block.first);
    } else {
        registers_grow<FP8R_SM90_WIDE_REGISTERS(FP8R_SM90_SHIFTED_REGISTERS(N))>();
        grid_wait();
        struct wide_consumer own = {&args, &block.place, &block.pipe, &block.barriers, block.memory, 0, 0,
                                    reader_start(&block.pipe, 0, 0, 0, args.stages)};
        shifted_consume<GROUPS, N>(&own, block.warp, block.first);
    }
}

#endif
