/* Bringing 64 elements of K of a tile's rows into shared memory, from any strides and alignment; what does
 * not exist becomes zero codes. There, a row is 64 bytes, whose four 16-byte pieces trade places every four
 * rows: 8 threads that read two whole rows, as the multiplication does, and those that write transposed
 * words, meet few bank conflicts. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_LOAD_CUH
#define FP8R_CUDA_LOAD_CUH

#include "backend/cuda/args.h"
#include "backend/cuda/decode.cuh"

/* A tile's part of an operand. */
struct panel {
    const uint8_t *data; /* of its first row, at k = 0 */
    int64_t row_stride, k_stride, k;
    int rows; /* that exist, at least one */
    int load;
};

/* Where 16-byte piece `piece` of a row lies. */
FP8R_DEVICE int piece_at(int row, int piece)
{
    return row * FP8R_CUDA_BLOCK_K + ((piece ^ (row >> 2 & 3)) << 4);
}

FP8R_DEVICE int word_at(int row, int word)
{
    return piece_at(row, word >> 2) + (word & 3) * 4;
}

/* Asynchronously; zeros where it does not exist, and nothing is read. */
template <int BYTES> FP8R_DEVICE void copy_async(uint8_t *to, const uint8_t *from, bool exists)
{
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(to);
    const int size = exists ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(size)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(size)
                     : "memory");
}

FP8R_DEVICE void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most `pending` groups are under way. */
template <int PENDING> FP8R_DEVICE void copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* The first `exist` of four codes, stride apart. */
FP8R_DEVICE uint32_t gather_word(const uint8_t *from, int64_t stride, int exist)
{
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (i < exist) word |= (uint32_t)from[i * stride] << 8 * i;
    return word;
}

/* BYTES at a time; counts are known to the compiler, and a thread stays at its place along K. */
template <int ROWS, int THREADS, int BYTES>
FP8R_DEVICE void load_pieces(const struct panel *panel, int64_t k, int k_left, uint8_t *to)
{
    constexpr int EACH = FP8R_CUDA_BLOCK_K / BYTES,
                  STEP = THREADS / EACH; /* pieces a row, rows between a thread's */
    const int row = threadIdx.x / EACH, at = threadIdx.x % EACH * BYTES;
    const int exist = min(max(k_left - at, 0), BYTES);
    const uint8_t *from = panel->data + row * panel->row_stride + k + at;
    const int64_t step = STEP * panel->row_stride;
    if (exist > 0 && exist < BYTES) { /* the end of K: an asynchronous copy might read beyond it */
        for (int its = row; its < ROWS; its += STEP, from += step)
            for (int i = 0; i < BYTES; i += 4)
                *(uint32_t *)(to + word_at(its, (at + i) / 4)) =
                    gather_word(from + i, 1, its < panel->rows ? exist - i : 0);
        return;
    }
#pragma unroll
    for (int i = 0; i < ROWS / STEP; ++i) {
        const int its = row + i * STEP;
        copy_async<BYTES>(to + (BYTES == 16 ? piece_at(its, at / 16) : word_at(its, at / 4)), from,
                          its < panel->rows && exist > 0);
        from += step;
    }
}

/* Bytes i of four words to word i. */
FP8R_DEVICE void transpose_bytes(uint32_t w[4])
{
    const uint32_t low01 = __byte_perm(w[0], w[1], 0x5140), low23 = __byte_perm(w[2], w[3], 0x5140);
    const uint32_t high01 = __byte_perm(w[0], w[1], 0x7362), high23 = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(low01, low23, 0x5410);
    w[1] = __byte_perm(low01, low23, 0x7632);
    w[2] = __byte_perm(high01, high23, 0x5410);
    w[3] = __byte_perm(high01, high23, 0x7632);
}

/* Four neighbouring rows at one k. */
FP8R_DEVICE uint32_t load_four_rows(const struct panel *panel, int row, const uint8_t *from)
{
    if (row + 4 <= panel->rows) return *(const uint32_t *)from;
    uint32_t word = 0;
    for (int i = 0; i < 3; ++i)
        if (row + i < panel->rows) word |= (uint32_t)from[i] << 8 * i;
    return word;
}

/* Rows are contiguous: a thread takes 4 x 4 codes, a warp 32 rows x 16 k, so that reads fill sectors.
 * WHOLE: all rows and all of the block's k exist. */
template <int ROWS, int THREADS, bool WHOLE>
FP8R_DEVICE void load_rows(const struct panel *panel, int64_t k, int k_left, uint8_t *to)
{
    constexpr int WARPS = THREADS / 32, UNITS = ROWS / 32 * (FP8R_CUDA_BLOCK_K / 16) / WARPS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t word[UNITS][4];
#pragma unroll
    for (int unit = 0; unit < UNITS; ++unit) {
        const int its = warp + unit * WARPS;
        const int row = its % (ROWS / 32) * 32 + lane % 8 * 4, at = its / (ROWS / 32) * 16 + lane / 8 * 4;
        const uint8_t *from = panel->data + row + (k + at) * panel->k_stride;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (WHOLE)
                word[unit][i] = *(const uint32_t *)from;
            else
                word[unit][i] = at + i < k_left && row < panel->rows ? load_four_rows(panel, row, from) : 0;
            from += panel->k_stride;
        }
    }
#pragma unroll
    for (int unit = 0; unit < UNITS; ++unit) { /* all reads are under way before the first is waited for */
        const int its = warp + unit * WARPS;
        const int row = its % (ROWS / 32) * 32 + lane % 8 * 4, at = its / (ROWS / 32) * 16 + lane / 8 * 4;
        transpose_bytes(word[unit]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            *(uint32_t *)(to + word_at(row + i, at / 4)) = word[unit][i];
    }
}

/* A byte at a time. ACROSS: neighbouring threads take neighbouring rows. */
template <int ROWS, int THREADS, bool ACROSS, bool WHOLE>
FP8R_DEVICE void load_bytes(const struct panel *panel, int64_t k, int k_left, uint8_t *to)
{
    constexpr int WORDS = FP8R_CUDA_BLOCK_K / 4, EACH = ACROSS ? ROWS : WORDS, STEP = THREADS / EACH;
    const int row = ACROSS ? threadIdx.x % ROWS : threadIdx.x / WORDS;
    const int at = (ACROSS ? threadIdx.x / ROWS : threadIdx.x % WORDS) * 4;
    const uint8_t *from = panel->data + row * panel->row_stride + (k + at) * panel->k_stride;
    const int64_t step = ACROSS ? STEP * 4 * panel->k_stride : STEP * panel->row_stride;
#pragma unroll 4
    for (int i = 0; i < ROWS * WORDS / THREADS; ++i) {
        const int its_row = ACROSS ? row : row + i * STEP, its_at = ACROSS ? at + i * STEP * 4 : at;
        const int exist = WHOLE ? 4 : its_row < panel->rows ? k_left - its_at : 0;
        *(uint32_t *)(to + word_at(its_row, its_at / 4)) = gather_word(from, panel->k_stride, exist);
        from += step;
    }
}

/* What goes through registers. */
template <int ROWS, int THREADS, bool WHOLE>
FP8R_DEVICE void load_slowly(const struct panel *panel, int64_t k, int k_left, uint8_t *to)
{
    if (panel->load == FP8R_CUDA_LOAD_ROWS)
        load_rows<ROWS, THREADS, WHOLE>(panel, k, k_left, to);
    else if (panel->load == FP8R_CUDA_LOAD_BYTES)
        load_bytes<ROWS, THREADS, false, WHOLE>(panel, k, k_left, to);
    else
        load_bytes<ROWS, THREADS, true, WHOLE>(panel, k, k_left, to);
}

/* The panel's elements k to k + 63. */
template <int ROWS, int THREADS>
FP8R_DEVICE void load_block(const struct panel *panel, int64_t k, uint8_t *to)
{
    const int k_left = (int)min(panel->k - k, (int64_t)FP8R_CUDA_BLOCK_K);
    if (panel->load == FP8R_CUDA_LOAD_16)
        load_pieces<ROWS, THREADS, 16>(panel, k, k_left, to);
    else if (panel->load == FP8R_CUDA_LOAD_4)
        load_pieces<ROWS, THREADS, 4>(panel, k, k_left, to);
    else if (panel->rows >= ROWS && k_left == FP8R_CUDA_BLOCK_K)
        load_slowly<ROWS, THREADS, true>(panel, k, k_left, to);
    else
        load_slowly<ROWS, THREADS, false>(panel, k, k_left, to);
}

#endif
