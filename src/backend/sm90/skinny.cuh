/* Small M. The operands are swapped: rows of b (weights) lie on the tensor core's 64-row side, the few rows
 * of a (tokens) on its narrow side, so that no work is wasted on absent tokens. A block owns `rows` rows of
 * b, as many as spread N evenly over the chip, and streams them once. K is cut into segments, each summed by
 * warpgroups of its own: `inner` segments a block, the rest over the blocks of a cluster (split). Partial
 * sums go straight from registers to the block that adds them up, in the order of K. Bound by memory:
 * everything here serves to keep loads in flight from the first moment. SPDX-License-Identifier: Apache-2.0
 */
#ifndef FP8R_SM90_SKINNY_CUH
#define FP8R_SM90_SKINNY_CUH

#include "backend/sm90/epilogue.cuh"
#include "backend/sm90/mainloop.cuh"

/* A block's place: which part of the product is its own. */
struct skinny_place {
    int batch, n; /* first row of b */
    int segment;  /* its first segment of K */
    int rounds;   /* stages of its longest segment */
    int k_rank;
};

/* The grid is blocks of a cluster x clusters along N x batch. */
FP8R_DEVICE struct skinny_place skinny_locate(const struct fp8r_sm90_args *args)
{
    struct skinny_place place;
    place.k_rank = blockIdx.x;
    place.batch = blockIdx.z;
    place.n = blockIdx.y * args->rows;
    place.segment = place.k_rank * args->inner;
    place.rounds = args->rounds[place.k_rank];
    return place;
}

/* The stages of segment `inner` of the block: they are loaded in rounds, one of each segment. */
FP8R_DEVICE struct stride skinny_stride(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                        int inner)
{
    struct stride stride;
    stride.step = args->inner;
    stride.blocks = args->segment[place->segment + inner + 1] - args->segment[place->segment + inner];
    stride.releases = (stride.blocks + args->depth - 1) / args->depth - args->stages / args->inner;
    return stride;
}

/* Units of the reduction: fragments of 16 columns x 8 rows of out, 512 bytes a segment. Unit u is added up by
 * rank u % split, as its unit u / split. */
FP8R_DEVICE int skinny_units(const struct fp8r_sm90_args *args)
{
    return (args->rows + 15) / 16 * ((args->m + 7) / 8);
}

FP8R_DEVICE int skinny_owned_units(const struct fp8r_sm90_args *args, int rank)
{
    return (skinny_units(args) - rank + args->split - 1) / args->split;
}

/* One thread each keeps the stages full of weights and of tokens: a stage is `depth` blocks of one segment,
 * segments take turns, and in the last round the shorter ones leave theirs out. The copy engine stores one
 * block of K behind the other, each as the tensor core reads it. */
template <bool WEIGHTS, int TOKENS>
FP8R_DEVICE void skinny_produce(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const struct pipeline *pipe)
{
    const uint32_t bytes = args->depth * (args->rows + TOKENS) * FP8R_SM90_BLOCK_K;
    const int batch = WEIGHTS ? args->b_batch * place->batch : args->a_batch * place->batch;
    uint32_t to = pipe->tiles + (WEIGHTS ? 0 : args->depth * args->weight_bytes);
    struct ring ring = {0, 1, 0, 0};
    for (int round = 0; round < place->rounds; ++round) {
        for (int i = place->segment; i < place->segment + args->inner; ++i) {
            const int block = args->segment[i] + round * args->depth;
            if (block < args->segment[i + 1]) {
                const uint32_t full = pipe->full + 8 * ring.stage;
                const int x = block * args->step_x, z = block * args->step_z;
                barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
                if (WEIGHTS) {
                    barrier_expect(full, bytes);
                    tma_load_4d(to, &args->map_b, x, place->n, z, batch, full, FP8R_L2_EVICT_FIRST);
                } else {
                    tma_load_4d(to, &args->map_a, x, 0, z, batch, full, FP8R_L2_EVICT_LAST);
                }
            }
            to += pipe->stage_bytes;
            if (++ring.stage == pipe->stages) {
                to -= pipe->stages * pipe->stage_bytes;
                ring.stage = 0;
                ring.parity ^= 1;
            }
        }
    }
}

/* Partial sums of few tokens are counted as they arrive; of many, each warp says when its own are all there.
 */
template <int TOKENS> FP8R_DEVICE constexpr bool skinny_counts()
{
    return TOKENS <= 16;
}

/* Sends every unit of this warp to the block that adds it up. */
template <int TOKENS>
FP8R_DEVICE void skinny_send(const struct fp8r_sm90_args *args, const struct skinny_place *place, int warp,
                             int inner, const float (&sums)[TOKENS / 2], uint8_t *memory,
                             uint32_t memory_address, uint32_t received)
{
    const int lane = threadIdx.x % 32, per_warp = (args->m + 7) / 8, segments = args->split * args->inner;
#pragma unroll
    for (int j = 0; j < TOKENS / 8; ++j) {
        if (j < per_warp && warp * 16 < args->rows) {
            const int unit = warp * per_warp + j, owner = unit % args->split;
            const uint32_t at = args->receive_offset +
                                (unit / args->split * segments + place->segment + inner) * 512 + lane * 16;
            const float4 part = make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]);
            if (args->split == 1) {
                *(float4 *)(memory + at) = part;
            } else {
                const uint32_t remote = cluster_address(memory_address + at, owner);
                if (skinny_counts<TOKENS>())
                    cluster_store_counted(remote, part, cluster_address(received, owner));
                else
                    cluster_store(remote, part);
            }
        }
    }
    if (args->split > 1 && !skinny_counts<TOKENS>()) barrier_arrive_release(received, 0, args->split);
}

/* Adds up this block's units and stores the results. A warp's units lie in one row of units, as far as that
 * goes. */
FP8R_DEVICE void skinny_collect(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const uint8_t *memory, int warps, int limit, const float *scale_b,
                                const float *bias, const float *scale_a)
{
    const int owned = skinny_owned_units(args, place->k_rank), per_warp = (args->m + 7) / 8;
    const int segments = args->split * args->inner, warp = threadIdx.x / 32;
    const int end = owned * (warp + 1) / warps;
    int held = -1;
    struct swapped_columns columns;
    for (int slot = owned * warp / warps; slot < end; ++slot) {
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
        const int unit = slot * args->split + place->k_rank, row_of_units = unit / per_warp;
        if (row_of_units != held) {
            held = row_of_units;
            columns = swapped_columns_at(args, place->batch, place->n + 16 * held, limit, scale_b + 16 * held,
                                         bias + 16 * held);
        }
        const int m = (unit - held * per_warp) * 8;
        store_swapped(args, &columns, sum, m, scale_a + m);
    }
}

/* What the epilogue needs of scales and bias: a value of each a consumer thread, asked for before the main
 * loop and put into shared memory behind it. */
struct skinny_scales {
    float scale_b, bias, scale_a;
};

FP8R_DEVICE struct skinny_scales skinny_load_scales(const struct fp8r_sm90_args *args,
                                                    const struct skinny_place *place)
{
    const int i = threadIdx.x, n = place->n + i;
    const bool column = i < args->rows && n < args->n;
    struct skinny_scales scales = {1.0f, 0.0f, 1.0f};
    if (column && args->scale_b)
        scales.scale_b = args->scale_b[place->batch * args->scale_b_batch + n * args->scale_b_col];
    if (column && args->bias)
        scales.bias = load_bias(args, place->batch * args->bias_batch + n * args->bias_col);
    scales.scale_a = load_scale_a(args, place->batch, i);
    return scales;
}

/* Rows of b need not fill the 64 of a warpgroup: it multiplies what lies behind them, too, and those results
 * are never stored. The consumers are the first 4 * groups * inner warps; then one warp loads weights, one
 * tokens. */
template <int TOKENS, bool PROMOTE, int TYPES>
__global__ void __launch_bounds__(FP8R_SM90_SKINNY_THREADS(FP8R_SM90_SKINNY_GROUPS(TOKENS, PROMOTE)),
                                  FP8R_SM90_SKINNY_RESIDENT(TOKENS, PROMOTE))
    skinny(const __grid_constant__ struct fp8r_sm90_args args)
{
    extern __shared__ uint8_t dynamic_memory[];
    const uint32_t raw = smem_address(dynamic_memory), memory = kept((raw + 1023) & ~1023u);
    uint8_t *const memory_pointer = dynamic_memory + (memory - raw);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row_warps = (args.rows + 63) / 64 * 4, consumers = row_warps * args.inner;
    const struct skinny_place place = skinny_locate(&args);
    const uint32_t barriers = memory + args.barriers_offset, received = barriers + 16 * FP8R_SM90_STAGES_MAX;
    const struct pipeline pipe = {
        memory,     barriers,          barriers + 8 * FP8R_SM90_STAGES_MAX, args.stages, args.stage_bytes,
        args.depth, args.weight_bytes, TOKENS * FP8R_SM90_BLOCK_K,          0u};
    const uint32_t tokens_offset = args.depth * args.weight_bytes;

    if (warp == consumers) {
        if (lane < args.stages) {
            barrier_init(pipe.full + 8 * lane, 1);
            barrier_init(pipe.empty + 8 * lane, row_warps);
        }
        if (lane == 0) barrier_init(received, skinny_counts<TOKENS>() ? 1 : consumers * args.split);
        barrier_init_fence();
        if (lane == 0 && args.split > 1 && skinny_counts<TOKENS>())
            barrier_expect(received, skinny_owned_units(&args, place.k_rank) * args.split * args.inner * 512);
    } else if (warp == consumers + 1 && lane == 0) {
        tma_prefetch_map(&args.map_b);
        tma_prefetch_map(&args.map_a);
    }
    __syncthreads();
    if (args.split > 1) cluster_arrive_relaxed(); /* this block's barriers are ready */

    if (warp == consumers) {
        if (!(args.flags & FP8R_SM90_WEIGHTS_STATIC)) grid_wait();
        if (lane == 0) skinny_produce<true, TOKENS>(&args, &place, &pipe);
        if (args.split > 1) cluster_wait();
    } else if (warp > consumers) {
        grid_wait();
        if (lane == 0) {
            grid_release();
            skinny_produce<false, TOKENS>(&args, &place, &pipe);
        }
        if (args.split > 1) cluster_wait();
    } else {
        grid_wait();
        const int inner = warp / row_warps, row_warp = warp % row_warps;
        const struct stride stride = skinny_stride(&args, &place, inner);
        const struct skinny_scales scales = skinny_load_scales(&args, &place);
        const uint32_t p_offset = row_warp / 4 * (64 * FP8R_SM90_BLOCK_K);
        float sums[1][TOKENS / 2];
        struct ring ring = {inner, 0, 0, 0};
        if (PROMOTE)
            accumulate_promoting<1, TOKENS, TYPES>(sums, &pipe, &ring, p_offset, tokens_offset, &stride, 0);
        else
            accumulate_fast<1, TOKENS, TYPES>(sums, &pipe, &ring, p_offset, tokens_offset, &stride,
                                              stride.blocks);

        float *const scale_b = (float *)(memory_pointer + args.scales_offset), *const bias = scale_b + 256,
                     *const scale_a = bias + 256;
        if (threadIdx.x < args.rows) {
            scale_b[threadIdx.x] = scales.scale_b;
            bias[threadIdx.x] = scales.bias;
        }
        if (threadIdx.x < TOKENS) scale_a[threadIdx.x] = scales.scale_a;
        if (TOKENS > 128 && consumers == 4 && threadIdx.x + 128 < TOKENS)
            scale_a[threadIdx.x + 128] = load_scale_a(&args, place.batch, threadIdx.x + 128);
        if (args.split > 1) cluster_wait();
        const int limit = min(args.n, place.n + args.rows);
        if (args.split * args.inner == 1) {
            named_barrier_sync(1, consumers * 32);
            if (warp * 16 < args.rows) {
                const struct swapped_columns columns = swapped_columns_at(
                    &args, place.batch, place.n + warp * 16, limit, scale_b + warp * 16, bias + warp * 16);
#pragma unroll
                for (int j = 0; j < TOKENS / 8; ++j)
                    if (8 * j < args.m)
                        store_swapped(&args, &columns,
                                      make_float4(sums[0][4 * j], sums[0][4 * j + 1], sums[0][4 * j + 2],
                                                  sums[0][4 * j + 3]),
                                      8 * j, scale_a + 8 * j);
            }
        } else {
            if (args.flags & FP8R_SM90_RECEIVE_IN_STAGES) { /* nobody may still be reading them */
                if (args.split > 1) {
                    cluster_arrive();
                    cluster_wait();
                } else {
                    named_barrier_sync(1, consumers * 32);
                }
            }
            skinny_send<TOKENS>(&args, &place, row_warp, inner, sums[0], memory_pointer, memory, received);
            named_barrier_sync(1, consumers * 32);
            if (args.split > 1) barrier_wait_cluster(received, 0);
            skinny_collect(&args, &place, memory_pointer, consumers, limit, scale_b, bias, scale_a);
        }
    }
}

#endif
