/* The consumers' side of the pipeline: takes stages of two K-major tiles from the ring and multiplies them.
 * Both kernel families share it; it knows neither which operand is which nor where the tiles came from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_MAINLOOP_CUH
#define FP8R_SM90_MAINLOOP_CUH

#include "backend/sm90/args.h"
#include "backend/sm90/wgmma.cuh"

/* The shared part: addresses in shared memory, full and empty barrier of stage s at full + 8 s and empty + 8
 * s. A stage holds `depth` blocks of K: first all of operand p, then all of q. Consumers take every `step`th
 * stage; their number is a multiple of that, so that a consumer never meets a stage of another one: a barrier
 * tells one phase from the next only to who saw the one before. */
struct pipeline {
    uint32_t tiles, full, empty;
    int stages, stage_bytes, step;
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

/* Where a warpgroup that multiplies stands in the ring. What the next block needs is worked out, and its stage
 * asked for, while products are under way: tiles of 64 rows wait for nothing as long as for what lies between
 * one block's products and the next one's. */
struct reader {
    uint32_t p, apart; /* low half of operand p's descriptor; from there to operand q's */
    uint32_t full, parity;
    int left;   /* of its stages, until the ring begins anew; this one counted */
    bool ready; /* the stage was full when last looked at */
};

/* first: its first stage. p_offset, q_offset: of its operands in a stage, or, of one that lies apart, from the first
 * stage on; turn: its stages, all of the ring. */
FP8R_DEVICE struct reader reader_start(const struct pipeline *pipe, uint32_t p_offset, uint32_t q_offset,
                                       int first, int turn)
{
    const uint32_t stage = first * pipe->stage_bytes;
    const uint32_t p = wgmma_descriptor_low(pipe->tiles + p_offset + stage);
    const uint32_t q = wgmma_descriptor_low(pipe->tiles + q_offset + (pipe->q_apart ? 0 : stage));
    const struct reader at = {p, q - p, pipe->full + 8 * first, 0, turn, false};
    return at;
}

/* A copy to walk over a tile's blocks with. Of numbers that come from one lane the compiler makes descriptors once a
 * block; of others, in each product's way. */
FP8R_DEVICE struct reader reader_on(const struct reader *at)
{
    const struct reader copy = {kept(at->p), at->apart, kept(at->full), at->parity, (int)kept(at->left), at->ready};
    return copy;
}

/* Waits until the stage is whole. What threads stored is shown to the tensor cores here, not where it was
 * stored: the fence waits for all of a thread's memory traffic, and the loaders always have some. */
FP8R_DEVICE void reader_wait(const struct reader *at, const struct pipeline *pipe)
{
    if (!at->ready) barrier_wait(at->full, at->parity);
    if (pipe->by_stores) async_fence();
}

/* On to the next stage. Returns the empty barrier of the one left. */
FP8R_DEVICE uint32_t reader_step(struct reader *at, const struct pipeline *pipe, int turn)
{
    const uint32_t empty = at->full + FP8R_SM90_EMPTY_OFFSET;
    at->p += pipe->step * (pipe->stage_bytes / 16);
    at->full += 8 * pipe->step;
    if (--at->left == 0) {
        at->p -= pipe->stages * (pipe->stage_bytes / 16);
        at->full -= 8 * pipe->stages;
        at->left = turn;
        at->parity ^= 1;
    }
    at->ready = false;
    return empty;
}

/* The same, and asks for it. */
FP8R_DEVICE uint32_t reader_advance(struct reader *at, const struct pipeline *pipe, int turn)
{
    const uint32_t empty = reader_step(at, pipe, turn);
    at->ready = barrier_ready(at->full, at->parity);
    return empty;
}

/* Passes over `blocks` stages that another consumer takes, by one block of K each. */
FP8R_DEVICE void reader_skip(struct reader *at, const struct pipeline *pipe,
                             const struct fp8r_sm90_divisor *by_stages, int blocks)
{
    const int from = pipe->stages - at->left;
    int to;
    at->parity ^= divide(from + blocks, by_stages, &to) & 1;
    at->p += (to - from) * (pipe->stage_bytes / 16);
    at->full += 8 * (to - from);
    at->left = pipe->stages - to;
    at->ready = false;
}

/* One warp has read a stage to the end: all four of a warpgroup say so, because each waits for its own
 * products only. Its barrier in every block that writes into this stage hears it. */
FP8R_DEVICE void stage_release(const struct pipeline *pipe, uint32_t empty)
{
    const int lane = threadIdx.x % 32;
    if (!pipe->peers && lane == 0) barrier_arrive(empty);
    if (pipe->peers >> lane & 1) barrier_arrive_remote(empty, lane);
}

/* acc[i] (+)= 64 rows of p times N rows of q over a block of K, 32 at a time; the tiles of p are 64 rows apart. p, q: low
 * halves of descriptors of the block. In front of the first product into accumulators that were used otherwise there
 * has to be a fence; products of one shape need none between them. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void multiply_block(float (&acc)[TILES][N / 2], uint32_t p, uint32_t q, bool fresh)
{
#pragma unroll
    for (int step = 0; step < FP8R_SM90_BLOCK_K / 32; ++step) {
#pragma unroll
        for (int i = 0; i < TILES; ++i)
            wgmma<N, TYPES>::run(acc[i], wgmma_descriptor(p + i * (64 * FP8R_SM90_BLOCK_K / 16) + 2 * step),
                                 wgmma_descriptor(q + 2 * step), step > 0 || !fresh);
    }
}

/* sums = the product over the next `blocks` blocks (more than none), one a stage, in the tensor core's own
 * accumulator: one block's products stay in flight. Says so at a named barrier (0: none) when the last ones are. */
template <int TILES, int N, int TYPES>
FP8R_DEVICE void accumulate_fast(float (&sums)[TILES][N / 2], const struct pipeline *pipe, struct reader *reader,
                                 int blocks, int last_barrier = 0)
{
    struct reader on = reader_on(reader), *const at = &on;
    reader_wait(at, pipe);
    wgmma_fence();
    multiply_block<TILES, N, TYPES>(sums, at->p, at->p + at->apart, true);
    wgmma_commit();
    if (last_barrier && blocks == 1) named_barrier_arrive(last_barrier, 256);
    uint32_t behind = reader_advance(at, pipe, pipe->stages);
    for (int left = blocks - 1; left > 0; --left) {
        reader_wait(at, pipe);
        wgmma_fence();
        multiply_block<TILES, N, TYPES>(sums, at->p, at->p + at->apart, false);
        wgmma_commit();
        if (last_barrier && left == 1) named_barrier_arrive(last_barrier, 256);
        const uint32_t here = reader_advance(at, pipe, pipe->stages);
        wgmma_wait<1>();
        stage_release(pipe, behind);
        behind = here;
    }
    wgmma_wait<0>();
    stage_release(pipe, behind);
    *reader = on;
}

/* What a consumer takes of a ring that is filled for one tile: so many blocks of K, in `turn` stages of the ring. The
 * first `releases` stages are given back; the others are never filled again. */
struct stride {
    int blocks, turn, releases;
};

/* The same over a consumer's stride, where each stage is full: a stage's products are issued together and stay
 * in flight while the next one's are. With few tokens the instructions around a product take longer than
 * itself; with more, what is done with comes back after the next stage's first block. */
template <int N, int TYPES>
FP8R_DEVICE void accumulate_stages(float (&sums)[1][N / 2], const struct pipeline *pipe, struct reader *at,
                                   const struct stride *stride)
{
    constexpr bool early = N > 32;
    const uint32_t p_step = pipe->p_block_bytes / 16, q_step = pipe->q_block_bytes / 16;
    uint32_t behind = 0, q = at->p + at->apart;
    int releases = stride->releases;
    wgmma_fence();
    for (int done = 0; done < stride->blocks; done += pipe->depth) {
        uint32_t p = at->p;
        if (!pipe->q_apart) q = at->p + at->apart;
        reader_wait(at, pipe);
#pragma unroll 1
        for (int block = 0; block < pipe->depth; ++block, p += p_step, q += q_step) {
            multiply_block<1, N, TYPES>(sums, p, q, done + block == 0);
            wgmma_commit();
            if (early) {
                wgmma_wait<1>();
                if (behind && block == 0) stage_release(pipe, behind);
            }
        }
        const uint32_t here = reader_advance(at, pipe, stride->turn);
        if (!early) {
            wgmma_wait<1>();
            if (behind) stage_release(pipe, behind);
        }
        behind = releases-- > 0 ? here : 0;
    }
    wgmma_wait<0>();
    if (behind) stage_release(pipe, behind);
}

/* The value that addition leaves every other as it is. */
template <int N> FP8R_DEVICE void set_neutral(float (&sums)[1][N / 2])
{
#pragma unroll
    for (int j = 0; j < N / 2; ++j)
        sums[0][j] = -0.0f;
}

template <int N> FP8R_DEVICE void add_to(float (&sums)[1][N / 2], const float (&acc)[1][N / 2])
{
#pragma unroll
    for (int j = 0; j < N / 2; ++j)
        sums[0][j] = __fadd_rn(sums[0][j], acc[0][j]);
}

/* The same over a stride, with partial sums added in fp32 after every block of K. */
template <int N, int TYPES>
FP8R_DEVICE void accumulate_promoting(float (&sums)[1][N / 2], const struct pipeline *pipe, struct reader *at,
                                      const struct stride *stride)
{
    const uint32_t p_step = pipe->p_block_bytes / 16, q_step = pipe->q_block_bytes / 16;
    int releases = stride->releases;
    float acc[1][N / 2];
    set_neutral<N>(sums);
    for (int done = 0; done < stride->blocks; done += pipe->depth) {
        uint32_t p = at->p, q = at->p + at->apart;
        reader_wait(at, pipe);
#pragma unroll 1
        for (int block = 0; block < pipe->depth; ++block, p += p_step, q += q_step) {
            wgmma_fence();
            multiply_block<1, N, TYPES>(acc, p, q, true);
            wgmma_commit();
            wgmma_wait<0>();
            add_to<N>(sums, acc);
        }
        const uint32_t here = reader_advance(at, pipe, stride->turn);
        if (releases-- > 0) stage_release(pipe, here);
    }
}

/* One block of K into fresh accumulators. Returns its empty barrier. */
template <int N, int TYPES>
FP8R_DEVICE uint32_t multiply_fresh(float (&acc)[1][N / 2], const struct pipeline *pipe, struct reader *at)
{
    reader_wait(at, pipe);
    wgmma_fence();
    multiply_block<1, N, TYPES>(acc, at->p, at->p + at->apart, true);
    wgmma_commit();
    return reader_advance(at, pipe, pipe->stages);
}

/* Partial sums added in fp32 after every block of K, one a stage, by each warpgroup for itself, with two sets of
 * accumulators: one is added while the products of the next block go into the other. */
template <int N, int TYPES>
FP8R_DEVICE void accumulate_in_pairs(float (&sums)[1][N / 2], const struct pipeline *pipe, struct reader *reader,
                                     int blocks)
{
    struct reader on = reader_on(reader), *const at = &on;
    float even[1][N / 2], odd[1][N / 2];
    set_neutral<N>(sums);
    uint32_t done = multiply_fresh<N, TYPES>(even, pipe, at), next;
    for (int left = blocks - 1; left > 0; left -= 2) {
        next = multiply_fresh<N, TYPES>(odd, pipe, at);
        wgmma_wait<1>();
        stage_release(pipe, done);
        add_to<N>(sums, even);
        if (left == 1) {
            wgmma_wait<0>();
            stage_release(pipe, next);
            add_to<N>(sums, odd);
            *reader = on;
            return;
        }
        done = multiply_fresh<N, TYPES>(even, pipe, at);
        wgmma_wait<1>();
        stage_release(pipe, next);
        add_to<N>(sums, odd);
    }
    wgmma_wait<0>();
    stage_release(pipe, done);
    add_to<N>(sums, even);
    *reader = on;
}

/* Promotion where two sets of all N columns do not fit the registers: each holds a half of the columns, and
 * one is added while products go into the other. */
template <int N> struct halves {
    float set[2][1][N / 4];
    uint32_t behind; /* empty barrier of the stage that is not given back */
};

/* Half HALF of the columns of the reader's block of K. The first half waits for the stage, the second leaves it. */
template <int N, int TYPES, int HALF>
FP8R_DEVICE void multiply_half(struct halves<N> *halves, const struct pipeline *pipe, struct reader *at)
{
    constexpr uint32_t begin = HALF * (N / 2) * (FP8R_SM90_BLOCK_K / 16);
    if (HALF == 0) reader_wait(at, pipe);
    wgmma_fence();
    multiply_block<1, N / 2, TYPES>(halves->set[HALF], at->p, at->p + at->apart + begin, true);
    wgmma_commit();
    if (HALF == 1) halves->behind = reader_step(at, pipe, pipe->stages);
}

/* Adds a half when all products but for those of PENDING younger ones are complete. */
template <int N, int HALF, int PENDING>
FP8R_DEVICE void add_half(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe)
{
    wgmma_wait<PENDING>();
    if (HALF == 1) stage_release(pipe, halves->behind);
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
        sums[0][HALF * (N / 4) + j] = __fadd_rn(sums[0][HALF * (N / 4) + j], halves->set[HALF][0][j]);
}

/* Adds a block's halves, and begins those of the next one. */
template <int N, int TYPES>
FP8R_DEVICE void halves_step(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe,
                             struct reader *at)
{
    add_half<N, 0, 1>(sums, halves, pipe);
    multiply_half<N, TYPES, 0>(halves, pipe, at);
    add_half<N, 1, 1>(sums, halves, pipe);
    multiply_half<N, TYPES, 1>(halves, pipe, at);
}

/* Before the first tile: its first block's products. */
template <int N, int TYPES>
FP8R_DEVICE void halves_begin(struct halves<N> *halves, const struct pipeline *pipe, struct reader *at)
{
    multiply_half<N, TYPES, 0>(halves, pipe, at);
    multiply_half<N, TYPES, 1>(halves, pipe, at);
}

/* A tile's sums but for its last block, whose products are under way then. Returns how many blocks are left,
 * which is 1. */
template <int N, int TYPES>
FP8R_DEVICE int halves_walk(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe,
                            struct reader *at, int blocks)
{
    int left = blocks;
    set_neutral<N>(sums);
    for (; left > 1; --left)
        halves_step<N, TYPES>(sums, halves, pipe, at);
    return left;
}

/* The rest of a tile's sums; unless it is the LAST one, the next one's first block is under way then. Without
 * the question how much is left, and a wait for everything on the way that is never taken, ptxas does not see
 * which products are in flight behind the loop and serialises them all (its remark C7514). */
template <int N, int TYPES, bool LAST>
FP8R_DEVICE void halves_end(float (&sums)[1][N / 2], struct halves<N> *halves, const struct pipeline *pipe,
                            struct reader *at, int left)
{
    if (left != 1) {
        add_half<N, 0, 0>(sums, halves, pipe);
        if (!LAST) {
            multiply_half<N, TYPES, 0>(halves, pipe, at);
            multiply_half<N, TYPES, 1>(halves, pipe, at);
        }
    } else if (LAST) {
        add_half<N, 0, 1>(sums, halves, pipe);
        add_half<N, 1, 0>(sums, halves, pipe);
    } else {
        halves_step<N, TYPES>(sums, halves, pipe, at);
    }
}

#endif
