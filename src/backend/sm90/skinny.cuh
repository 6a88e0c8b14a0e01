/* Small M. The operands are swapped: rows of b (weights) lie on the tensor core's 64-row side, the few rows of a
 * (tokens) on its narrow side, so that no work is wasted on absent tokens. A block owns `rows` rows of b, as many as
 * spread N evenly over the chip, and streams them once. K is cut into segments, each summed by warpgroups of its own:
 * `inner` segments a block, the rest over the blocks of a cluster (split), which can also share the tokens' tiles
 * (share_n). Partial sums go straight from registers to the block that adds them up, in the order of K. Bound by
 * memory: everything here serves to keep loads in flight from the first moment.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SKINNY_CUH
#define FP8R_SM90_SKINNY_CUH

#include "backend/sm90/epilogue.cuh"
#include "backend/sm90/mainloop.cuh"

/* A block's place: which part of the product is its own. */
struct skinny_place {
    int batch, n;        /* first row of b */
    int segment;         /* its first segment of K */
    int blocks;          /* of K, over all its segments */
    int k_rank, share_rank;
    uint16_t share_mask; /* blocks of the cluster with the same segments of K */
};

/* The grid is blocks of a cluster x clusters along N x batch. */
FP8R_DEVICE struct skinny_place skinny_locate(const struct fp8r_sm90_args *args)
{
    struct skinny_place place;
    const int rank = blockIdx.x;
    place.share_rank = args->share_n == 1 ? 0 : rank / args->split;
    place.k_rank = rank - place.share_rank * args->split;
    place.batch = blockIdx.z;
    place.n = (blockIdx.y * args->share_n + place.share_rank) * args->rows;
    place.segment = place.k_rank * args->inner;
    place.blocks = args->segment[place.segment + args->inner] - args->segment[place.segment];
    place.share_mask = 0;
    for (int i = 0; i < args->share_n; ++i)
        place.share_mask |= (uint16_t)(1 << (place.k_rank + i * args->split));
    return place;
}

/* The stages of segment `inner` of the block. Blocks are loaded in rounds, one of each segment; the last round may hold
 * the longer segments only. */
FP8R_DEVICE struct stride skinny_stride(const struct fp8r_sm90_args *args, const struct skinny_place *place, int inner)
{
    const int rounds = place->blocks / args->inner;
    const int32_t *segment = args->segment + place->segment;
    struct stride stride;
    int before = 0; /* longer segments in front of this one */
    for (int i = 0; i < inner; ++i)
        before += segment[i + 1] - segment[i] > rounds;
    stride.step = args->inner;
    stride.blocks = segment[inner + 1] - segment[inner];
    stride.last_step = stride.blocks > rounds ? args->inner + before - inner : args->inner;
    stride.releases = max(0, place->blocks - args->stages - inner + args->inner - 1) / args->inner;
    return stride;
}

/* Units of the reduction: fragments of 16 columns x 8 rows of out, 512 bytes a segment. Unit u is added up by rank
 * u % split, as its unit u / split. */
FP8R_DEVICE int skinny_units(const struct fp8r_sm90_args *args)
{
    return (args->rows + 15) / 16 * ((args->m + 7) / 8);
}

FP8R_DEVICE int skinny_owned_units(const struct fp8r_sm90_args *args, int rank)
{
    return (skinny_units(args) - rank + args->split - 1) / args->split;
}

FP8R_DEVICE void load_weights(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                              const struct pipeline *pipe, int stage, int block)
{
    tma_load(pipe->tiles + stage * pipe->stage_bytes, &args->map_b, block * FP8R_SM90_BLOCK_K, place->n,
             args->b_batch * place->batch, pipe->full + 8 * stage, FP8R_L2_EVICT_FIRST);
}

/* Each block that shares the tokens loads its part of them for all. */
template <int TOKENS>
FP8R_DEVICE void load_tokens(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                             const struct pipeline *pipe, uint32_t tokens_offset, int stage, int block)
{
    const uint32_t to = pipe->tiles + stage * pipe->stage_bytes + tokens_offset, barrier = pipe->full + 8 * stage;
    const int k = block * FP8R_SM90_BLOCK_K, batch = args->a_batch * place->batch;
    if (args->share_n == 1) {
        tma_load(to, &args->map_a, k, 0, batch, barrier, FP8R_L2_EVICT_LAST);
    } else {
        const int row = TOKENS / args->share_n * place->share_rank;
        tma_load_multicast(to + row * FP8R_SM90_BLOCK_K, &args->map_a, k, row, batch, barrier, place->share_mask,
                           FP8R_L2_EVICT_LAST);
    }
}

/* What is loaded from position `begin` to before `end` of the order of blocks. */
template <int TOKENS, bool WEIGHTS, bool WITH_TOKENS>
FP8R_DEVICE void skinny_produce(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const struct pipeline *pipe, uint32_t tokens_offset, int begin, int end)
{
    const uint32_t bytes = (args->rows + TOKENS) * FP8R_SM90_BLOCK_K;
    int next[FP8R_SM90_SKINNY_INNER_MAX], stop[FP8R_SM90_SKINNY_INNER_MAX]; /* blocks of K, a segment each */
#pragma unroll
    for (int i = 0; i < FP8R_SM90_SKINNY_INNER_MAX; ++i) {
        next[i] = i < args->inner ? args->segment[place->segment + i] : 0;
        stop[i] = i < args->inner ? args->segment[place->segment + i + 1] : 0;
    }
    int position = 0;
    struct ring ring = {0, 1};
    while (position < end) {
#pragma unroll
        for (int i = 0; i < FP8R_SM90_SKINNY_INNER_MAX; ++i) {
            if (next[i] >= stop[i] || position >= end)
                continue;
            if (position >= begin) {
                if (WEIGHTS) {
                    barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
                    barrier_expect(pipe->full + 8 * ring.stage, bytes);
                    load_weights(args, place, pipe, ring.stage, next[i]);
                }
                if (WITH_TOKENS)
                    load_tokens<TOKENS>(args, place, pipe, tokens_offset, ring.stage, next[i]);
            }
            ++next[i];
            ++position;
            ring_advance(&ring, pipe->stages, 1);
        }
    }
}

/* Sends every unit of this warp to the block that adds it up. */
template <int TOKENS>
FP8R_DEVICE void skinny_send(const struct fp8r_sm90_args *args, const struct skinny_place *place, int warp, int inner,
                             const float (&sums)[TOKENS / 2], uint8_t *memory, uint32_t memory_address,
                             uint32_t received)
{
    const int lane = threadIdx.x % 32, per_warp = (args->m + 7) / 8, segments = args->split * args->inner;
    if (warp * 16 >= args->rows)
        return;
#pragma unroll
    for (int j = 0; j < TOKENS / 8; ++j) {
        if (j < per_warp) {
            const int unit = warp * per_warp + j, owner = unit % args->split;
            const uint32_t at = args->receive_offset +
                                (unit / args->split * segments + place->segment + inner) * 512 + lane * 16;
            const float4 part = make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]);
            if (args->split == 1) {
                *(float4 *)(memory + at) = part;
            } else {
                const uint32_t rank = owner + place->share_rank * args->split;
                cluster_store(cluster_address(memory_address + at, rank), part, cluster_address(received, rank));
            }
        }
    }
}

/* Adds up this block's units and stores the results. */
FP8R_DEVICE void skinny_collect(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const uint8_t *memory, int warps, int limit, const float *scale_b, const float *bias,
                                const float *scale_a)
{
    const int owned = skinny_owned_units(args, place->k_rank), per_warp = (args->m + 7) / 8;
    const int segments = args->split * args->inner;
    for (int slot = threadIdx.x / 32; slot < owned; slot += warps) {
        const float4 *parts =
            (const float4 *)(memory + args->receive_offset) + slot * segments * 32 + threadIdx.x % 32;
        float4 sum = parts[0];
        for (int segment = 1; segment < segments; ++segment) {
            const float4 part = parts[segment * 32];
            sum.x = __fadd_rn(sum.x, part.x);
            sum.y = __fadd_rn(sum.y, part.y);
            sum.z = __fadd_rn(sum.z, part.z);
            sum.w = __fadd_rn(sum.w, part.w);
        }
        const int unit = slot * args->split + place->k_rank;
        const int column = unit / per_warp * 16, row = unit % per_warp * 8;
        store_swapped(args, sum, place->batch, row, place->n + column, limit, scale_b + column, bias + column,
                      scale_a + row);
    }
}

template <int TOKENS, bool PROMOTE, int TYPES>
__global__ void __launch_bounds__(FP8R_SM90_SKINNY_THREADS(FP8R_SM90_SKINNY_GROUPS(TOKENS, PROMOTE)),
                                  FP8R_SM90_SKINNY_RESIDENT(TOKENS, PROMOTE))
    skinny(const __grid_constant__ struct fp8r_sm90_args args)
{
    extern __shared__ uint8_t dynamic_memory[];
    const uint32_t raw = smem_address(dynamic_memory), memory = (raw + 1023) & ~1023u;
    uint8_t *const memory_pointer = dynamic_memory + (memory - raw);
    const int groups = (args.rows + 63) / 64, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int producer = 4 * groups * args.inner, size = args.split * args.share_n;
    const struct skinny_place place = skinny_locate(&args);
    const uint32_t barriers = memory + args.barriers_offset, received = barriers + 16 * FP8R_SM90_STAGES_MAX;
    const struct pipeline pipe = {memory, barriers, barriers + 8 * FP8R_SM90_STAGES_MAX, args.stages, args.stage_bytes,
                                  args.share_n > 1 ? place.share_mask : 0u};
    /* Rows of b are not padded to 64: a warpgroup whose last rows are absent multiplies what lies behind them, and the
     * results are not stored. */
    const uint32_t tokens_offset = args.stage_bytes - TOKENS * FP8R_SM90_BLOCK_K;
    float *const scale_b = (float *)(memory_pointer + args.scales_offset), *const bias = scale_b + 256,
          *const scale_a = bias + 256;
    const int ahead = args.flags & FP8R_SM90_WEIGHTS_STATIC ? min(args.stages, place.blocks) : 0;

    if (warp == producer && lane == 0) {
        for (int stage = 0; stage < args.stages; ++stage) {
            barrier_init(pipe.full + 8 * stage, 1);
            barrier_init(pipe.empty + 8 * stage, 4 * groups * args.share_n);
        }
        barrier_init(received, 1);
        barrier_init_fence();
        skinny_produce<TOKENS, true, false>(&args, &place, &pipe, tokens_offset, 0, ahead);
        if (args.split > 1)
            barrier_expect(received, skinny_owned_units(&args, place.k_rank) * args.split * args.inner * 512);
        tma_prefetch_map(&args.map_a);
    }
    __syncthreads();
    if (size > 1)
        cluster_arrive_relaxed(); /* this block's barriers are ready */
    grid_wait();

    if (warp == producer) {
        if (lane == 0)
            grid_release();
        if (size > 1)
            cluster_wait();
        if (lane == 0) {
            skinny_produce<TOKENS, false, true>(&args, &place, &pipe, tokens_offset, 0, ahead);
            skinny_produce<TOKENS, true, true>(&args, &place, &pipe, tokens_offset, ahead, place.blocks);
        }
    } else if (warp > producer) {
        stage_columns(&args, place.batch, place.n, args.rows, scale_b, bias);
        for (int i = lane; i < TOKENS; i += 32)
            scale_a[i] = load_scale_a(&args, place.batch, i);
        named_barrier_arrive(1, (producer + 1) * 32);
        if (size > 1)
            cluster_wait();
    } else {
        const int inner = warp / (4 * groups), row_warp = warp % (4 * groups);
        const struct stride stride = skinny_stride(&args, &place, inner);
        const uint32_t p_offset = row_warp / 4 * (64 * FP8R_SM90_BLOCK_K);
        float sums[1][TOKENS / 2];
        struct ring ring = {0, 0};
        ring_advance(&ring, args.stages, inner);
        if (PROMOTE)
            accumulate_promoting<1, TOKENS, TYPES>(sums, &pipe, &ring, p_offset, tokens_offset, &stride, 0);
        else
            accumulate_fast<1, TOKENS, TYPES>(sums, &pipe, &ring, p_offset, tokens_offset, &stride, 0, stride.blocks);
        if (size > 1)
            cluster_wait();
        const int limit = min(args.n, place.n + args.rows);
        if (args.split * args.inner == 1) {
            named_barrier_sync(1, (producer + 1) * 32);
#pragma unroll
            for (int j = 0; j < TOKENS / 8; ++j) {
                if (8 * j < args.m && warp * 16 < args.rows)
                    store_swapped(&args,
                                  make_float4(sums[0][4 * j], sums[0][4 * j + 1], sums[0][4 * j + 2], sums[0][4 * j + 3]),
                                  place.batch, 8 * j, place.n + warp * 16, limit, scale_b + warp * 16,
                                  bias + warp * 16, scale_a + 8 * j);
            }
        } else {
            skinny_send<TOKENS>(&args, &place, row_warp, inner, sums[0], memory_pointer, memory, received);
            named_barrier_sync(1, (producer + 1) * 32);
            if (args.split > 1)
                barrier_wait_cluster(received, 0);
            skinny_collect(&args, &place, memory_pointer, producer, limit, scale_b, bias, scale_a);
        }
    }
}

#endif
