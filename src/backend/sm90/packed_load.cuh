/* Rows of any pitch from any address into swizzled tiles, without the copy engine. A thread copies whole
 * 16-byte granules of lines of memory to places of its own in shared memory, and later stores their words
 * where a row's own alignment puts them. Knows addresses; what the tiles are for and when a stage is free is
 * packed.cuh's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_PACKED_LOAD_CUH
#define FP8R_SM90_PACKED_LOAD_CUH

#include "backend/sm90/ptx.cuh"

/* A thread's share of one operand's tile: the same granule of every PACKED_STRIDE_ROWS'th row. Rows so far
 * apart begin at the same place of their window (32 to 128 bytes, as far as that holds for the pitch), so
 * that all of this is the same for all of them and for all of K.
 *
 * Of the 32 words of a window, those in front of where a row's block of K begins belong to the block before:
 * each goes to one of two stages, and a block is whole when the window behind it is stored, too. */
struct packed_rows {
    const uint8_t *granule; /* its own one, first row, block 0 of K */
    int64_t stride;         /* bytes to its next row */
    int there;              /* rows of its own that exist */
    int steps;              /* rows that any thread of the warpgroup has, at most */
    int start;              /* the granule's first k in block 0; may lie before the row */
    uint32_t to;            /* in the stage, its first row */
    uint32_t bits;          /* that a row begins behind the beginning of a word */
};

/* Distance of the four rows of a warp such that they begin at different words of a granule, where the pitch
 * lets them: their stores then meet in no bank. */
FP8R_DEVICE int packed_distance(int64_t pitch)
{
    return pitch & 1 ? 4 : pitch & 2 ? 2 : 1;
}

/* rows: of the tile that exist; row: address of its first; offset: of the operand in a stage. loader: which
 * of the loading warpgroups this is. */
FP8R_DEVICE struct packed_rows packed_locate(const uint8_t *row, int64_t pitch, int rows, uint32_t offset,
                                             int loader)
{
    struct packed_rows at;
    const int warp = threadIdx.x / 32 % 4, slot = threadIdx.x % 32 / 8, column = threadIdx.x % 8;
    const int distance = packed_distance(pitch);
    const int own = loader * FP8R_SM90_PACKED_STEP_ROWS + slot * distance + warp % distance +
                    warp / distance * 4 * distance;
    const uint8_t *const first = row + own * pitch;
    /* Stride rows of this pitch are a multiple of the window. */
    const uint32_t window = pitch & 1 ? 32 : pitch & 2 ? 64 : 128;
    const uint32_t phase = (uint32_t)(uintptr_t)first & (window - 1);
    at.granule = first - phase + 16 * column;
    at.stride = pitch * FP8R_SM90_PACKED_STRIDE_ROWS;
    at.there = rows <= own ? 0 : (rows - own - 1) / FP8R_SM90_PACKED_STRIDE_ROWS + 1;
    const int before = loader * FP8R_SM90_PACKED_STEP_ROWS;
    at.steps = rows <= before ? 0 : (rows - before - 1) / FP8R_SM90_PACKED_STRIDE_ROWS + 1;
    at.start = 16 * column - (int)phase;
    at.bits = phase % 4 * 8;
    at.to = offset + own * FP8R_SM90_BLOCK_K;
    return at;
}

/* Where the words of a thread's granules go. BYTES: rows may begin inside a word, and words are made of two
 * neighbours; a thread then makes those that end in its granule. */
struct packed_words {
    int first;         /* of the block; negative: of the block before */
    uint32_t place[4]; /* in the stage, of the first row; swizzled as the tensor core reads it */
};

template <bool BYTES> FP8R_DEVICE struct packed_words packed_words_of(const struct packed_rows *rows)
{
    struct packed_words words;
    words.first = BYTES ? ((rows->start + (int)(rows->bits / 8)) >> 2) - 1 : rows->start >> 2;
#pragma unroll
    for (int j = 0; j < 4; ++j)
        words.place[j] =
            opaque(rows->to + (((uint32_t)(words.first + j) * 4 & 127) ^ (rows->to >> 3 & 0x70)));
    return words;
}

/* The first `bytes` of a granule to shared memory, and zeros behind them; the others are not read. Lines go
 * past the cache of the multiprocessor: each is read by one instruction and never again. */
FP8R_DEVICE void packed_copy(uint32_t to, const uint8_t *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

FP8R_DEVICE void packed_copy(uint32_t to, const uint8_t *from)
{
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

FP8R_DEVICE void shared_store_word(uint32_t to, uint32_t value)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

/* The same where the granule reaches beyond the operand: the others are not even read. */
FP8R_DEVICE void packed_copy_end(uint32_t to, const uint8_t *from, int bytes)
{
#pragma unroll 1
    for (int i = 0; i < 16; i += 4, from += 4, bytes -= 4) {
        if (bytes >= 4) {
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to + i), "l"(from) : "memory");
            continue;
        }
        uint32_t word = 0, byte = 0;
#pragma unroll 1
        for (int j = 0; j < bytes; ++j) {
            asm volatile("ld.global.u8 %0, [%1];" : "=r"(byte) : "l"(from + j));
            word |= byte << 8 * j;
        }
        shared_store_word(to + i, word);
    }
}

/* What a thread has copied since the last commit is one group. */
FP8R_DEVICE void packed_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until all but the last PENDING groups of this thread are there. */
template <int PENDING> FP8R_DEVICE void packed_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Bytes from one granule of a thread to its next in the ring. */
#define FP8R_SM90_PACKED_APART (16 * 128 * FP8R_SM90_PACKED_LOADERS)

/* The granules of a block of K on their way to the thread's places from `to` on. INSIDE: the block is neither
 * the first nor the last of the rows. beyond: the block is another's, and only words for the one before it
 * are wanted. A granule may begin in front of the operand, in the same 16 bytes as its first one; behind the
 * rows nothing is read. */
template <int STEPS, bool INSIDE>
FP8R_DEVICE void packed_fetch(uint32_t to, const struct packed_rows *rows, const uint8_t *end, int extent,
                              int block, bool beyond)
{
    const int64_t k = (int64_t)block * FP8R_SM90_BLOCK_K + rows->start, left = extent - k;
    const bool wanted = INSIDE || (k > -16 && (!beyond || rows->start <= 0));
    const int bytes = left > 16 ? 16 : left > 0 ? (int)left : 0, there = wanted ? rows->there : 0;
    const uint8_t *at = rows->granule + (int64_t)block * FP8R_SM90_BLOCK_K;
#pragma unroll
    for (int i = 0; i < STEPS; ++i, at += rows->stride) {
        if (i >= there) continue;
        if (INSIDE)
            packed_copy(to + i * FP8R_SM90_PACKED_APART, at);
        else if (bytes == 0 || at + 16 <= end)
            packed_copy(to + i * FP8R_SM90_PACKED_APART, at, bytes);
        else
            packed_copy_end(to + i * FP8R_SM90_PACKED_APART, at, bytes);
    }
}

FP8R_DEVICE uint4 shared_load_granule(uint32_t from)
{
    uint4 value;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(from)
                 : "memory");
    return value;
}

/* The words of a granule to their places. last: the previous window's last word. */
template <bool BYTES>
FP8R_DEVICE void packed_put(const uint32_t (&to)[4], uint32_t step, const bool (&stores)[4], uint32_t bits,
                            uint4 granule, uint32_t *last)
{
    const uint32_t w[4] = {granule.x, granule.y, granule.z, granule.w};
    uint32_t lower = 0;
    if (BYTES) {
        const int lane = threadIdx.x % 32;
        lower = __shfl_sync(0xFFFFFFFFu, lane % 8 == 7 ? *last : w[3], (lane & ~7) | ((lane - 1) & 7));
        *last = w[3];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const uint32_t value = BYTES ? __funnelshift_r(j == 0 ? lower : w[(j + 3) % 4], w[j], bits) : w[j];
        if (stores[j]) shared_store_word(to[j] + step, value);
    }
}

/* A window from the thread's places, from `from` on, into the stages of its block and of the one before.
 * BEYOND: it has no block, and only words for the one before are stored. */
template <int STEPS, bool BYTES, bool BEYOND>
FP8R_DEVICE void packed_fill(uint32_t here, uint32_t before, const struct packed_rows *rows,
                             const struct packed_words *words, uint32_t from, uint32_t (&last)[STEPS])
{
    uint32_t to[4];
    bool stores[4];
    uint4 window[STEPS];
#pragma unroll
    for (int i = 0; i < STEPS; ++i)
        if (i < rows->steps) window[i] = shared_load_granule(from + i * FP8R_SM90_PACKED_APART);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        to[j] = (words->first + j < 0 ? before : here) + words->place[j];
        stores[j] = !BEYOND || words->first + j < 0;
    }
#pragma unroll
    for (int i = 0; i < STEPS; ++i)
        if (i < rows->steps)
            packed_put<BYTES>(to, i * FP8R_SM90_PACKED_STRIDE_ROWS * FP8R_SM90_BLOCK_K, stores, rows->bits,
                              window[i], &last[i]);
}

#endif
