/* Large M. Persistent blocks, one warpgroup that loads, two or three that multiply: rows of a (tokens) on the
 * tensor core's 64-row side, rows of b on the other. Blocks of a cluster share tiles of a and b by multicast,
 * or take a segment of K each. Loads of the next tile are under way while results are stored.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_CUH
#define FP8R_SM90_WIDE_CUH

#include "backend/sm90/epilogue.cuh"
#include "backend/sm90/mainloop.cuh"
#include "backend/sm90/wide_load.cuh"

/* Units of a split's reduction: 16 rows and 16 columns of out, 1024 bytes; owned as in the skinny family.
 * memory: where partial sums are received; scale_a: of the tile's rows, in shared memory. */
template <int TILES, int COLUMNS, int GROUPS>
FP8R_DEVICE void wide_reduce(const struct fp8r_sm90_args *args, const struct wide_place *place,
                             const struct wide_tile *tile, const float (&sums)[TILES][COLUMNS / 2],
                             uint8_t *memory, uint32_t memory_address, uint32_t received,
                             const float *scale_b, const float *bias, const float *scale_a)
{
    constexpr int per_row = COLUMNS / 16, units = GROUPS * 4 * TILES * per_row;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_rank = args->split * (place->m_rank + args->share_m * place->n_rank);
    if (args->flags & FP8R_SM90_RECEIVE_IN_STAGES) { /* nobody may still be reading them */
        cluster_arrive_relaxed();
        cluster_wait();
    }
    int owner, slot = divide(warp * TILES * per_row, &args->by_split, &owner);
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
        const bool exist = tile->m + (warp / 4 * TILES + i) * 64 + warp % 4 * 16 < args->m;
#pragma unroll
        for (int j = 0; j < per_row; ++j) {
            const uint32_t at = memory_address + (slot * args->split + place->k_rank) * 1024 + lane * 16;
            const uint32_t remote = cluster_address(at, first_rank + owner);
            const float *s = &sums[i][8 * j];
            if (exist) {
                cluster_store(remote, make_float4(s[0], s[1], s[2], s[3]));
                cluster_store(remote + 512, make_float4(s[4], s[5], s[6], s[7]));
            }
            if (++owner == args->split) {
                owner = 0;
                ++slot;
            }
        }
    }
    barrier_arrive_release(received, first_rank, args->split);
    barrier_wait_cluster(received, 0);
    uint16_t *const out = (uint16_t *)args->out + tile->batch * args->out_batch;
    const bool fours = args->flags & FP8R_SM90_OUT_FOURS;
#pragma unroll 2
    for (slot = warp; slot * args->split + place->k_rank < units; slot += 4 * GROUPS) {
        const int unit = slot * args->split + place->k_rank;
        const int from = unit / per_row; /* warp and tile that held it */
        const int row = (from / TILES / 4 * TILES + from % TILES) * 64 + from / TILES % 4 * 16;
        const int column = unit % per_row * 16;
        if (tile->m + row >= args->m) continue; /* nothing was sent */
        const float4 *parts = (const float4 *)memory + slot * args->split * 64 + lane;
        const float4 sum[2] = {sum_parts<64>(parts, args->split), sum_parts<64>(parts + 32, args->split)};
        const float scales[2] = {scale_a[row + lane / 4], scale_a[row + lane / 4 + 8]};
        if (fours && !args->bias)
            store_straight_fours<false>(args, out, sum, tile->m + row, tile->n + column, scale_b + column,
                                        bias + column, scales);
        else
            store_straight(args, sum, tile->batch, tile->m + row, tile->n + column, scale_b + column,
                           bias + column, scales);
    }
}

/* The tile's rows of one warp to out; m: the first of them. */
template <int TILES, int COLUMNS, bool ALTERNATE>
FP8R_DEVICE void wide_store(const struct fp8r_sm90_args *args, const struct wide_tile *tile, int m,
                            const float (&sums)[TILES][COLUMNS / 2], const float *scale_b, const float *bias,
                            const float (&scale_a)[TILES][2])
{
    const bool bf16 = args->out_dtype == FP8R_DTYPE_BF16, biased = args->bias != NULL;
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
        if (ALTERNATE || (args->flags & FP8R_SM90_INTERLEAVED)) {
            if (bf16 && !biased)
                store_interleaved<COLUMNS, true, false>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                        scale_b, bias, scale_a[i]);
            else if (bf16)
                store_interleaved<COLUMNS, true, true>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                       scale_b, bias, scale_a[i]);
            else if (!biased)
                store_interleaved<COLUMNS, false, false>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                         scale_b, bias, scale_a[i]);
            else
                store_interleaved<COLUMNS, false, true>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                        scale_b, bias, scale_a[i]);
        } else if (!ALTERNATE && (args->flags & FP8R_SM90_OUT_FOURS) && !biased) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 16; ++j) {
                const float *s = &sums[i][8 * j];
                const float4 pair[2] = {make_float4(s[0], s[1], s[2], s[3]),
                                        make_float4(s[4], s[5], s[6], s[7])};
                store_straight_fours<false>(args, (uint16_t *)args->out + tile->batch * args->out_batch, pair,
                                            m + 64 * i, tile->n + 16 * j, scale_b + 16 * j, bias + 16 * j,
                                            scale_a[i]);
            }
        } else if (!ALTERNATE) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 16; ++j) {
                const float *s = &sums[i][8 * j];
                const float4 pair[2] = {make_float4(s[0], s[1], s[2], s[3]),
                                        make_float4(s[4], s[5], s[6], s[7])};
                store_straight(args, pair, tile->batch, m + 64 * i, tile->n + 16 * j, scale_b + 16 * j,
                               bias + 16 * j, scale_a[i]);
            }
        }
    }
}

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

/* The warp that loads tiles of b. It meets the cluster only now if nobody else writes to its stages. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_load_tiles_of_b(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                 const struct pipeline *pipe, int first)
{
    const int ahead = first < args->tiles ? min(min(args->ahead, args->stages), place->blocks) : 0;
    if (pipe->peers) named_barrier_sync(FP8R_SM90_EMPTY_BARRIER, 64);
    if (ahead > 0 && elected()) wide_produce_ahead<ROWS, COLUMNS>(args, place, pipe, first, ahead);
    grid_wait();
    if (!pipe->peers) named_barrier_sync(FP8R_SM90_EMPTY_BARRIER, 64);
    if (elected()) {
        grid_release();
        wide_produce_b<ROWS, COLUMNS>(args, place, pipe, first, ahead);
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
template <int GROUPS, int TILES, int COLUMNS, bool PROMOTE, int TYPES, bool ALTERNATE>
FP8R_DEVICE void wide_multiply(const struct fp8r_sm90_args *args, const struct pipeline *pipe,
                               struct ring *ring, const struct stride *stride, uint32_t p_offset,
                               uint32_t q_offset, int group, float (&sums)[TILES][COLUMNS / 2])
{
    if constexpr (PROMOTE && FP8R_SM90_WIDE_PAIRS(TILES, COLUMNS)) {
        accumulate_in_pairs<COLUMNS, TYPES>(sums, pipe, ring, p_offset, q_offset, stride);
    } else if (PROMOTE && args->segments == 0) {
        accumulate_in_turns<TILES, COLUMNS, TYPES, GROUPS>(sums, pipe, ring, p_offset, q_offset, stride,
                                                           group);
    } else if (PROMOTE) {
        accumulate_promoting<TILES, COLUMNS, TYPES>(sums, pipe, ring, p_offset, q_offset, stride,
                                                    args->segments);
    } else if (ALTERNATE) {
        named_barrier_sync(FP8R_SM90_TURN_BARRIER + group, 256);
        accumulate_fast<TILES, COLUMNS, TYPES>(sums, pipe, ring, p_offset, q_offset, stride, stride->blocks,
                                               FP8R_SM90_TURN_BARRIER + (group ^ 1));
        ring_skip(ring, &args->by_stages, stride->blocks);
    } else {
        accumulate_fast<TILES, COLUMNS, TYPES>(sums, pipe, ring, p_offset, q_offset, stride, stride->blocks);
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
    const struct stride stride = {1, place->blocks, INT32_MAX}; /* the next tile needs them all */
    float sums[TILES][COLUMNS / 2], scale_a[TILES][2];
    struct ring ring = {0, 0, 0, 0};
    int count = ALTERNATE ? group : 0;
    constexpr bool in_turns = ALTERNATE || (PROMOTE && !FP8R_SM90_WIDE_PAIRS(TILES, COLUMNS));
    if (in_turns && group == GROUPS - 1) named_barrier_arrive(FP8R_SM90_TURN_BARRIER, 256);
    if (ALTERNATE && group == 1) ring_skip(&ring, &args->by_stages, place->blocks);
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
        wide_multiply<GROUPS, TILES, COLUMNS, PROMOTE, TYPES, ALTERNATE>(args, pipe, &ring, &stride, p_offset,
                                                                         q_offset, group, sums);
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
        memory, full, full + 8 * FP8R_SM90_STAGES_MAX, args.stages, args.stage_bytes, 1, 0, 0, peers, false};
    wide_begin<GROUPS>(&args, &pipe, &barriers, warp, sharers);
    if (group == GROUPS) {
        registers_shrink<FP8R_SM90_WIDE_LOADER_REGISTERS>();
        if (warp == 4 * GROUPS)
            wide_load_tiles_of_b<rows, COLUMNS>(&args, &place, &pipe, first);
        else if (warp == 4 * GROUPS + 2)
            wide_load_tiles_of_a<rows, COLUMNS>(&args, &place, &pipe, first);
        else if (warp == 4 * GROUPS + 1)
            wide_load_scales<rows, COLUMNS>(&args, &place, &barriers,
                                            (float *)(memory_pointer + args.scales_offset), first);
    } else {
        registers_grow<FP8R_SM90_WIDE_REGISTERS(TILES * COLUMNS / 2 * (PROMOTE ? 2 : 1))>();
        grid_wait();
        wide_consume<GROUPS, TILES, COLUMNS, PROMOTE, TYPES, ALTERNATE>(&args, &place, &pipe, &barriers,
                                                                        memory_pointer, group, first);
    }
}

#endif
