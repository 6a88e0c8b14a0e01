/* The consumers' side of the pipeline: takes stages of two K-major tiles from the ring and multiplies them.
 * Both kernel families share it; it knows neither which operand is which nor where the tiles came from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_MAINLOOP_CUH
#define FP8R_SM90_MAINLOOP_CUH

#include "backend/sm90/args.h"
#include "backend/sm90/wgmma.cuh"

/* Where a thread stands in the ring of stages. */
struct ring {
    int stage;
    uint32_t parity;
    int block; /* of the stage's; consumers only */
    int done;  /* stages left behind; consumers only */
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

/* The shared part: addresses in shared memory, full and empty barrier of stage s at full + 8 s and empty + 8
 * s. A stage holds `depth` blocks of K: first all of operand p, then all of q. */
struct pipeline {
    uint32_t tiles, full, empty;
    int stages, stage_bytes;
    int depth, p_block_bytes, q_block_bytes;
    uint32_t peers; /* mask of the cluster's blocks whose loads reach this block's stages; 0: its own only */
    bool by_stores; /* threads fill the stages, not the copy engine; a constant of the kernel, as is the next */
    bool q_apart;   /* operand q lies beside the stages, all blocks of K of a consumer in a row */
};

/* From a stage's full barrier to its empty one. */
#define FP8R_SM90_EMPTY_OFFSET (8 * FP8R_SM90_STAGES_MAX)

/* Where a thread that loads stands in the ring. */
struct cursor {
    uint32_t to, full, parity;
    int left; /* stages until the ring begins anew */
};

FP8R_DEVICE struct cursor cursor_start(const struct pipeline *pipe)
{
    const struct cursor at = {pipe->tiles, pipe->full, 1, pipe->stages};
    return at;
}

/* Passes over at most as many stages as there are. */
FP8R_DEVICE void cursor_skip(struct cursor *at, const struct pipeline *pipe, int stages)
{
    if (stages == pipe->stages) {
        at->parity ^= 1;
        return;
    }
    at->to += stages * pipe->stage_bytes;
    at->full += 8 * stages;
    at->left -= stages;
}

FP8R_DEVICE void cursor_advance(struct cursor *at, const struct pipeline *pipe)
{
    at->to += pipe->stage_bytes;
    at->full += 8;
    if (--at->left == 0) {
        at->to = pipe->tiles;
        at->full = pipe->full;
        at->left = pipe->stages;
        at->parity ^= 1;
    }
}

/* Waits until a stage is whole. What threads stored is shown to the tensor cores here, not where it was
 * stored: the fence waits for all of a thread's memory traffic, and the loaders always have some. */
FP8R_DEVICE void stage_wait(const struct pipeline *pipe, const struct ring *ring)
{
    barrier_wait(pipe->full + 8 * ring->stage, ring->parity);
    if (pipe->by_stores) async_fence();
}

/* One warp has read a stage to the end: all four of a warpgroup say so, because each waits for its own
 * products only. The barrier of every block that writes into this stage hears it. */
FP8R_DEVICE void stage_release(const struct pipeline *pipe, int stage)
{
    const int lane = threadIdx.x % 32;
    const uint32_t barrier = pipe->empty + 8 * stage;
    if (!pipe->peers) {
        if (lane == 0) barrier_arrive(barrier);
    } else if (pipe->peers >> lane & 1) {
        barrier_arrive_remote(barrier, lane);
    }
}

/* acc[i] (+)= 64 rows of p times N rows of q over steps FIRST .. END - 1 of a block of K, 32 each; the tiles
 * of p are 64 rows apart. p, q: low halves of descriptors of the block. */
template <int TILES, int N, int TYPES, int FIRST, int END>
FP8R_DEVICE void multiply_steps(float (&acc)[TILES][N / 2], uint32_t p, uint32_t q, bool fresh)
{
    wgmma_fence();
#pragma unroll
    for (int step = FIRST; step < END; ++step) {
#pragma unroll
        for (int i = 0; i < TILES; ++i)
            wgmma<N, TYPES>::run(acc[i], wgmma_descriptor(p + i * (64 * FP8R_SM90_BLOCK_K / 16) + 2 * step),
                                 wgmma_descriptor(q + 2 * step), step > 0 || !fresh);
    }
}

/* Which stages of the ring a consumer takes: every `step`th, as many as its blocks fill. The first `releases`
 * are given back; the others are never filled again. The number of stages is a multiple of the step, so that
 * a consumer never meets a stage of another one: a barrier tells one phase from the next only to who saw the
 * one before. */
struct stride {
    int step, blocks, releases;
};

/* Passes over `blocks` stages that another consumer takes. */
FP8R_DEVICE void ring_skip(struct ring *ring, const struct fp8r_sm90_divisor *by_stages, int blocks)
{
    int stage;
    ring->parity ^= divide(ring->stage + blocks, by_stages, &stage) & 1;
    ring->stage = stage;
}

/* sums = the product over the next `blocks` blocks (more than none) in the tensor core's own accumulator: one
 * block's products stay in flight. Says so at a named barrier (0: none) when the last ones are. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void accumulate_fast(float (&sums)[TILES][N / 2], const struct pipeline *pipe, struct ring *ring,
                                 uint32_t p_offset, uint32_t q_offset, const struct stride *stride,
                                 int blocks, int last_barrier = 0)
{
    const uint32_t p_first = wgmma_descriptor_low(pipe->tiles + p_offset);
    const uint32_t q_first = wgmma_descriptor_low(pipe->tiles + q_offset);
    int left = -1; /* a stage that the products in flight may still read */
    for (int block = 0; block < blocks; ++block) {
        const uint32_t stage = ring->stage * (pipe->stage_bytes / 16);
        if (ring->block == 0) stage_wait(pipe, ring);
        multiply_steps<TILES, N, TYPES, 0, FP8R_SM90_BLOCK_K / 32>(
            sums, p_first + stage + ring->block * (pipe->p_block_bytes / 16),
            q_first + stage + ring->block * (pipe->q_block_bytes / 16), block == 0);
        wgmma_commit();
        if (last_barrier && block == blocks - 1) named_barrier_arrive(last_barrier, 256);
        wgmma_wait<1>();
        if (left >= 0) stage_release(pipe, left);
        left = -1;
        if (++ring->block == pipe->depth) {
            if (ring->done++ < stride->releases) left = ring->stage;
            ring->block = 0;
            ring_advance(ring, pipe->stages, stride->step);
        }
    }
    wgmma_wait<0>();
    if (left >= 0) stage_release(pipe, left);
}

/* The same over a consumer's whole stride, where each stage is full: a stage's products are issued together
 * and stay in flight while the next one's are. With few tokens the instructions around a product take longer
 * than itself. */
template <int N, int TYPES>
FP8R_DEVICE void accumulate_stages(float (&sums)[1][N / 2], const struct pipeline *pipe, struct ring *ring,
                                   uint32_t p_offset, uint32_t q_offset, const struct stride *stride)
{
    const uint32_t stage_step = pipe->stage_bytes / 16, p_step = pipe->p_block_bytes / 16,
                   q_step = pipe->q_block_bytes / 16;
    const uint32_t p_first = wgmma_descriptor_low(pipe->tiles + p_offset);
    const uint32_t q_first = wgmma_descriptor_low(pipe->tiles + q_offset);
    int left = -1; /* a stage that the products in flight may still read */
    for (int done = 0; done < stride->blocks; done += pipe->depth) {
        uint32_t p = p_first + ring->stage * stage_step,
                 q = q_first + (pipe->q_apart ? done * q_step : ring->stage * stage_step);
        stage_wait(pipe, ring);
#pragma unroll 1
        for (int block = 0; block < pipe->depth; ++block, p += p_step, q += q_step) {
            multiply_steps<1, N, TYPES, 0, FP8R_SM90_BLOCK_K / 32>(sums, p, q, done + block == 0);
            wgmma_commit();
        }
        wgmma_wait<1>();
        if (left >= 0) stage_release(pipe, left);
        left = ring->done++ < stride->releases ? ring->stage : -1;
        ring_advance(ring, pipe->stages, stride->step);
    }
    wgmma_wait<0>();
    if (left >= 0) stage_release(pipe, left);
}

/* The value that addition leaves every other as it is. */
template <int TILES, int N> FP8R_DEVICE void set_neutral(float (&sums)[TILES][N / 2])
{
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
#pragma unroll
        for (int j = 0; j < N / 2; ++j)
            sums[i][j] = -0.0f;
    }
}

template <int TILES, int N>
FP8R_DEVICE void add_to(float (&sums)[TILES][N / 2], const float (&acc)[TILES][N / 2])
{
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
#pragma unroll
        for (int j = 0; j < N / 2; ++j)
            sums[i][j] = __fadd_rn(sums[i][j], acc[i][j]);
    }
}

/* One block of K into fresh accumulators; the block's stage, or -1 in front of the first. */
template <int N, int TYPES>
FP8R_DEVICE int multiply_block(float (&acc)[1][N / 2], const struct pipeline *pipe, struct ring *ring,
                               uint32_t p_first, uint32_t q_first)
{
    const int stage = ring->stage;
    const uint32_t offset = stage * (pipe->stage_bytes / 16);
    stage_wait(pipe, ring);
    multiply_steps<1, N, TYPES, 0, FP8R_SM90_BLOCK_K / 32>(acc, p_first + offset, q_first + offset, true);
    wgmma_commit();
    ring_advance(ring, pipe->stages, 1);
    return stage;
}

/* Partial sums added in fp32 after every block of K by each warpgroup for itself, with two sets of
 * accumulators: one is added while the products of the next block go into the other. */
template <int N, int TYPES>
FP8R_DEVICE void accumulate_in_pairs(float (&sums)[1][N / 2], const struct pipeline *pipe, struct ring *ring,
                                     uint32_t p_offset, uint32_t q_offset, const struct stride *stride)
{
    const uint32_t p_first = wgmma_descriptor_low(pipe->tiles + p_offset);
    const uint32_t q_first = wgmma_descriptor_low(pipe->tiles + q_offset);
    float even[1][N / 2], odd[1][N / 2];
    set_neutral<1, N>(sums);
    int done = multiply_block<N, TYPES>(even, pipe, ring, p_first, q_first), next;
    for (int left = stride->blocks - 1; left > 0; left -= 2) {
        next = multiply_block<N, TYPES>(odd, pipe, ring, p_first, q_first);
        wgmma_wait<1>();
        stage_release(pipe, done);
        add_to<1, N>(sums, even);
        if (left == 1) {
            wgmma_wait<0>();
            stage_release(pipe, next);
            add_to<1, N>(sums, odd);
            return;
        }
        done = multiply_block<N, TYPES>(even, pipe, ring, p_first, q_first);
        wgmma_wait<1>();
        stage_release(pipe, next);
        add_to<1, N>(sums, odd);
    }
    wgmma_wait<0>();
    stage_release(pipe, done);
    add_to<1, N>(sums, even);
}

/* Promotion where two sets of all N columns do not fit the registers: each holds a half of the columns, and
 * one is added while products go into the other. */
template <int N> struct halves {
    float set[2][1][N / 4];
    uint32_t p, q; /* low descriptors of the ring's first stage */
    int behind;    /* the oldest stage not given back */
};

/* Half HALF of the columns of the ring's next block of K. The first half waits for the stage, the second
 * leaves it. */
template <int N, int TYPES, int HALF>
FP8R_DEVICE void multiply_half(struct halves<N> *halves, const struct pipeline *pipe, struct ring *ring)
{
    constexpr uint32_t begin = HALF * (N / 2) * (FP8R_SM90_BLOCK_K / 16);
    const uint32_t offset = ring->stage * (pipe->stage_bytes / 16);
    if (HALF == 0) stage_wait(pipe, ring);
    multiply_steps<1, N / 2, TYPES, 0, FP8R_SM90_BLOCK_K / 32>(halves->set[HALF], halves->p + offset,
                                                               halves->q + offset + begin, true);
    wgmma_commit();
    if (HALF == 1) ring_advance(ring, pipe->stages, 1);
}

/* Adds a half when all products but for those of PENDING younger ones are complete. */
template <int N, int HALF, int PENDING>
FP8R_DEVICE void add_half(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe)
{
    wgmma_wait<PENDING>();
    if (HALF == 1) {
        stage_release(pipe, halves->behind);
        if (++halves->behind == pipe->stages) halves->behind = 0;
    }
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
        sums[0][HALF * (N / 4) + j] = __fadd_rn(sums[0][HALF * (N / 4) + j], halves->set[HALF][0][j]);
}

/* Adds a block's halves, and begins those of the next one. */
template <int N, int TYPES>
FP8R_DEVICE void halves_step(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe,
                             struct ring *ring)
{
    add_half<N, 0, 1>(sums, halves, pipe);
    multiply_half<N, TYPES, 0>(halves, pipe, ring);
    add_half<N, 1, 1>(sums, halves, pipe);
    multiply_half<N, TYPES, 1>(halves, pipe, ring);
}

/* Before the first tile: its first block's products. */
template <int N, int TYPES>
FP8R_DEVICE void halves_begin(struct halves<N> *halves, const struct pipeline *pipe, struct ring *ring,
                              uint32_t p_offset, uint32_t q_offset)
{
    halves->p = wgmma_descriptor_low(pipe->tiles + p_offset);
    halves->q = wgmma_descriptor_low(pipe->tiles + q_offset);
    halves->behind = 0;
    multiply_half<N, TYPES, 0>(halves, pipe, ring);
    multiply_half<N, TYPES, 1>(halves, pipe, ring);
}

/* A tile's sums but for its last block, whose products are under way then. Returns how many blocks are left,
 * which is 1. */
template <int N, int TYPES>
FP8R_DEVICE int halves_walk(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe,
                            struct ring *ring, int blocks)
{
    int left = blocks;
    set_neutral<1, N>(sums);
    for (; left > 1; --left)
        halves_step<N, TYPES>(sums, halves, pipe, ring);
    return left;
}

/* The rest of a tile's sums; unless it is the LAST one, the next one's first block is under way then. Without
 * the question how much is left, and a wait for everything on the way that is never taken, ptxas does not see
 * which products are in flight behind the loop and serialises them all (its remark C7514). */
template <int N, int TYPES, bool LAST>
FP8R_DEVICE void halves_end(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe,
                            struct ring *ring, int left)
{
    if (left != 1) {
        add_half<N, 0, 0>(sums, halves, pipe);
        if (!LAST) {
            multiply_half<N, TYPES, 0>(halves, pipe, ring);
            multiply_half<N, TYPES, 1>(halves, pipe, ring);
        }
    } else if (LAST) {
        add_half<N, 0, 1>(sums, halves, pipe);
        add_half<N, 1, 0>(sums, halves, pipe);
    } else {
        halves_step<N, TYPES>(sums, halves, pipe, ring);
    }
}

/* The same with one set of accumulators (segments = 0), or adding at the ends of `segments` equal parts of K,
 * which are the parts that a split kernel of that class sums. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void accumulate_promoting(float (&sums)[TILES][N / 2], const struct pipeline *pipe,
                                      struct ring *ring, uint32_t p_offset, uint32_t q_offset,
                                      const struct stride *stride, int segments)
{
    const int parts = segments ? segments : stride->blocks;
    int begin = 0;
    set_neutral<TILES, N>(sums);
    for (int part = 1; part <= parts; ++part) {
        const int end = segments ? (int)((int64_t)stride->blocks * part / parts) : part;
        float acc[TILES][N / 2];
        accumulate_fast<TILES, N, TYPES>(acc, pipe, ring, p_offset, q_offset, stride, end - begin);
        begin = end;
        add_to<TILES, N>(sums, acc);
    }
}

#endif
