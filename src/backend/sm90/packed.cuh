/* The wide family for operands that the copy engine does not take: rows of any pitch from any address. As
 * wide.cuh, but that warpgroups fill the stages. What multiplies and stores is the same, and so are the bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_PACKED_CUH
#define FP8R_SM90_PACKED_CUH

#include "backend/sm90/packed_load.cuh"
#include "backend/sm90/wide.cuh"

/* What a loading warpgroup knows from tile to tile. */
struct packed_loader {
    const struct fp8r_sm90_args *args;
    const struct wide_place *place;
    const struct pipeline *pipe;
    struct wide_barriers barriers;
    struct cursor at, before; /* the stage of a window's block, of the block before it */
    int first, end;           /* blocks of K */
    int number;               /* of the loading warpgroups */
};

/* Which window comes next into the ring, and of which tile. */
struct packed_feed {
    struct packed_rows a, b;
    int index, block;
};

FP8R_DEVICE void packed_begin(const struct fp8r_sm90_args *args, const struct pipeline *pipe,
                              const struct wide_barriers *barriers, int groups)
{
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < args->stages; ++stage) {
            barrier_init(pipe->full + 8 * stage, 4 * FP8R_SM90_PACKED_LOADERS);
            barrier_init(pipe->empty + 8 * stage, 4 * groups);
        }
        wide_barriers_init(barriers, 4 * groups * args->split, 4 * groups);
        barrier_init_fence();
    }
    __syncthreads();
    if (args->by_size.d > 1) {
        cluster_arrive_relaxed();
        cluster_wait();
    }
}

/* Where this thread's rows of a tile lie. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void packed_locate_tile(const struct packed_loader *loader, const struct wide_tile *tile,
                                    struct packed_rows *a, struct packed_rows *b)
{
    const struct fp8r_sm90_args *const args = loader->args;
    *a =
        packed_locate(args->packed_a.data + tile->batch * args->packed_a.batch + tile->m * args->packed_a.row,
                      args->packed_a.row, min(args->m - tile->m, ROWS), 0, loader->number);
    *b = packed_locate(
        args->packed_b.data + tile->batch * args->packed_b.batch + tile->n * args->packed_b.row,
        args->packed_b.row, min(args->n - tile->n, COLUMNS), ROWS * FP8R_SM90_BLOCK_K, loader->number);
}

/* Which operands a window is fetched of. */
enum { PACKED_A = 1, PACKED_B = 2 };

/* The next window, one more of a tile than it has blocks of K, on its way to this place in the ring; nothing
 * behind the last one. */
template <int ROWS, int COLUMNS, int A, int B, int OPERANDS>
FP8R_DEVICE void packed_feed_next(const struct packed_loader *loader, struct packed_feed *feed, uint32_t to)
{
    const struct fp8r_sm90_args *const args = loader->args;
    const int block = feed->block;
    const bool beyond = block == loader->end;
    if (feed->index >= args->tiles) return;
    if (block > 0 && block < min((args->k - 1) / FP8R_SM90_BLOCK_K, loader->end)) {
        if (OPERANDS & PACKED_A)
            packed_fetch<A, true>(to, &feed->a, args->packed_a.end, args->k, block, false);
        if (OPERANDS & PACKED_B)
            packed_fetch<B, true>(to + A * FP8R_SM90_PACKED_APART, &feed->b, args->packed_b.end, args->k,
                                  block, false);
    } else {
        if (OPERANDS & PACKED_A)
            packed_fetch<A, false>(to, &feed->a, args->packed_a.end, args->k, block, beyond);
        if (OPERANDS & PACKED_B)
            packed_fetch<B, false>(to + A * FP8R_SM90_PACKED_APART, &feed->b, args->packed_b.end, args->k,
                                   block, beyond);
    }
    if (++feed->block <= loader->end) return;
    feed->block = loader->first;
    feed->index += args->step;
    const struct wide_tile tile = wide_tile_at(args, loader->place, feed->index, ROWS, COLUMNS);
    packed_locate_tile<ROWS, COLUMNS>(loader, &tile, &feed->a, &feed->b);
}

/* The ring's first turn. Weights that are static need not wait for the kernels in front. */
template <int ROWS, int COLUMNS, int A, int B>
FP8R_DEVICE void packed_feed_first(const struct packed_loader *loader, struct packed_feed *feed,
                                   uint32_t ring, uint32_t ring_end)
{
    constexpr int window_bytes = (A + B) * FP8R_SM90_PACKED_APART;
    const struct wide_tile tile = wide_tile_at(loader->args, loader->place, feed->index, ROWS, COLUMNS);
    packed_locate_tile<ROWS, COLUMNS>(loader, &tile, &feed->a, &feed->b);
    struct packed_feed ahead = *feed;
    if (loader->args->ahead == 0) grid_wait();
#pragma unroll 1
    for (uint32_t to = ring; to != ring_end; to += window_bytes)
        packed_feed_next<ROWS, COLUMNS, A, B, PACKED_B>(loader, &ahead, to);
    grid_wait();
    if (loader->number == 0 && threadIdx.x % 128 == 0) grid_release();
#pragma unroll 1
    for (uint32_t to = ring; to != ring_end; to += window_bytes) {
        packed_feed_next<ROWS, COLUMNS, A, B, PACKED_A>(loader, feed, to);
        packed_commit();
    }
}

/* A tile's rows of this thread, and where their words go. */
struct packed_tile {
    struct packed_rows a, b;
    struct packed_words a_words, b_words;
};

/* A window from the ring into its stages. */
template <int A, int B, bool BYTES, bool BEYOND>
FP8R_DEVICE void packed_fill_both(uint32_t here, uint32_t before, const struct packed_tile *tile,
                                  uint32_t from, uint32_t (&a_last)[A], uint32_t (&b_last)[B])
{
    packed_fill<A, BYTES, BEYOND>(here, before, &tile->a, &tile->a_words, from, a_last);
    packed_fill<B, BYTES, BEYOND>(here, before, &tile->b, &tile->b_words, from + A * FP8R_SM90_PACKED_APART,
                                  b_last);
}

/* A window into this block's stage, as soon as that is free, and the one before, which is whole then. What
 * the first one holds for a block before goes where the next will store words of this block; the one behind
 * the last has no block. */
template <int A, int B, bool BYTES>
FP8R_DEVICE void packed_store_window(struct packed_loader *loader, const struct packed_tile *tile,
                                     uint32_t (&a_last)[A], uint32_t (&b_last)[B], uint32_t from, int block)
{
    struct cursor *const at = &loader->at;
    const bool is_first = block == loader->first, is_beyond = block == loader->end;
    const uint32_t before = is_first ? at->to : loader->before.to;
    if (is_beyond) {
        packed_fill_both<A, B, BYTES, true>(0, before, tile, from, a_last, b_last);
    } else {
        barrier_wait(at->full + FP8R_SM90_EMPTY_OFFSET, at->parity);
        packed_fill_both<A, B, BYTES, false>(at->to, before, tile, from, a_last, b_last);
    }
    __syncwarp();
    if (!is_first && threadIdx.x % 32 == 0) barrier_arrive(loader->before.full);
    if (is_beyond) return;
    loader->before = *at;
    cursor_advance(at, loader->pipe);
}

/* One warp stages scales and bias of a tile's columns. count: tiles before it. */
template <int COLUMNS>
FP8R_DEVICE void packed_stage_scales(const struct packed_loader *loader, const struct wide_tile *tile,
                                     float *scales, int count)
{
    const struct wide_barriers *const barriers = &loader->barriers;
    float *const buffer = scales + count % 2 * (2 * COLUMNS);
    barrier_wait(barriers->scales_empty + 8 * (count % 2), (count / 2 & 1) ^ 1);
    stage_columns(loader->args, tile->batch, tile->n, COLUMNS, buffer, buffer + COLUMNS);
    barrier_arrive(barriers->scales_full + 8 * (count % 2));
}

/* A loading warpgroup's way over the tiles. ring: this thread's places in shared memory, RING windows of
 * them, always on their way. scales: two times those of a tile's columns and its bias. */
template <int GROUPS, int COLUMNS, bool BYTES>
FP8R_DEVICE void packed_produce(struct packed_loader *loader, uint32_t ring, float *scales, int first)
{
    constexpr int rows = 64 * GROUPS, a_steps = FP8R_SM90_PACKED_STEPS(rows),
                  b_steps = FP8R_SM90_PACKED_STEPS(COLUMNS), windows = FP8R_SM90_PACKED_RING(GROUPS, COLUMNS),
                  window_bytes = FP8R_SM90_PACKED_WINDOW_BYTES(GROUPS, COLUMNS);
    const struct fp8r_sm90_args *const args = loader->args;
    const bool stages_scales = loader->number == 0 && threadIdx.x / 32 % 4 == 0;
    const uint32_t ring_end = ring + windows * window_bytes;
    uint32_t from = ring, a_last[a_steps] = {}, b_last[b_steps] = {};
    struct packed_feed feed = {{}, {}, first, loader->first};
    packed_feed_first<rows, COLUMNS, a_steps, b_steps>(loader, &feed, ring, ring_end);
    int count = 0;
#pragma unroll 1
    for (int index = first; index < args->tiles; index += args->step, ++count) {
        const struct wide_tile tile = wide_tile_at(args, loader->place, index, rows, COLUMNS);
        struct packed_tile own;
        packed_locate_tile<rows, COLUMNS>(loader, &tile, &own.a, &own.b);
        own.a_words = packed_words_of<BYTES>(&own.a);
        own.b_words = packed_words_of<BYTES>(&own.b);
        if (stages_scales) packed_stage_scales<COLUMNS>(loader, &tile, scales, count);
#pragma unroll 1
        for (int block = loader->first; block <= loader->end; ++block) {
            packed_wait<windows - 1>();
            packed_store_window<a_steps, b_steps, BYTES>(loader, &own, a_last, b_last, from, block);
            packed_feed_next<rows, COLUMNS, a_steps, b_steps, PACKED_A | PACKED_B>(loader, &feed, from);
            packed_commit();
            from += window_bytes;
            if (from == ring_end) from = ring;
        }
    }
}

/* Does a row begin inside of a word? */
FP8R_DEVICE bool packed_by_bytes(const struct fp8r_sm90_matrix *matrix)
{
    return ((uint64_t)(uintptr_t)matrix->data | (uint64_t)matrix->row | (uint64_t)matrix->batch) & 3;
}

/* The loading warpgroups; all of them arrive for each stage. */
template <int GROUPS, int COLUMNS>
FP8R_DEVICE void packed_load(const struct fp8r_sm90_args *args, const struct wide_place *place,
                             const struct pipeline *pipe, const struct wide_barriers *barriers, float *scales,
                             int number, int first)
{
    struct packed_loader loader = {args,
                                   place,
                                   pipe,
                                   *barriers,
                                   cursor_start(pipe),
                                   cursor_start(pipe),
                                   place->first_block,
                                   place->first_block + place->blocks,
                                   number};
    const uint32_t ring = pipe->tiles + pipe->stages * pipe->stage_bytes + 16 * (threadIdx.x - 128 * GROUPS);
    if (packed_by_bytes(&args->packed_a) || packed_by_bytes(&args->packed_b))
        packed_produce<GROUPS, COLUMNS, true>(&loader, ring, scales, first);
    else
        packed_produce<GROUPS, COLUMNS, false>(&loader, ring, scales, first);
}

/* GROUPS warpgroups multiply, 64 rows of a each with COLUMNS rows of b. */
template <int GROUPS, int COLUMNS, bool PROMOTE, int TYPES>
__global__ void __launch_bounds__(FP8R_SM90_PACKED_THREADS(GROUPS), 1)
    packed(const __grid_constant__ struct fp8r_sm90_args args)
{
    extern __shared__ uint8_t dynamic_memory[];
    const uint32_t raw = smem_address(dynamic_memory), memory = kept((raw + 1023) & ~1023u);
    uint8_t *const memory_pointer = dynamic_memory + (memory - raw);
    const int group = (int)kept(threadIdx.x / 128);
    int rest;
    const int first = divide(blockIdx.x, &args.by_size, &rest);
    const struct wide_place place = wide_locate(&args);
    constexpr bool trades = FP8R_SM90_PACKED_TRADES(COLUMNS / 2 * (PROMOTE ? 3 : 1));
    const uint32_t full = memory + args.barriers_offset, received = full + 16 * FP8R_SM90_STAGES_MAX;
    const struct wide_barriers barriers = {received, received + 8, received + 24};
    const struct pipeline pipe = {
        memory, full, full + 8 * FP8R_SM90_STAGES_MAX, args.stages, args.stage_bytes, 1, 1, 0, 0, 0, true, false};
    packed_begin(&args, &pipe, &barriers, GROUPS);
    if (group >= GROUPS) {
        if constexpr (trades) registers_shrink<FP8R_SM90_PACKED_LOADER_REGISTERS>();
        packed_load<GROUPS, COLUMNS>(&args, &place, &pipe, &barriers,
                                     (float *)(memory_pointer + args.scales_offset), group - GROUPS, first);
    } else {
        if constexpr (trades) registers_grow<FP8R_SM90_PACKED_REGISTERS>();
        grid_wait();
        wide_consume<GROUPS, 1, COLUMNS, PROMOTE, TYPES, false>(&args, &place, &pipe, &barriers,
                                                                memory_pointer, group, first);
    }
}

#endif
