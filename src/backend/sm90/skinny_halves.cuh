/* Few tokens in bf16 or fp16, quantised on the way: every block fetches whole rows of a, and the threads that multiply
 * turn them into codes, in shared memory and apart from the stages, while its weights are on their way. The
 * codes are the quantiser's, and so are the results. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SKINNY_HALVES_CUH
#define FP8R_SM90_SKINNY_HALVES_CUH

#include "backend/sm90/skinny_place.cuh"
#include "device/quantize_rows.cuh"

enum { HALVES_BLOCK_VECTORS = FP8R_SM90_BLOCK_K / FP8R_SM90_HALVES_VECTOR };

/* The barrier that says that the rows are there, behind that of the reduction. */
FP8R_DEVICE uint32_t halves_barrier(uint32_t received)
{
    return received + 8;
}

/* Fetches the rows, by one thread. `there` says when all of them are. */
FP8R_DEVICE void halves_fetch(const struct fp8r_sm90_args *args, const struct skinny_place *place, uint32_t to,
                              uint32_t there)
{
    const uint32_t bytes = 2 * args->k;
    const uint16_t *row = (const uint16_t *)args->halves + place->batch * args->halves_batch;
    barrier_expect(there, args->m * bytes);
    for (int i = 0; i < args->m; ++i, row += args->halves_row, to += bytes)
        bulk_load(to, row, bytes, there);
}

/* A thread's vectors of its row: at, at + step, ... Warps take turns at the rows, and share one as `members`. */
struct halves_part {
    const uint4 *row;
    int token, member, members;
    int at, step;
    int count; /* vectors of the row; up to the end of the last block of K follow zeros */
};

FP8R_DEVICE struct halves_part halves_part_of(const struct fp8r_sm90_args *args, const uint8_t *rows, int warp)
{
    struct halves_part part;
    int rest;
    part.member = divide(warp, &args->by_rows, &part.token);
    part.members = divide(args->by_consumers.d - 1 - part.token, &args->by_rows, &rest) + 1;
    part.count = args->k / FP8R_SM90_HALVES_VECTOR;
    part.row = (const uint4 *)rows + part.token * part.count;
    part.at = 32 * part.member + threadIdx.x % 32;
    part.step = 32 * part.members;
    return part;
}

/* The largest magnitude of the row, to all of its threads. maxima: room for 32 warps a row. */
template <bool BF16>
FP8R_DEVICE float halves_amax(const struct fp8r_sm90_args *args, const struct halves_part *part, float *maxima)
{
    const int lane = threadIdx.x % 32;
    uint32_t most = 0;
#pragma unroll 4
    for (int at = part->at; at < part->count; at += part->step)
        most = raise_vector<BF16>(most, part->row[at]);
    /* Magnitudes order like their bits. */
    most = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(largest_of<BF16>(most)));
    if (lane == 0) maxima[32 * part->token + part->member] = __uint_as_float(most);
    named_barrier_sync(FP8R_SM90_CONSUMERS_BARRIER, args->by_consumers.d * 32);
    const float amax = lane < part->members ? maxima[32 * part->token + lane] : 0.0f;
    return __uint_as_float(__reduce_max_sync(0xFFFFFFFFu, __float_as_uint(amax)));
}

/* A vector's codes where the tensor core looks for them: a block of K is 8 rows of 128 bytes, swizzled. */
FP8R_DEVICE void halves_store(uint8_t *codes, int at, int token, uint2 vector)
{
    const int in_block = at % HALVES_BLOCK_VECTORS;
    uint8_t *const block = codes + at / HALVES_BLOCK_VECTORS * (8 * FP8R_SM90_BLOCK_K);
    *(uint2 *)(block + token * FP8R_SM90_BLOCK_K + (in_block / 2 ^ token) * 16 + in_block % 2 * 8) = vector;
}

/* Bytes from the block's codes to those of one of its segments. */
FP8R_DEVICE int skinny_codes_of(const struct fp8r_sm90_args *args, const struct skinny_place *place, int inner)
{
    return (args->segment[place->segment + inner] - args->segment[place->segment]) * (8 * FP8R_SM90_BLOCK_K);
}

/* Codes of the block's segments of K; the scales of rows go to row_scales. The first args->m rows of both are there when
 * this returns. rows: as fetched; maxima: as above. */
template <bool BF16>
FP8R_DEVICE void skinny_quantise(const struct fp8r_sm90_args *args, const struct skinny_place *place, int warp,
                                 const uint8_t *rows, uint8_t *codes, float *maxima, float *row_scales)
{
    const struct halves_part part = halves_part_of(args, rows, warp);
    const float scale = scale_of(halves_amax<BF16>(args, &part, maxima)), inverse = __frcp_rn(scale);
    if (part.member == 0 && threadIdx.x % 32 == 0) row_scales[part.token] = scale;
    const int first = args->segment[place->segment] * HALVES_BLOCK_VECTORS,
              end = args->segment[place->segment + args->inner] * HALVES_BLOCK_VECTORS;
#pragma unroll 4
    for (int at = first + part.at; at < end; at += part.step) {
        const uint4 vector = at < part.count ? part.row[at] : make_uint4(0, 0, 0, 0);
        halves_store(codes, at - first, part.token, encode_vector<BF16>(vector, inverse));
    }
    async_fence();
    named_barrier_sync(FP8R_SM90_TOKENS_BARRIER, args->by_consumers.d * 32 + 32);
}

#endif
