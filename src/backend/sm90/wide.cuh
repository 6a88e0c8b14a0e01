/* Large M. Persistent blocks, one warpgroup that loads, two or three that multiply: rows of a (tokens) on the
 * tensor core's 64-row side, rows of b on the other. Blocks of a cluster share tiles of a and b by multicast,
 * or take a segment of K each. Results leave through shared memory by the copy engine while the next tile's
 * loads are under way. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_CUH
#define FP8R_SM90_WIDE_CUH

#include "backend/sm90/epilogue.cuh"
#include "backend/sm90/mainloop.cuh"

struct wide_tile {
    int batch, m, n; /* first row of a, first row of b */
};

/* A block's place in its cluster. */
struct wide_place {
    int k_rank, m_rank, n_rank;
    int first_block, blocks;   /* of K */
    uint16_t share_a, share_b; /* masks of the blocks that get this block's part of a tile of a, of b */
};

FP8R_DEVICE struct wide_place wide_locate(const struct fp8r_sm90_args *args)
{
    struct wide_place place;
    const int rank = args->split * args->share_m * args->share_n > 1 ? (int)cluster_rank() : 0;
    place.k_rank = rank % args->split;
    place.m_rank = rank / args->split % args->share_m;
    place.n_rank = rank / args->split / args->share_m;
    place.first_block = args->segment[place.k_rank];
    place.blocks = args->segment[place.k_rank + 1] - place.first_block;
    place.share_a = place.share_b = 0;
    for (int i = 0; i < args->share_n; ++i)
        place.share_a |= (uint16_t)(1 << (place.k_rank + args->split * (place.m_rank + args->share_m * i)));
    for (int i = 0; i < args->share_m; ++i)
        place.share_b |= (uint16_t)(1 << (place.k_rank + args->split * (i + args->share_m * place.n_rank)));
    return place;
}

/* The cluster's tile of this number. `raster` rows of cluster tiles are walked together, column by column, so
 * that the tiles under way at one time touch few rows of either operand and find them in L2. */
FP8R_DEVICE struct wide_tile wide_tile_at(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                          int index, int rows, int columns)
{
    struct wide_tile tile;
    const int each = args->tiles_m * args->tiles_n, in_matrix = index % each,
              band_tiles = args->raster * args->tiles_n;
    const int band = in_matrix / band_tiles, first = band * args->raster;
    const int height = min(args->tiles_m - first, args->raster), in_band = in_matrix % band_tiles;
    tile.batch = index / each;
    tile.m = ((first + in_band % height) * args->share_m + place->m_rank) * rows;
    tile.n = (in_band / height * args->share_n + place->n_rank) * columns;
    return tile;
}

/* Each of the blocks that share a tile loads an equal part of its rows for all of them. */
template <int ROWS>
FP8R_DEVICE void load_shared(const CUtensorMap *map, uint32_t to, int k, int row, int batch, uint32_t barrier,
                             int share, int rank, uint16_t mask)
{
    if (share == 1) {
        tma_load(to, map, k, row, batch, barrier, FP8R_L2_EVICT_NORMAL);
    } else {
        const int part = ROWS / share * rank;
        tma_load_multicast(to + part * FP8R_SM90_BLOCK_K, map, k, row + part, batch, barrier, mask,
                           FP8R_L2_EVICT_NORMAL);
    }
}

template <int ROWS>
FP8R_DEVICE void load_a(const struct fp8r_sm90_args *args, const struct wide_place *place,
                        const struct pipeline *pipe, const struct wide_tile *tile, int stage, int block)
{
    load_shared<ROWS>(&args->map_a, pipe->tiles + stage * pipe->stage_bytes,
                      (place->first_block + block) * FP8R_SM90_BLOCK_K, tile->m, args->a_batch * tile->batch,
                      pipe->full + 8 * stage, args->share_n, place->n_rank, place->share_a);
}

template <int ROWS, int COLUMNS>
FP8R_DEVICE void load_b(const struct fp8r_sm90_args *args, const struct wide_place *place,
                        const struct pipeline *pipe, const struct wide_tile *tile, int stage, int block)
{
    load_shared<COLUMNS>(&args->map_b, pipe->tiles + stage * pipe->stage_bytes + ROWS * FP8R_SM90_BLOCK_K,
                         (place->first_block + block) * FP8R_SM90_BLOCK_K, tile->n,
                         args->b_batch * tile->batch, pipe->full + 8 * stage, args->share_m, place->m_rank,
                         place->share_b);
}

/* The one thread that keeps the pipeline full, over all tiles of the block. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_produce(const struct fp8r_sm90_args *args, const struct wide_place *place,
                              const struct pipeline *pipe, int first, int step)
{
    const uint32_t bytes = (ROWS + COLUMNS) * FP8R_SM90_BLOCK_K;
    int ahead = 0;
    if ((args->flags & FP8R_SM90_WEIGHTS_STATIC) && first < args->tiles) {
        const struct wide_tile tile = wide_tile_at(args, place, first, ROWS, COLUMNS);
        for (; ahead < min(args->stages, place->blocks); ++ahead) {
            barrier_expect(pipe->full + 8 * ahead, bytes);
            load_b<ROWS, COLUMNS>(args, place, pipe, &tile, ahead, ahead);
        }
    }
    grid_wait();
    grid_release();
    struct ring ring = {0, 1, 0, 0};
    for (int index = first; index < args->tiles; index += step) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        for (int block = 0; block < place->blocks; ++block) {
            if (ahead > 0) {
                --ahead; /* this stage has its part of b under way */
                load_a<ROWS>(args, place, pipe, &tile, ring.stage, block);
            } else {
                barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
                barrier_expect(pipe->full + 8 * ring.stage, bytes);
                load_a<ROWS>(args, place, pipe, &tile, ring.stage, block);
                load_b<ROWS, COLUMNS>(args, place, pipe, &tile, ring.stage, block);
            }
            ring_advance(&ring, pipe->stages, 1);
        }
    }
    /* Others of the cluster may still be about to give stages back to this block: stay until they have. */
    if (pipe->peers) {
        for (int stage = 0; stage < pipe->stages; ++stage) {
            barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
            ring_advance(&ring, pipe->stages, 1);
        }
    }
}

/* One warpgroup's 64 rows through its two buffers of CHUNK columns to out. The thread `leader` speaks to the
 * engine. */
template <int COLUMNS>
FP8R_DEVICE void store_tiles(const struct fp8r_sm90_args *args, const float *sums, int batch, int m, int n,
                             const float *scale_b, const float *bias, const float scale_a[2],
                             uint32_t buffers, int *turn, int named_barrier)
{
    constexpr int chunk = FP8R_SM90_WIDE_CHUNK(COLUMNS), pitch = 2 * chunk, bytes = 64 * pitch;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, column = lane % 4 * 2;
    const bool biased = args->bias != NULL, leader = threadIdx.x % 128 == 0;
    const int row = warp * 16 + lane % 16;
#pragma unroll
    for (int c = 0; c < COLUMNS / chunk; ++c) {
        const uint32_t buffer = buffers + *turn * bytes;
        if (leader) tma_store_wait_read<1>();
        named_barrier_sync(named_barrier, 128);
#pragma unroll
        for (int i = 0; i < chunk / 16; ++i) {
            uint32_t packed[2][2]; /* matrix of 8 columns, row half */
#pragma unroll
            for (int f = 0; f < 2; ++f) {
                const int at = c * chunk + 16 * i + 8 * f;
                const float *s = sums + at / 8 * 4;
                const float2 scales = *(const float2 *)(scale_b + at + column);
                const float2 biases = *(const float2 *)(bias + at + column);
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    packed[f][half] = pack_halves(
                        args->out_dtype, finish(s[2 * half], scales.x, scale_a[half], biased, biases.x),
                        finish(s[2 * half + 1], scales.y, scale_a[half], biased, biases.y));
            }
            const uint32_t plain = row * pitch + 32 * i + lane / 16 * 16;
            store_matrices(buffer + (plain ^ (plain >> 3 & (pitch - 16))), packed[0][0], packed[0][1],
                           packed[1][0], packed[1][1]);
        }
        smem_fence_async();
        named_barrier_sync(named_barrier, 128);
        if (leader) tma_store(&args->map_out, n + c * chunk, m, batch, buffer);
        *turn ^= 1;
    }
}

/* Units of a split's reduction: 16 rows and 16 columns of out, 1024 bytes; owned as in the skinny family. The
 * partial sums take the place of the stages; scale_a: of the tile's rows, in shared memory. */
template <int TILES, int COLUMNS, int GROUPS>
FP8R_DEVICE void wide_reduce(const struct fp8r_sm90_args *args, const struct wide_place *place,
                             const struct wide_tile *tile, const float (&sums)[TILES][COLUMNS / 2],
                             uint8_t *memory, uint32_t memory_address, uint32_t received,
                             const float *scale_b, const float *bias, const float *scale_a)
{
    constexpr int per_row = COLUMNS / 16, units = GROUPS * 4 * TILES * per_row;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_rank = args->split * (place->m_rank + args->share_m * place->n_rank);
    cluster_arrive(); /* nobody may still be reading stages; and scale_a is there */
    cluster_wait();
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
#pragma unroll
        for (int j = 0; j < per_row; ++j) {
            const int unit = (warp * TILES + i) * per_row + j;
            const uint32_t at =
                memory_address + (unit / args->split * args->split + place->k_rank) * 1024 + lane * 16;
            const uint32_t remote = cluster_address(at, first_rank + unit % args->split);
            const float *s = &sums[i][8 * j];
            cluster_store(remote, make_float4(s[0], s[1], s[2], s[3]));
            cluster_store(remote + 512, make_float4(s[4], s[5], s[6], s[7]));
        }
    }
    barrier_arrive_release(received, first_rank, args->split);
    barrier_wait_cluster(received, 0);
    for (int unit = place->k_rank + warp * args->split; unit < units; unit += 4 * GROUPS * args->split) {
        const float4 *parts =
            (const float4 *)memory + (int64_t)(unit / args->split) * args->split * 64 + lane;
        float4 sum[2] = {parts[0], parts[32]};
        for (int rank = 1; rank < args->split; ++rank) {
#pragma unroll
            for (int f = 0; f < 2; ++f) {
                const float4 part = parts[rank * 64 + 32 * f];
                sum[f].x = __fadd_rn(sum[f].x, part.x);
                sum[f].y = __fadd_rn(sum[f].y, part.y);
                sum[f].z = __fadd_rn(sum[f].z, part.z);
                sum[f].w = __fadd_rn(sum[f].w, part.w);
            }
        }
        const int from = unit / per_row; /* warp and tile that held it */
        const int row = (from / TILES / 4 * TILES + from % TILES) * 64 + from / TILES % 4 * 16;
        const int column = unit % per_row * 16;
        const float scales[2] = {scale_a[row + lane / 4], scale_a[row + lane / 4 + 8]};
        store_straight(args, sum, tile->batch, tile->m + row, tile->n + column, scale_b + column,
                       bias + column, scales);
    }
}

/* GROUPS warpgroups multiply, each TILES times 64 rows of a with COLUMNS rows of b. */
template <int GROUPS, int TILES, int COLUMNS, bool PROMOTE, int TYPES>
__global__ void __launch_bounds__(FP8R_SM90_WIDE_THREADS(GROUPS), 1)
    wide(const __grid_constant__ struct fp8r_sm90_args args)
{
    constexpr int rows = GROUPS * TILES * 64;
    extern __shared__ uint8_t dynamic_memory[];
    const uint32_t raw = smem_address(dynamic_memory), memory = kept((raw + 1023) & ~1023u);
    uint8_t *const memory_pointer = dynamic_memory + (memory - raw);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = warp / 4;
    const int size = args.split * args.share_m * args.share_n, step = gridDim.x / size,
              first = blockIdx.x / size;
    const struct wide_place place = wide_locate(&args);
    const uint32_t barriers = memory + args.barriers_offset, received = barriers + 16 * FP8R_SM90_STAGES_MAX;
    const uint32_t scales_full = received + 8, scales_empty = received + 24; /* two each */
    const struct pipeline pipe = {memory,
                                  barriers,
                                  barriers + 8 * FP8R_SM90_STAGES_MAX,
                                  args.stages,
                                  args.stage_bytes,
                                  1,
                                  0,
                                  0,
                                  args.share_m * args.share_n > 1 ? (uint32_t)(place.share_a | place.share_b)
                                                                  : 0u};
    float *const scales = (float *)(memory_pointer + args.scales_offset); /* two times scale_b and bias */

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < args.stages; ++stage) {
            barrier_init(pipe.full + 8 * stage, 1);
            barrier_init(pipe.empty + 8 * stage, 4 * GROUPS * (args.share_m + args.share_n - 1));
        }
        barrier_init(received, 4 * GROUPS * args.split);
        for (int i = 0; i < 2; ++i) {
            barrier_init(scales_full + 8 * i, 32);
            barrier_init(scales_empty + 8 * i, 4 * GROUPS);
        }
        barrier_init_fence();
        tma_prefetch_map(&args.map_a);
        tma_prefetch_map(&args.map_b);
    }
    __syncthreads();
    if (size > 1) {
        cluster_arrive_relaxed();
        cluster_wait();
    }

    if (group == GROUPS) {
        if (GROUPS > 1) registers_shrink<FP8R_SM90_WIDE_LOADER_REGISTERS(GROUPS)>();
        if (warp == 4 * GROUPS && lane == 0) {
            wide_produce<rows, COLUMNS>(&args, &place, &pipe, first, step);
        } else if (warp == 4 * GROUPS + 1) {
            grid_wait();
            int count = 0;
            for (int index = first; index < args.tiles; index += step, ++count) {
                const struct wide_tile tile = wide_tile_at(&args, &place, index, rows, COLUMNS);
                float *const buffer = scales + count % 2 * (2 * COLUMNS);
                barrier_wait(scales_empty + 8 * (count % 2), (count / 2 & 1) ^ 1);
                stage_columns(&args, tile.batch, tile.n, COLUMNS, buffer, buffer + COLUMNS);
                barrier_arrive(scales_full + 8 * (count % 2));
            }
        }
    } else {
        if (GROUPS > 1) registers_grow<FP8R_SM90_WIDE_REGISTERS(GROUPS)>();
        grid_wait();
        float sums[TILES][COLUMNS / 2];
        struct ring ring = {0, 0, 0, 0};
        int count = 0, turn = 0;
        const uint32_t p_offset = group * (TILES * 64 * FP8R_SM90_BLOCK_K),
                       q_offset = rows * FP8R_SM90_BLOCK_K;
        const struct stride stride = {1, place.blocks, INT32_MAX}; /* the next tile needs them all */
        const uint32_t buffers = memory + args.receive_offset + group * (256 * FP8R_SM90_WIDE_CHUNK(COLUMNS));
        for (int index = first; index < args.tiles; index += step, ++count) {
            const struct wide_tile tile = wide_tile_at(&args, &place, index, rows, COLUMNS);
            const int m = tile.m + group * (TILES * 64);
            float scale_a[TILES][2];
#pragma unroll
            for (int i = 0; i < TILES; ++i) {
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    scale_a[i][half] =
                        load_scale_a(&args, tile.batch, m + 64 * i + warp % 4 * 16 + lane / 4 + 8 * half);
            }
            if (PROMOTE)
                accumulate_promoting<TILES, COLUMNS, TYPES>(sums, &pipe, &ring, p_offset, q_offset, &stride,
                                                            args.segments);
            else
                accumulate_fast<TILES, COLUMNS, TYPES>(sums, &pipe, &ring, p_offset, q_offset, &stride,
                                                       place.blocks);
            const float *const scale_b = scales + count % 2 * (2 * COLUMNS), *const bias = scale_b + COLUMNS;
            barrier_wait(scales_full + 8 * (count % 2), count / 2 & 1);
            if (args.split > 1) {
                float *const row_scales = (float *)(memory_pointer + args.receive_offset);
#pragma unroll
                for (int i = 0; i < TILES; ++i)
                    if (lane % 4 < 2)
                        row_scales[(group * TILES + i) * 64 + warp % 4 * 16 + lane / 4 + 8 * (lane % 4)] =
                            lane % 4 ? scale_a[i][1] : scale_a[i][0];
                wide_reduce<TILES, COLUMNS, GROUPS>(&args, &place, &tile, sums, memory_pointer, memory,
                                                    received, scale_b, bias, row_scales);
            } else if (args.flags & FP8R_SM90_OUT_TILES) {
#pragma unroll
                for (int i = 0; i < TILES; ++i)
                    store_tiles<COLUMNS>(&args, sums[i], tile.batch, m + 64 * i, tile.n, scale_b, bias,
                                         scale_a[i], buffers, &turn, 1 + group);
            } else {
#pragma unroll
                for (int i = 0; i < TILES; ++i) {
#pragma unroll
                    for (int j = 0; j < COLUMNS / 16; ++j) {
                        const float *s = &sums[i][8 * j];
                        const float4 pair[2] = {make_float4(s[0], s[1], s[2], s[3]),
                                                make_float4(s[4], s[5], s[6], s[7])};
                        store_straight(&args, pair, tile.batch, m + 64 * i + warp % 4 * 16, tile.n + 16 * j,
                                       scale_b + 16 * j, bias + 16 * j, scale_a[i]);
                    }
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(scales_empty + 8 * (count % 2));
        }
        if ((args.flags & FP8R_SM90_OUT_TILES) && threadIdx.x % 128 == 0) tma_store_wait_all();
    }
}

#endif
