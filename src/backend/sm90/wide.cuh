/* Large M. Persistent blocks, one warpgroup that loads, two or three that multiply: rows of a (tokens) on the
 * tensor core's 64-row side, rows of b on the other. Blocks of a cluster share tiles of a and b by multicast,
 * or take a segment of K each. Loads of the next tile are under way while results are stored.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_CUH
#define FP8R_SM90_WIDE_CUH

#include "backend/sm90/mainloop.cuh"
#include "backend/sm90/wide_load.cuh"
#include "backend/sm90/wide_results.cuh"

/* Barriers beside those of the pipeline; of the scales' there are two each. */
struct wide_barriers {
    uint32_t received, scales_full, scales_empty;
};

/* By one thread. senders, users: warps that send partial sums, that multiply a tile. */
FP8R_DEVICE void wide_barriers_init(const struct wide_barriers *barriers, int senders, int users)
{
    barrier_init(barriers->received, senders);
    for (int i = 0; i < 2; ++i) {
        barrier_init(barriers->scales_full + 8 * i, 32);
        barrier_init(barriers->scales_empty + 8 * i, users);
    }
}

/* The first loading warp initialises what it needs itself, so as to begin at once; the second the rest.
 * `sharers`: warpgroups that multiply one tile. */
template <int GROUPS>
FP8R_DEVICE void wide_begin(const struct fp8r_sm90_args *args, const struct pipeline *pipe,
                            const struct wide_barriers *barriers, int warp, int sharers)
{
    if (warp == 4 * GROUPS) {
        if (elected()) {
            for (int stage = 0; stage < args->stages; ++stage)
                barrier_init(pipe->full + 8 * stage, 1);
            barrier_init_fence();
        }
        __syncwarp();
        named_barrier_arrive(FP8R_SM90_READY_BARRIER, FP8R_SM90_WIDE_THREADS(GROUPS));
    } else if (warp == 4 * GROUPS + 1) {
        if (elected()) {
            tma_prefetch_map(&args->map_b);
            tma_prefetch_map(&args->map_a);
            for (int stage = 0; stage < args->stages; ++stage)
                barrier_init(pipe->empty + 8 * stage, 4 * sharers * (args->share_m + args->share_n - 1));
            wide_barriers_init(barriers, 4 * GROUPS * args->split, 4 * sharers);
            barrier_init_fence();
        }
        __syncwarp();
        named_barrier_arrive(FP8R_SM90_EMPTY_BARRIER, 64);
    }
    if (warp != 4 * GROUPS) named_barrier_sync(FP8R_SM90_READY_BARRIER, FP8R_SM90_WIDE_THREADS(GROUPS));
    if (args->by_size.d > 1) {
        cluster_arrive_relaxed();
        if (warp != 4 * GROUPS || pipe->peers) cluster_wait();
    }
}

/* The warp that loads tiles of b. It meets the cluster only now if nobody else writes to its stages. LATE: the next kernel's
 * blocks may come when all is under way, not before: those that lie on multiprocessors left idle from the start crowd
 * some groups of these, whose loads then take longer (docs/worklog.md, sm90 28). Blocks that share tiles stay together
 * anyway. */
template <int ROWS, int COLUMNS, bool LATE = false>
FP8R_DEVICE void wide_load_tiles_of_b(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                 const struct pipeline *pipe, int first)
{
    const bool late = LATE && !pipe->peers;
    const int ahead = first < args->tiles ? min(min(args->ahead, args->stages), place->blocks) : 0;
    if (pipe->peers) named_barrier_sync(FP8R_SM90_EMPTY_BARRIER, 64);
    if (ahead > 0 && elected()) wide_produce_ahead<ROWS, COLUMNS>(args, place, pipe, first, ahead);
    grid_wait();
    if (!pipe->peers) named_barrier_sync(FP8R_SM90_EMPTY_BARRIER, 64);
    if (elected()) {
        if (!late) grid_release();
        wide_produce_b<ROWS, COLUMNS>(args, place, pipe, first, ahead);
        if (late) grid_release();
    }
    if (args->by_size.d > 1 && !pipe->peers) cluster_wait();
}

/* The one that loads tiles of a. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_load_tiles_of_a(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                      const struct pipeline *pipe, int first)
{
    grid_wait();
    if (elected()) wide_produce_a<ROWS, COLUMNS>(args, place, pipe, first);
}

/* The warp that loads scales of b and bias, and, where operands are swapped, of a. scales: two times all. */
template <int ROWS, int COLUMNS, bool SWAPPED = false>
FP8R_DEVICE void wide_load_scales(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                  const struct wide_barriers *barriers, float *scales, int first)
{
    int count = 0;
    grid_wait();
    for (int index = first; index < args->tiles; index += args->step, ++count) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        float *const buffer = scales + count % 2 * (2 * COLUMNS + (SWAPPED ? ROWS : 0));
        barrier_wait(barriers->scales_empty + 8 * (count % 2), (count / 2 & 1) ^ 1);
        stage_columns(args, tile.batch, tile.n, COLUMNS, buffer, buffer + COLUMNS);
        for (int i = threadIdx.x % 32; SWAPPED && i < ROWS; i += 32)
            buffer[2 * COLUMNS + i] = load_scale_a(args, tile.batch, tile.m + i);
        barrier_arrive(barriers->scales_full + 8 * (count % 2));
    }
}

/* The sums of a tile. Warpgroups that alternate wait for their turn and give it on when their last products
 * are under way. */
template <int TILES, int COLUMNS, bool PROMOTE, int TYPES, bool ALTERNATE>
FP8R_DEVICE void wide_multiply(const struct fp8r_sm90_args *args, const struct pipeline *pipe, struct reader *at,
                               int blocks, int group, float (&sums)[TILES][COLUMNS / 2])
{
    if constexpr (PROMOTE) {
        accumulate_in_pairs<COLUMNS, TYPES>(sums, pipe, at, blocks);
    } else if (ALTERNATE) {
        named_barrier_sync(FP8R_SM90_TURN_BARRIER + group, 256);
        accumulate_fast<TILES, COLUMNS, TYPES>(sums, pipe, at, blocks, FP8R_SM90_TURN_BARRIER + (group ^ 1));
        reader_skip(at, pipe, &args->by_stages, blocks);
    } else {
        accumulate_fast<TILES, COLUMNS, TYPES>(sums, pipe, at, blocks);
    }
}

/* A multiplying warpgroup's way over the tiles. memory: the block's, aligned. */
template <int GROUPS, int TILES, int COLUMNS, bool PROMOTE, int TYPES, bool ALTERNATE>
FP8R_DEVICE void wide_consume(const struct fp8r_sm90_args *args, const struct wide_place *place,
                              const struct pipeline *pipe, const struct wide_barriers *barriers,
                              uint8_t *memory, int group, int first)
{
    constexpr int rows = (ALTERNATE ? 1 : GROUPS) * TILES * 64, each = ALTERNATE ? 2 : 1;
    const int lane = threadIdx.x % 32, member = ALTERNATE ? 0 : group;
    const int row = member * (TILES * 64) + threadIdx.x / 32 % 4 * 16; /* of the warp in the tile */
    float *const scales = (float *)(memory + args->scales_offset), *const row_scales = scales + 4 * COLUMNS;
    const uint32_t p_offset = member * (TILES * 64 * FP8R_SM90_BLOCK_K), q_offset = rows * FP8R_SM90_BLOCK_K;
    float sums[TILES][COLUMNS / 2], scale_a[TILES][2];
    struct reader at = reader_start(pipe, p_offset, q_offset, 0, pipe->stages);
    int count = ALTERNATE ? group : 0;
    if (ALTERNATE && group == GROUPS - 1) named_barrier_arrive(FP8R_SM90_TURN_BARRIER, 256);
    if (ALTERNATE && group == 1) reader_skip(&at, pipe, &args->by_stages, place->blocks);
    for (int index = first + count * args->step; index < args->tiles;
         index += each * args->step, count += each) {
        const struct wide_tile tile = wide_tile_at(args, place, index, rows, COLUMNS);
#pragma unroll
        for (int i = 0; i < TILES; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                scale_a[i][half] =
                    load_scale_a(args, tile.batch, tile.m + row + 64 * i + lane / 4 + 8 * half);
        }
        wide_multiply<TILES, COLUMNS, PROMOTE, TYPES, ALTERNATE>(args, pipe, &at, place->blocks, group, sums);
        const float *const scale_b = scales + count % 2 * (2 * COLUMNS), *const bias = scale_b + COLUMNS;
        barrier_wait(barriers->scales_full + 8 * (count % 2), count / 2 & 1);
        if (!ALTERNATE && args->split > 1) {
#pragma unroll
            for (int i = 0; i < TILES; ++i)
                if (lane % 4 < 2)
                    row_scales[row + 64 * i + lane / 4 + 8 * (lane % 4)] =
                        lane % 4 ? scale_a[i][1] : scale_a[i][0];
            wide_reduce<TILES, COLUMNS, GROUPS>(args, place, &tile, sums, memory + args->receive_offset,
                                                pipe->tiles + args->receive_offset, barriers->received,
                                                scale_b, bias, row_scales);
        } else {
            wide_store<TILES, COLUMNS, ALTERNATE>(args, &tile, tile.m + row, sums, scale_b, bias, scale_a);
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(barriers->scales_empty + 8 * (count % 2));
    }
}

/* A multiplying warpgroup: where it stands, and what of the tile is its own. */
struct wide_consumer {
    const struct fp8r_sm90_args *args;
    const struct wide_place *place;
    const struct pipeline *pipe;
    const struct wide_barriers *barriers;
    uint8_t *memory; /* the block's, aligned */
    int group, row;  /* row: the warp's first of the tile */
    struct reader at;
};

/* What the warp that loads scales has stored for the count-th tile, `floats` of them a tile. */
FP8R_DEVICE const float *wide_scales(const struct wide_consumer *own, int count, int floats)
{
    barrier_wait(own->barriers->scales_full + 8 * (count % 2), count / 2 & 1);
    return (const float *)(own->memory + own->args->scales_offset) + count % 2 * floats;
}

FP8R_DEVICE void wide_scales_release(const struct wide_consumer *own, int count)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(own->barriers->scales_empty + 8 * (count % 2));
}

/* Scales of the thread's two rows. */
FP8R_DEVICE void wide_row_scales(const struct wide_consumer *own, const struct wide_tile *tile,
                                 float (&scale_a)[1][2])
{
    const int first = tile->m + own->row + threadIdx.x % 32 / 4;
    scale_a[0][0] = load_scale_a(own->args, tile->batch, first);
    scale_a[0][1] = load_scale_a(own->args, tile->batch, first + 8);
}

/* Results of a block's last tile, the count-th; only that one may be a part of K. With the exchange inside of
 * the loop over tiles the compiler keeps the products' descriptors in registers of the lanes. */
template <int GROUPS, int COLUMNS>
FP8R_DEVICE void wide_last_results(const struct wide_consumer *own, const struct wide_tile *tile,
                                   const float (&sums)[1][COLUMNS / 2], const float (&scale_a)[1][2],
                                   int count)
{
    const struct fp8r_sm90_args *const args = own->args;
    const int lane = threadIdx.x % 32;
    const float *const scale_b = wide_scales(own, count, 2 * COLUMNS), *const bias = scale_b + COLUMNS;
    if (args->split == 1) {
        wide_store<1, COLUMNS, false>(args, tile, tile->m + own->row, sums, scale_b, bias, scale_a);
        return;
    }
    float *const row_scales = (float *)(own->memory + args->scales_offset) + 4 * COLUMNS;
    if (lane % 4 < 2)
        row_scales[own->row + lane / 4 + 8 * (lane % 4)] = lane % 4 ? scale_a[0][1] : scale_a[0][0];
    wide_reduce<1, COLUMNS, GROUPS>(args, own->place, tile, sums, own->memory + args->receive_offset,
                                    own->pipe->tiles + args->receive_offset, own->barriers->received, scale_b,
                                    bias, row_scales);
}

/* The way over the tiles of a warpgroup that promotes in halves. The next tile's first products are under way
 * while this one's results are stored; where these go is worked out before, behind other products: it takes
 * as long as the store itself. */
template <int GROUPS, int COLUMNS, int TYPES>
FP8R_DEVICE void wide_consume_halves(struct wide_consumer *own, int first)
{
    constexpr int rows = GROUPS * 64;
    const struct fp8r_sm90_args *const args = own->args;
    const int blocks = own->place->blocks;
    struct halves<COLUMNS> halves;
    float sums[1][COLUMNS / 2], scale_a[1][2];
    int index = first, count = 0;
    if (first >= args->tiles) return;
    halves_begin<COLUMNS, TYPES>(&halves, own->pipe, &own->at);
    for (; index + args->step < args->tiles; index += args->step, ++count) {
        const int left = halves_walk<COLUMNS, TYPES>(sums, &halves, own->pipe, &own->at, blocks);
        const struct wide_tile tile = wide_tile_at(args, own->place, index, rows, COLUMNS);
        wide_row_scales(own, &tile, scale_a);
        halves_end<COLUMNS, TYPES, false>(sums, &halves, own->pipe, &own->at, left);
        const float *const scale_b = wide_scales(own, count, 2 * COLUMNS);
        wide_store<1, COLUMNS, false>(args, &tile, tile.m + own->row, sums, scale_b, scale_b + COLUMNS,
                                      scale_a);
        wide_scales_release(own, count);
    }
    const struct wide_tile tile = wide_tile_at(args, own->place, index, rows, COLUMNS);
    wide_row_scales(own, &tile, scale_a);
    const int left = halves_walk<COLUMNS, TYPES>(sums, &halves, own->pipe, &own->at, blocks);
    halves_end<COLUMNS, TYPES, true>(sums, &halves, own->pipe, &own->at, left);
    wide_last_results<GROUPS, COLUMNS>(own, &tile, sums, scale_a, count);
}

/* GROUPS warpgroups multiply, each TILES times 64 rows of a with COLUMNS rows of b: parts of one tile, or,
 * where they ALTERNATE, a tile each, so that the stores of one are hidden by the products of the other. */
template <int GROUPS, int TILES, int COLUMNS, bool PROMOTE, int TYPES, bool ALTERNATE = false>
__global__ void __launch_bounds__(FP8R_SM90_WIDE_BOUND(GROUPS, TILES *COLUMNS / 2 * (PROMOTE ? 2 : 1)), 1)
    wide(const __grid_constant__ struct fp8r_sm90_args args)
{
    constexpr int sharers = ALTERNATE ? 1 : GROUPS, rows = sharers * TILES * 64;
    extern __shared__ uint8_t dynamic_memory[];
    const uint32_t raw = smem_address(dynamic_memory), memory = kept((raw + 1023) & ~1023u);
    uint8_t *const memory_pointer = dynamic_memory + (memory - raw);
    const int warp = (int)kept(threadIdx.x / 32), group = warp / 4;
    int rest;
    const int first = divide(blockIdx.x, &args.by_size, &rest);
    const struct wide_place place = wide_locate(&args);
    const uint32_t full = memory + args.barriers_offset, received = full + 16 * FP8R_SM90_STAGES_MAX;
    const struct wide_barriers barriers = {received, received + 8, received + 24};
    const uint32_t peers = args.share_m * args.share_n > 1 ? (uint32_t)(place.share_a | place.share_b) : 0u;
    const struct pipeline pipe = {
        memory, full, full + 8 * FP8R_SM90_STAGES_MAX, args.stages, args.stage_bytes, 1, 1, 0, 0, peers, false, false};
    wide_begin<GROUPS>(&args, &pipe, &barriers, warp, sharers);
    if (group == GROUPS) {
        registers_shrink<FP8R_SM90_WIDE_LOADER_REGISTERS>();
        if (warp == 4 * GROUPS)
            wide_load_tiles_of_b<rows, COLUMNS, true>(&args, &place, &pipe, first);
        else if (warp == 4 * GROUPS + 2)
            wide_load_tiles_of_a<rows, COLUMNS>(&args, &place, &pipe, first);
        else if (warp == 4 * GROUPS + 1)
            wide_load_scales<rows, COLUMNS>(&args, &place, &barriers,
                                            (float *)(memory_pointer + args.scales_offset), first);
    } else {
        registers_grow<FP8R_SM90_WIDE_REGISTERS(TILES * COLUMNS / 2 * (PROMOTE ? 2 : 1))>();
        grid_wait();
        if constexpr (PROMOTE && !FP8R_SM90_WIDE_PAIRS(TILES, COLUMNS)) {
            struct wide_consumer own = {&args,
                                        &place,
                                        &pipe,
                                        &barriers,
                                        memory_pointer,
                                        group,
                                        group * 64 + warp % 4 * 16,
                                        reader_start(&pipe, group * (64 * FP8R_SM90_BLOCK_K),
                                                     rows * FP8R_SM90_BLOCK_K, 0, args.stages)};
            wide_consume_halves<GROUPS, COLUMNS, TYPES>(&own, first);
        } else {
            wide_consume<GROUPS, TILES, COLUMNS, PROMOTE, TYPES, ALTERNATE>(&args, &place, &pipe, &barriers,
                                                                            memory_pointer, group, first);
        }
    }
}

#endif
