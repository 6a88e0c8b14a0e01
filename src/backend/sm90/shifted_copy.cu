/* Rows of any address and pitch to where the copy engine takes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/copy_args.h"
#include "backend/sm90/ptx.cuh"
#include "backend/sm90/shifted.h"

enum { AT_ONCE = 4 };

/* Sixteen bytes of a row from any address: the two granules that they lie in. */
struct granules {
    uint4 low, high;
    uint32_t phase; /* where in them the bytes begin */
    int left;       /* of the row, from there on; negative or 0: none */
};

/* The bytes from inside of two granules. */
FP8R_DEVICE uint4 granules_shifted(const struct granules *from)
{
    const uint32_t w[8] = {from->low.x,  from->low.y,  from->low.z,  from->low.w,
                           from->high.x, from->high.y, from->high.z, from->high.w};
    uint32_t by_two[6], by_one[5], made[4];
#pragma unroll
    for (int i = 0; i < 6; ++i)
        by_two[i] = from->phase & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i)
        by_one[i] = from->phase & 4 ? by_two[i + 1] : by_two[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int left = from->left - 4 * i;
        made[i] = __funnelshift_r(by_one[i], by_one[i + 1], from->phase % 4 * 8);
        made[i] &= left >= 4 ? 0xFFFFFFFFu : left <= 0 ? 0u : (1u << 8 * left) - 1;
    }
    return make_uint4(made[0], made[1], made[2], made[3]);
}

/* A row's bytes from k on, none in front of it or behind its `extent`. Of the operand's memory what lies in
 * front of its end is read, and in front of it the rest of its first granule. */
FP8R_DEVICE struct granules granules_load(const uint8_t *row, int k, int extent, const uint8_t *end)
{
    struct granules made = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0), 0, k < 0 ? 0 : extent - k};
    const uint8_t *const from = row + k;
    const uint32_t phase = (uint32_t)(uintptr_t)from % 16;
    if (made.left <= 0) return made;
    if (from - phase + 32 <= end) {
        made.phase = phase;
        made.low = *(const uint4 *)(from - phase);
        made.high = *(const uint4 *)(from - phase + 16);
        return made;
    }
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 16; ++i)
        if (i < made.left) words[i / 4] |= (uint32_t)from[i] << i % 4 * 8;
    made.low = make_uint4(words[0], words[1], words[2], words[3]);
    return made;
}

/* Of a matrix, granules of 16 bytes from `at` on: one of each of this block's rows. */
FP8R_DEVICE void copy_column(const struct fp8r_sm90_copy_args *args, const uint8_t *from, uint8_t *to, int at)
{
    const uint32_t rows = args->rows;
    for (uint32_t first = blockIdx.x; first < rows; first += AT_ONCE * gridDim.x) {
        struct granules made[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const uint32_t row = first + i * gridDim.x;
            made[i] = granules_load(from + row * args->row, at, row < rows ? args->k : 0, args->end);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const uint32_t row = first + i * gridDim.x;
            if (row < rows) *(uint4 *)(to + row * (int64_t)args->to_row + at) = granules_shifted(&made[i]);
        }
    }
}

/* The product behind it may start at once: it waits for all of this before it reads the copy. Rows may end less than a step in
 * front of 2^31 bytes. */
static __global__ void __launch_bounds__(256, 4)
    shifted_copy(const __grid_constant__ struct fp8r_sm90_copy_args args)
{
    grid_release();
    grid_wait();
    for (int item = blockIdx.y; item < args.items; item += gridDim.y) {
        const uint8_t *const from = args.from + item * args.batch;
        uint8_t *const to = args.to + item * args.to_batch;
        for (int64_t at = threadIdx.x * 16; at < args.to_row; at += blockDim.x * 16)
            copy_column(&args, from, to, (int)at);
    }
}

const void *fp8r_sm90_shifted_copy(void)
{
    return (const void *)shifted_copy;
}
