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
};

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

/* acc[i] (+)= 64 rows of p times N rows of q over one block of K; the tiles of p are 64 rows apart. p, q: low
 * halves of descriptors. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void multiply_block(float (&acc)[TILES][N / 2], uint32_t p, uint32_t q, bool fresh)
{
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < FP8R_SM90_BLOCK_K / 32; ++step) {
#pragma unroll
        for (int i = 0; i < TILES; ++i)
            wgmma<N, TYPES>::run(acc[i], wgmma_descriptor(p + i * (64 * FP8R_SM90_BLOCK_K / 16) + 2 * step),
                                 wgmma_descriptor(q + 2 * step), step > 0 || !fresh);
    }
    wgmma_commit();
}

/* Which stages of the ring a consumer takes: every `step`th, as many as its blocks fill. The first `releases`
 * are given back; the others are never filled again. The number of stages is a multiple of the step, so that
 * a consumer never meets a stage of another one: a barrier tells one phase from the next only to who saw the
 * one before. */
struct stride {
    int step, blocks, releases;
};

/* sums = the product over the next `blocks` blocks (more than none) in the tensor core's own accumulator: one
 * block's products stay in flight. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void accumulate_fast(float (&sums)[TILES][N / 2], const struct pipeline *pipe, struct ring *ring,
                                 uint32_t p_offset, uint32_t q_offset, const struct stride *stride,
                                 int blocks)
{
    const uint32_t p_first = wgmma_descriptor_low(pipe->tiles + p_offset);
    const uint32_t q_first = wgmma_descriptor_low(pipe->tiles + q_offset);
    int left = -1; /* a stage that the products in flight may still read */
    for (int block = 0; block < blocks; ++block) {
        const uint32_t stage = ring->stage * (pipe->stage_bytes / 16);
        if (ring->block == 0) barrier_wait(pipe->full + 8 * ring->stage, ring->parity);
        multiply_block<TILES, N, TYPES>(sums, p_first + stage + ring->block * (pipe->p_block_bytes / 16),
                                        q_first + stage + ring->block * (pipe->q_block_bytes / 16),
                                        block == 0);
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

/* The same with partial sums added in fp32 after every block (segments = 0), or at the ends of `segments`
 * equal parts of K, which are the parts that a split kernel of that class sums. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void accumulate_promoting(float (&sums)[TILES][N / 2], const struct pipeline *pipe,
                                      struct ring *ring, uint32_t p_offset, uint32_t q_offset,
                                      const struct stride *stride, int segments)
{
    const int parts = segments ? segments : stride->blocks;
    int begin = 0;
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
#pragma unroll
        for (int j = 0; j < N / 2; ++j)
            sums[i][j] = -0.0f; /* the one value that addition leaves every other as it is */
    }
    for (int part = 1; part <= parts; ++part) {
        const int end = segments ? (int)((int64_t)stride->blocks * part / parts) : part;
        float acc[TILES][N / 2];
        accumulate_fast<TILES, N, TYPES>(acc, pipe, ring, p_offset, q_offset, stride, end - begin);
        begin = end;
#pragma unroll
        for (int i = 0; i < TILES; ++i) {
#pragma unroll
            for (int j = 0; j < N / 2; ++j)
                sums[i][j] = __fadd_rn(sums[i][j], acc[i][j]);
        }
    }
}

#endif
