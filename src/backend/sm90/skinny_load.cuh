/* The loading warps of a skinny block, and what its others ask for at the start: everything here serves to
 * have weights on their way from the first moment. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SKINNY_LOAD_CUH
#define FP8R_SM90_SKINNY_LOAD_CUH

#include "backend/sm90/skinny_halves.cuh"
#include "backend/sm90/skinny_place.cuh"

/* Where a thread that loads stands in the ring of stages. */
struct ring {
    int stage;
    uint32_t parity;
};

/* step <= stages. */
FP8R_DEVICE void ring_advance(struct ring *ring, int stages, int step)
{
    ring->stage += step;
    if (ring->stage >= stages) {
        ring->stage -= stages;
        ring->parity ^= 1;
    }
}

/* One thread each keeps the stages full of weights and of tokens: a stage is `depth` blocks of one segment,
 * segments take turns, and in the last round the shorter ones leave theirs out. The copy engine stores one
 * block of K behind the other, each as the tensor core reads it. Fills rounds first .. end - 1; in those of
 * the ring's first turn no stage has to be waited for. */
template <bool WEIGHTS, int TOKENS>
FP8R_DEVICE void skinny_produce(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                const struct pipeline *pipe, int first, int end)
{
    const uint32_t bytes = args->load_bytes;
    const int batch = WEIGHTS ? args->b_batch * place->batch : args->a_batch * place->batch;
    struct ring ring = {0, 1};
    if (first > 0) ring_advance(&ring, pipe->stages, first * args->inner);
    uint32_t to =
        pipe->tiles + ring.stage * pipe->stage_bytes + (WEIGHTS ? 0 : args->depth * args->weight_bytes);
    for (int round = first; round < end; ++round) {
        for (int i = place->segment; i < place->segment + args->inner; ++i) {
            const int block = args->segment[i] + round * args->depth;
            if (block < args->segment[i + 1]) {
                const uint32_t full = pipe->full + 8 * ring.stage;
                const int x = block * args->step_x, z = block * args->step_z;
                if (round >= place->first_rounds) barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
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

/* The warp that loads weights: it initialises what it needs itself, so that they are under way as early as
 * possible. */
template <int TOKENS>
FP8R_DEVICE void skinny_load_weights(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                     const struct pipeline *pipe)
{
    if (elected()) {
        for (int stage = 0; stage < args->stages; ++stage)
            barrier_init(pipe->full + 8 * stage, 1);
        barrier_init_fence();
    }
    __syncwarp();
    named_barrier_arrive(FP8R_SM90_READY_BARRIER, args->by_consumers.d * 32 + 64);
    if (skinny_few<TOKENS>() && args->split > 1) cluster_arrive_relaxed();
    const int ahead = min(args->ahead, place->first_rounds);
    if (elected()) skinny_produce<true, TOKENS>(args, place, pipe, 0, ahead);
    if (ahead < place->first_rounds) {
        grid_wait();
        if (elected()) skinny_produce<true, TOKENS>(args, place, pipe, ahead, place->first_rounds);
    }
    __syncwarp();
    if (!skinny_few<TOKENS>() && args->split > 1) cluster_arrive_relaxed();
    named_barrier_sync(FP8R_SM90_EMPTY_BARRIER, 64);
    if (elected()) skinny_produce<true, TOKENS>(args, place, pipe, place->first_rounds, place->rounds);
    if (args->split > 1) cluster_wait();
}

/* The warp that loads tokens, unless others QUANTISE them, initialises the other barriers. */
template <int TOKENS, bool QUANTISE>
FP8R_DEVICE void skinny_load_tokens(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                    const struct pipeline *pipe, uint32_t received)
{
    const int consumers = args->by_consumers.d;
    if (elected()) {
        tma_prefetch_map(&args->map_b);
        if (!QUANTISE) tma_prefetch_map(&args->map_a);
        for (int stage = 0; stage < args->stages; ++stage)
            barrier_init(pipe->empty + 8 * stage, args->row_warps);
        barrier_init(received, skinny_few<TOKENS>() ? 1 : consumers * args->split);
        if (QUANTISE) barrier_init(halves_barrier(received), 1);
        barrier_init_fence();
        if (args->split > 1 && skinny_few<TOKENS>())
            barrier_expect(received,
                           skinny_owned_units(args, place->k_rank) * args->split * args->inner * 512);
    }
    __syncwarp();
    named_barrier_arrive(FP8R_SM90_EMPTY_BARRIER, 64);
    named_barrier_sync(FP8R_SM90_READY_BARRIER, consumers * 32 + 64);
    if (args->split > 1) cluster_arrive_relaxed(); /* this block's barriers are ready */
    if (QUANTISE) {
        grid_wait();
        if (elected()) halves_fetch(args, place, pipe->tiles + args->halves_offset, halves_barrier(received));
        named_barrier_sync(FP8R_SM90_TOKENS_BARRIER, consumers * 32 + 32);
        if (elected()) grid_release();
        if (args->split > 1) cluster_wait();
        return;
    }
    grid_wait();
    if (elected()) {
        skinny_produce<false, TOKENS>(args, place, pipe, 0, place->first_rounds);
        grid_release();
        skinny_produce<false, TOKENS>(args, place, pipe, place->first_rounds, place->rounds);
    }
    if (args->split > 1) cluster_wait();
}

/* Static weights: a line a thread comes from memory into the L2 while the copy engine fetches its tensor map.
 * One instruction: more would run through a cold instruction cache. */
FP8R_DEVICE void skinny_ask(const struct fp8r_sm90_args *args, const struct skinny_place *place, int row_warp,
                            int inner)
{
    int line;
    const int row = divide(row_warp * 32 + threadIdx.x % 32, &args->by_lines, &line);
    if (args->lines == 0 || row >= args->rows || place->n + row >= args->n) return;
    const int block = args->segment[place->segment + inner] + line;
    prefetch_line(args->b + place->batch * args->b_matrix + (place->n + row) * args->b_row +
                  block * FP8R_SM90_BLOCK_K);
}

#endif
