/* Results of few tokens, bf16 in groups of four columns: what a thread stores is known before the first stage
 * is there, and little is left to do behind the last product, where nothing hides it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SKINNY_FEW_CUH
#define FP8R_SM90_SKINNY_FEW_CUH

#include "backend/sm90/epilogue.cuh"
#include "backend/sm90/skinny_place.cuh"

/* A bias as it lies in memory. Its value is made of it behind the last product: a conversion waits for the
 * load, and in front of the main loop so would that. */
FP8R_DEVICE uint32_t load_bias_bits(const struct fp8r_sm90_args *args, const uint8_t *bias)
{
    __builtin_assume(__isGlobal(bias));
    if (args->bias_dtype == FP8R_DTYPE_FP32) return *(const uint32_t *)bias;
    return *(const uint16_t *)bias;
}

FP8R_DEVICE const uint8_t *bias_address(const struct fp8r_sm90_args *args, int batch, int column)
{
    const int64_t index = batch * args->bias_batch + column * args->bias_col;
    return (const uint8_t *)args->bias + (args->bias_dtype == FP8R_DTYPE_FP32 ? 4 : 2) * index;
}

FP8R_DEVICE float bias_of_bits(const struct fp8r_sm90_args *args, uint32_t bits)
{
    if (args->bias_dtype == FP8R_DTYPE_BF16) return __uint_as_float(bits << 16);
    if (args->bias_dtype == FP8R_DTYPE_FP16) return __half2float(__ushort_as_half((unsigned short)bits));
    return __uint_as_float(bits);
}

/* Where tokens are few and FP8R_SM90_OUT_FOURS holds, a warp stores one unit, or without segments all of its
 * own. Which, where to and by which scales is known before the first stage is there: what follows the last
 * product runs once, through a cold instruction cache, and has to be short. */
template <int TOKENS> struct skinny_fours {
    float scale_b[2];          /* of columns lane / 4 and lane / 4 + 8 */
    uint32_t bias[2];          /* of them, as it lies in memory */
    float scale_a[TOKENS / 4]; /* of rows 2 (lane % 4) and one more, a pair a unit */
    uint16_t *to;              /* four columns of row lane / 4 of the first unit */
    int rows;                  /* that are left from there on; none where nothing is stored */
    int segments, parts; /* bytes in shared memory where the unit's parts are, or -1: another warp has it */
    int owner, send;     /* who adds up the warp's first unit, and bytes in its shared memory; -1: none */
};

/* Where the scales of a thread's columns and rows come from, NULL: 1, and the bias, NULL: none. */
template <int TOKENS> struct skinny_sources {
    const float *scale_b[2], *scale_a[TOKENS / 4];
    const uint8_t *bias[2];
};

/* n: the thread's first column, the second is 8 on, those from limit on are absent; m: its first row. Both
 * these functions come before the wait. Without branches the compiler would move the arithmetic behind it. */
template <int TOKENS>
FP8R_DEVICE void skinny_find_scales(const struct fp8r_sm90_args *args, int batch, int n, int limit, int m,
                                    struct skinny_sources<TOKENS> *sources)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int column = n + 8 * half;
        sources->bias[half] = opaque(column < limit && args->bias ? bias_address(args, batch, column) : NULL);
        sources->scale_b[half] =
            opaque(column < limit && args->scale_b
                       ? args->scale_b + batch * args->scale_b_batch + column * args->scale_b_col
                       : NULL);
    }
#pragma unroll
    for (int i = 0; i < TOKENS / 4; ++i) {
        const int row = m + i / 2 * 8 + i % 2;
        sources->scale_a[i] =
            opaque(row < args->m && args->scale_a
                       ? args->scale_a + batch * args->scale_a_batch + row * args->scale_a_row
                       : NULL);
    }
}

template <int TOKENS>
FP8R_DEVICE void skinny_place_fours(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                    int warp, int row_warp, int inner, struct skinny_fours<TOKENS> *fours,
                                    struct skinny_sources<TOKENS> *sources)
{
    const int lane = threadIdx.x % 32, quarter = lane % 4, segments = args->split * args->inner;
    const int limit = min(args->n, place->n + args->rows);
    int unit_m = 0, column = place->n + 16 * warp;
    fours->segments = segments;
    fours->parts = fours->send = -1;
    fours->owner = 0;
    if (segments > 1) {
        const int slot = divide(row_warp * args->by_units.d, &args->by_split, &fours->owner);
        column = place->n + 16 * divide(warp * args->split + place->k_rank, &args->by_units, &unit_m);
        if (column < place->n + args->rows)
            fours->parts = args->receive_offset + warp * segments * 512 + lane * 16;
        if (row_warp * 16 < args->rows)
            fours->send = args->receive_offset + (slot * segments + place->segment + inner) * 512 + lane * 16;
    }
    const int start = column + (quarter & 1 ? 8 + 2 * (quarter - 1) : 2 * quarter);
    const int row = 8 * unit_m + lane / 4;
    fours->to = opaque((uint16_t *)args->out + place->batch * args->out_batch + row * args->out_row + start);
    fours->rows = start < limit ? args->m - row : 0;
    skinny_find_scales<TOKENS>(args, place->batch, column + lane / 4, limit, 8 * unit_m + 2 * quarter,
                               sources);
}

/* Behind it. */
template <int TOKENS>
FP8R_DEVICE void skinny_scale_fours(const struct fp8r_sm90_args *args,
                                    const struct skinny_sources<TOKENS> *sources,
                                    struct skinny_fours<TOKENS> *fours)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        fours->scale_b[half] = sources->scale_b[half] ? load_global(sources->scale_b[half]) : 1.0f;
        fours->bias[half] = sources->bias[half] ? load_bias_bits(args, sources->bias[half]) : 0;
    }
#pragma unroll
    for (int i = 0; i < TOKENS / 4; ++i)
        fours->scale_a[i] = sources->scale_a[i] ? load_global(sources->scale_a[i]) : 1.0f;
}

/* One unit, the j-th of the warp. */
template <int TOKENS>
FP8R_DEVICE void skinny_store_four(const struct fp8r_sm90_args *args,
                                   const struct skinny_fours<TOKENS> *fours, float4 sum, int j)
{
    const bool biased = args->bias != NULL;
    const float *const a = fours->scale_a + 2 * j, *const b = fours->scale_b;
    float bias[2] = {0.0f, 0.0f};
    if (biased) {
        bias[0] = bias_of_bits(args, fours->bias[0]);
        bias[1] = bias_of_bits(args, fours->bias[1]);
    }
    const uint32_t first =
        transpose_8x8(pack_halves(FP8R_DTYPE_BF16, finish(sum.x, b[0], a[0], biased, bias[0]),
                                  finish(sum.y, b[0], a[1], biased, bias[0])));
    const uint32_t second =
        transpose_8x8(pack_halves(FP8R_DTYPE_BF16, finish(sum.z, b[1], a[0], biased, bias[1]),
                                  finish(sum.w, b[1], a[1], biased, bias[1])));
    uint32_t low, high;
    widen_pairs(first, second, &low, &high);
    if (8 * j < fours->rows) store_global(fours->to + 8 * j * args->out_row, make_uint2(low, high));
}

/* The sum of a unit's parts in the order of K, of which few are more than four. */
FP8R_DEVICE float4 skinny_sum(const float4 *parts, int count)
{
    float4 part[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        part[i] = i < count ? parts[32 * i] : make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
#pragma unroll
    for (int i = 1; i < 4; ++i)
        part[0] = add_parts(part[0], part[i]);
#pragma unroll 1
    for (int i = 4; i < count; ++i)
        part[0] = add_parts(part[0], parts[32 * i]);
    return part[0];
}

/* Sends the warp's partial sums: units of the same columns, which neighbours in rank add up. */
template <int TOKENS>
FP8R_DEVICE void skinny_send_fours(const struct fp8r_sm90_args *args,
                                   const struct skinny_fours<TOKENS> *fours, const float (&sums)[TOKENS / 2],
                                   uint8_t *memory, uint32_t memory_address, uint32_t received)
{
    int owner = fours->owner, at = fours->send;
#pragma unroll
    for (int j = 0; j < TOKENS / 8; ++j) {
        if (j > 0 && j >= args->by_units.d) break;
        const float4 part = make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]);
        if (args->split == 1)
            *(float4 *)(memory + at) = part;
        else
            cluster_store_counted(cluster_address(memory_address + at, owner), part,
                                  cluster_address(received, owner));
        if (++owner == args->split) {
            owner = 0;
            at += fours->segments * 512;
        }
    }
}

/* Partial sums of few tokens meet and are stored. */
template <int TOKENS>
FP8R_DEVICE void skinny_finish_fours(const struct fp8r_sm90_args *args,
                                     const struct skinny_fours<TOKENS> *fours,
                                     const float (&sums)[TOKENS / 2], uint8_t *memory,
                                     uint32_t memory_address, uint32_t received)
{
    if (fours->segments == 1) {
#pragma unroll
        for (int j = 0; j < TOKENS / 8; ++j)
            skinny_store_four<TOKENS>(
                args, fours, make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]), j);
        return;
    }
    if (fours->send >= 0) skinny_send_fours<TOKENS>(args, fours, sums, memory, memory_address, received);
    if (args->split > 1)
        barrier_wait_cluster(received, 0);
    else
        named_barrier_sync(FP8R_SM90_CONSUMERS_BARRIER, args->by_consumers.d * 32);
    if (fours->parts >= 0)
        skinny_store_four<TOKENS>(args, fours,
                                  skinny_sum((const float4 *)(memory + fours->parts), fours->segments), 0);
}

#endif
