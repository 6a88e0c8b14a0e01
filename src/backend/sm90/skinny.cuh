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
#include "backend/sm90/skinny_few.cuh"
#include "backend/sm90/skinny_halves.cuh"
#include "backend/sm90/skinny_load.cuh"

/* Sends every unit of this warp to the block that adds it up. */
template <int TOKENS>
FP8R_DEVICE void skinny_send(const struct fp8r_sm90_args *args, const struct skinny_place *place, int warp,
                             int inner, const float (&sums)[TOKENS / 2], uint8_t *memory,
                             uint32_t memory_address, uint32_t received)
{
    const int lane = threadIdx.x % 32, per_warp = args->by_units.d, segments = args->split * args->inner;
    int owner, slot = divide(warp * per_warp, &args->by_split, &owner);
    const uint32_t first = args->receive_offset + (place->segment + inner) * 512 + lane * 16;
#pragma unroll
    for (int j = 0; j < TOKENS / 8; ++j) {
        if (j < per_warp && warp * 16 < args->rows) {
            const uint32_t at = first + slot * segments * 512;
            const float4 part = make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]);
            if (args->split == 1) {
                *(float4 *)(memory + at) = part;
            } else {
                const uint32_t remote = cluster_address(memory_address + at, owner);
                if (skinny_few<TOKENS>())
                    cluster_store_counted(remote, part, cluster_address(received, owner));
                else
                    cluster_store(remote, part);
            }
            if (++owner == args->split) {
                owner = 0;
                ++slot;
            }
        }
    }
    if (args->split > 1 && !skinny_few<TOKENS>()) barrier_arrive_release(received, 0, args->split);
}

/* What the stores need: scales and bias of the block's columns and rows in shared memory, and the column
 * where its results end. */
struct skinny_results {
    const float *scale_b, *bias, *scale_a;
    int limit;
};

/* Adds up this block's units and stores the results, where FP8R_SM90_OUT_FOURS holds. */
template <bool BIASED>
FP8R_DEVICE void skinny_collect_fours(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                      const float4 *received, const struct skinny_results *results)
{
    const int owned = skinny_owned_units(args, place->k_rank), segments = args->split * args->inner;
    uint16_t *const out = (uint16_t *)args->out + place->batch * args->out_batch;
    /* Twice as many slots a turn as there are warps: two units are under way at once. */
#pragma unroll 2
    for (int slot = threadIdx.x / 32; slot < owned; slot += args->by_consumers.d) {
        int unit_m;
        const int column = 16 * divide(slot * args->split + place->k_rank, &args->by_units, &unit_m);
        const float4 sum = sum_parts<32>(received + slot * segments * 32 + threadIdx.x % 32, segments);
        store_swapped_fours<BIASED>(args, out, sum, 8 * unit_m, place->n + column, results->limit,
                                    results->scale_b + column, results->bias + column,
                                    results->scale_a + 8 * unit_m);
    }
}

/* The same for any out. */
FP8R_DEVICE void skinny_collect(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const float4 *received, const struct skinny_results *results)
{
    const int owned = skinny_owned_units(args, place->k_rank), segments = args->split * args->inner;
    for (int slot = threadIdx.x / 32; slot < owned; slot += args->by_consumers.d) {
        int unit_m;
        const int column = 16 * divide(slot * args->split + place->k_rank, &args->by_units, &unit_m);
        const struct swapped_columns columns =
            swapped_columns_at(args, place->batch, place->n + column, results->limit,
                               results->scale_b + column, results->bias + column);
        store_swapped(args, &columns,
                      sum_parts<32>(received + slot * segments * 32 + threadIdx.x % 32, segments), 8 * unit_m,
                      results->scale_a + 8 * unit_m);
    }
}

/* Without segments: straight from the registers of the warp that has rows 16 * warp and on of b. */
template <int TOKENS>
FP8R_DEVICE void skinny_store(const struct fp8r_sm90_args *args, const struct skinny_place *place, int warp,
                              const float (&sums)[TOKENS / 2], const struct skinny_results *results)
{
    const int n = place->n + 16 * warp;
    const float *const scale_b = results->scale_b + 16 * warp, *const bias = results->bias + 16 * warp;
    uint16_t *const out = (uint16_t *)args->out + place->batch * args->out_batch;
    const bool fours = !skinny_few<TOKENS>() && (args->flags & FP8R_SM90_OUT_FOURS);
    if (fours && !args->bias) {
#pragma unroll
        for (int j = 0; j < TOKENS / 8; ++j)
            store_swapped_fours<false>(
                args, out, make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]), 8 * j,
                n, results->limit, scale_b, bias, results->scale_a + 8 * j);
        return;
    }
    if (fours && TOKENS <= 32) { /* many more would be longer than the cache of instructions likes */
#pragma unroll
        for (int j = 0; j < TOKENS / 8; ++j)
            store_swapped_fours<true>(
                args, out, make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]), 8 * j,
                n, results->limit, scale_b, bias, results->scale_a + 8 * j);
        return;
    }
    const struct swapped_columns columns =
        swapped_columns_at(args, place->batch, n, results->limit, scale_b, bias);
#pragma unroll
    for (int j = 0; j < TOKENS / 8; ++j)
        if (8 * j < args->m)
            store_swapped(args, &columns,
                          make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]), 8 * j,
                          results->scale_a + 8 * j);
}

/* What the epilogue needs of scales and bias: a value of each a consumer thread, asked for before the main
 * loop and put into shared memory behind it. */
struct skinny_scales {
    float scale_b, scale_a;
    uint32_t bias; /* as it lies in memory */
};

FP8R_DEVICE struct skinny_scales skinny_load_scales(const struct fp8r_sm90_args *args,
                                                    const struct skinny_place *place)
{
    const int i = threadIdx.x, n = place->n + i;
    const bool column = i < args->rows && n < args->n;
    struct skinny_scales scales = {1.0f, 1.0f, 0};
    if (column && args->scale_b)
        scales.scale_b = args->scale_b[place->batch * args->scale_b_batch + n * args->scale_b_col];
    if (column && args->bias) scales.bias = load_bias_bits(args, bias_address(args, place->batch, n));
    scales.scale_a = load_scale_a(args, place->batch, i);
    return scales;
}

/* Partial sums of segments meet and become results. memory: the block's, aligned. */
template <int TOKENS>
FP8R_DEVICE void skinny_reduce(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                               int row_warp, int inner, const float (&sums)[TOKENS / 2], uint8_t *memory,
                               uint32_t memory_address, uint32_t received,
                               const struct skinny_results *results)
{
    const int threads = args->by_consumers.d * 32;
    if (!skinny_few<TOKENS>() &&
        (args->flags & FP8R_SM90_RECEIVE_IN_STAGES)) { /* nobody may still be reading them */
        if (args->split > 1) {
            cluster_arrive_relaxed();
            cluster_wait();
        } else {
            named_barrier_sync(FP8R_SM90_CONSUMERS_BARRIER, threads);
        }
    }
    skinny_send<TOKENS>(args, place, row_warp, inner, sums, memory, memory_address, received);
    named_barrier_sync(FP8R_SM90_CONSUMERS_BARRIER, threads);
    if (args->split > 1) barrier_wait_cluster(received, 0);
    const float4 *const parts = (const float4 *)(memory + args->receive_offset);
    if (skinny_few<TOKENS>() || !(args->flags & FP8R_SM90_OUT_FOURS))
        skinny_collect(args, place, parts, results);
    else if (args->bias)
        skinny_collect_fours<true>(args, place, parts, results);
    else
        skinny_collect_fours<false>(args, place, parts, results);
}

/* The end of any product but a few tokens' fours: scales into shared memory, sums into results. */
template <int TOKENS>
FP8R_DEVICE void skinny_finish(const struct fp8r_sm90_args *args, const struct skinny_place *place, int warp,
                               int row_warp, int inner, const struct skinny_scales *scales,
                               const float (&sums)[TOKENS / 2], uint8_t *memory, uint32_t memory_address,
                               uint32_t received)
{
    float *const scale_b = (float *)(memory + args->scales_offset), *const bias = scale_b + 256,
                 *const scale_a = bias + 256;
    if (threadIdx.x < args->rows) {
        scale_b[threadIdx.x] = scales->scale_b;
        bias[threadIdx.x] = bias_of_bits(args, scales->bias);
    }
    if (threadIdx.x < TOKENS) scale_a[threadIdx.x] = scales->scale_a;
    if (TOKENS > 128 && args->by_consumers.d == 4 && threadIdx.x + 128 < TOKENS)
        scale_a[threadIdx.x + 128] = load_scale_a(args, place->batch, threadIdx.x + 128);
    if (!skinny_few<TOKENS>() && args->split > 1) cluster_wait();
    const struct skinny_results results = {scale_b, bias, scale_a, min(args->n, place->n + args->rows)};
    if (args->split * args->inner > 1) {
        skinny_reduce<TOKENS>(args, place, row_warp, inner, sums, memory, memory_address, received, &results);
    } else {
        named_barrier_sync(FP8R_SM90_CONSUMERS_BARRIER, args->by_consumers.d * 32);
        if (warp * 16 < args->rows) skinny_store<TOKENS>(args, place, warp, sums, &results);
    }
}

/* Which type of a, if it is not codes but is quantised by the block. */
enum skinny_halves { SKINNY_CODES, SKINNY_BF16, SKINNY_FP16 };

/* Quantises the rows, once they have come. Returns their scales, in the place that skinny_finish has for them; the
 * largest magnitudes lie where it puts those of columns, later. */
template <int HALVES>
FP8R_DEVICE const float *skinny_take_halves(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                            int warp, uint8_t *memory, uint32_t received)
{
    float *const maxima = (float *)(memory + args->scales_offset), *const row_scales = maxima + 2 * 256;
    barrier_wait(halves_barrier(received), 0);
    skinny_quantise<HALVES == SKINNY_BF16>(args, place, warp, memory + args->halves_offset,
                                           memory + args->tokens_offset, maxima, row_scales);
    return row_scales;
}

/* A multiplying warp: rows of b need not fill the 64 of a warpgroup; it multiplies what lies behind them,
 * too, and those results are never stored. */
template <int TOKENS, bool PROMOTE, int TYPES, int HALVES>
FP8R_DEVICE void skinny_consume(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const struct pipeline *pipe, uint8_t *memory, uint32_t received, int warp)
{
    int row_warp;
    const int inner = divide(warp, &args->by_row_warps, &row_warp);
    skinny_ask(args, place, row_warp, inner);
    named_barrier_sync(FP8R_SM90_READY_BARRIER, args->by_consumers.d * 32 + 64);
    if (args->split > 1) cluster_arrive_relaxed();
    const struct stride stride = skinny_stride(args, place, inner);
    const bool in_fours = skinny_few<TOKENS>() && (args->flags & FP8R_SM90_OUT_FOURS);
    struct skinny_fours<TOKENS> fours;
    struct skinny_scales scales;
    if (in_fours) {
        struct skinny_sources<TOKENS> sources;
        skinny_place_fours<TOKENS>(args, place, warp, row_warp, inner, &fours, &sources);
        grid_wait();
        skinny_scale_fours<TOKENS>(args, &sources, &fours);
    } else {
        grid_wait();
        scales = skinny_load_scales(args, place);
    }
    if (skinny_few<TOKENS>() && args->split > 1) cluster_wait();
    const uint32_t p_offset = row_warp / 4 * (64 * FP8R_SM90_BLOCK_K);
    uint32_t q_offset = args->depth * args->weight_bytes;
    if (HALVES) {
        const float *const row_scales = skinny_take_halves<HALVES>(args, place, warp, memory, received);
        scales.scale_a = row_scales[threadIdx.x % 8];
        fours.scale_a[0] = row_scales[2 * (threadIdx.x % 4)];
        fours.scale_a[1] = row_scales[2 * (threadIdx.x % 4) + 1];
        q_offset = args->tokens_offset + skinny_codes_of(args, place, inner);
    }
    float sums[1][TOKENS / 2];
    struct reader at = reader_start(pipe, p_offset, q_offset, inner, stride.turn);
    if (PROMOTE)
        accumulate_promoting<TOKENS, TYPES>(sums, pipe, &at, &stride);
    else
        accumulate_stages<TOKENS, TYPES>(sums, pipe, &at, &stride);
    if (in_fours)
        skinny_finish_fours<TOKENS>(args, &fours, sums[0], memory, pipe->tiles, received);
    else
        skinny_finish<TOKENS>(args, place, warp, row_warp, inner, &scales, sums[0], memory, pipe->tiles,
                              received);
}

/* The first 4 * groups * inner warps multiply; then one loads weights, one tokens. */
template <int TOKENS, bool PROMOTE, int TYPES, int HALVES = SKINNY_CODES>
__global__ void __launch_bounds__(FP8R_SM90_SKINNY_THREADS(FP8R_SM90_SKINNY_GROUPS(TOKENS, PROMOTE)),
                                  FP8R_SM90_SKINNY_RESIDENT(TOKENS, PROMOTE))
    skinny(const __grid_constant__ struct fp8r_sm90_args args)
{
    extern __shared__ uint8_t dynamic_memory[];
    const uint32_t raw = smem_address(dynamic_memory), memory = kept((raw + 1023) & ~1023u);
    const int warp = (int)kept(threadIdx.x / 32), consumers = args.by_consumers.d;
    const struct skinny_place place = skinny_locate(&args);
    const uint32_t full = memory + args.barriers_offset, received = full + 16 * FP8R_SM90_STAGES_MAX;
    const struct pipeline pipe = {memory,
                                  full,
                                  full + 8 * FP8R_SM90_STAGES_MAX,
                                  args.stages,
                                  args.stage_bytes,
                                  args.inner,
                                  args.depth,
                                  args.weight_bytes,
                                  args.rows_a * FP8R_SM90_BLOCK_K,
                                  0u,
                                  false,
                                  HALVES != SKINNY_CODES};
    if (warp == consumers)
        skinny_load_weights<TOKENS>(&args, &place, &pipe);
    else if (warp > consumers)
        skinny_load_tokens<TOKENS, HALVES != SKINNY_CODES>(&args, &place, &pipe, received);
    else
        skinny_consume<TOKENS, PROMOTE, TYPES, HALVES>(&args, &place, &pipe, dynamic_memory + (memory - raw),
                                               received, warp);
}

#endif
