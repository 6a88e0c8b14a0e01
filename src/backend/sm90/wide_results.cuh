/* Large M, from sums to results: partial sums of blocks that share a tile's K, and a tile's way out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_RESULTS_CUH
#define FP8R_SM90_WIDE_RESULTS_CUH

#include "backend/sm90/epilogue.cuh"
#include "backend/sm90/wide_load.cuh"

/* Units of a split's reduction: 16 rows and 16 columns of out, 1024 bytes; owned as in the skinny family.
 * memory: where partial sums are received; scale_a: of the tile's rows, in shared memory. */
template <int TILES, int COLUMNS, int GROUPS>
FP8R_DEVICE void wide_reduce(const struct fp8r_sm90_args *args, const struct wide_place *place,
                             const struct wide_tile *tile, const float (&sums)[TILES][COLUMNS / 2],
                             uint8_t *memory, uint32_t memory_address, uint32_t received,
                             const float *scale_b, const float *bias, const float *scale_a)
{
    constexpr int per_row = COLUMNS / 16, units = GROUPS * 4 * TILES * per_row;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_rank = args->split * (place->m_rank + args->share_m * place->n_rank);
    if (args->flags & FP8R_SM90_RECEIVE_IN_STAGES) { /* nobody may still be reading them */
        cluster_arrive_relaxed();
        cluster_wait();
    }
    int owner, slot = divide(warp * TILES * per_row, &args->by_split, &owner);
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
        const bool exist = tile->m + (warp / 4 * TILES + i) * 64 + warp % 4 * 16 < args->m;
#pragma unroll
        for (int j = 0; j < per_row; ++j) {
            const uint32_t at = memory_address + (slot * args->split + place->k_rank) * 1024 + lane * 16;
            const uint32_t remote = cluster_address(at, first_rank + owner);
            const float *s = &sums[i][8 * j];
            if (exist) {
                cluster_store(remote, make_float4(s[0], s[1], s[2], s[3]));
                cluster_store(remote + 512, make_float4(s[4], s[5], s[6], s[7]));
            }
            if (++owner == args->split) {
                owner = 0;
                ++slot;
            }
        }
    }
    barrier_arrive_release(received, first_rank, args->split);
    barrier_wait_cluster(received, 0);
    uint16_t *const out = (uint16_t *)args->out + tile->batch * args->out_batch;
    const bool fours = args->flags & FP8R_SM90_OUT_FOURS;
#pragma unroll 2
    for (slot = warp; slot * args->split + place->k_rank < units; slot += 4 * GROUPS) {
        const int unit = slot * args->split + place->k_rank;
        const int from = unit / per_row; /* warp and tile that held it */
        const int row = (from / TILES / 4 * TILES + from % TILES) * 64 + from / TILES % 4 * 16;
        const int column = unit % per_row * 16;
        if (tile->m + row >= args->m) continue; /* nothing was sent */
        const float4 *parts = (const float4 *)memory + slot * args->split * 64 + lane;
        const float4 sum[2] = {sum_parts<64>(parts, args->split), sum_parts<64>(parts + 32, args->split)};
        const float scales[2] = {scale_a[row + lane / 4], scale_a[row + lane / 4 + 8]};
        if (fours && !args->bias)
            store_straight_fours<false>(args, out, sum, tile->m + row, tile->n + column, scale_b + column,
                                        bias + column, scales);
        else
            store_straight(args, sum, tile->batch, tile->m + row, tile->n + column, scale_b + column,
                           bias + column, scales);
    }
}

/* The tile's rows of one warp to out; m: the first of them. */
template <int TILES, int COLUMNS, bool ALTERNATE>
FP8R_DEVICE void wide_store(const struct fp8r_sm90_args *args, const struct wide_tile *tile, int m,
                            const float (&sums)[TILES][COLUMNS / 2], const float *scale_b, const float *bias,
                            const float (&scale_a)[TILES][2])
{
    const bool bf16 = args->out_dtype == FP8R_DTYPE_BF16, biased = args->bias != NULL;
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
        if (ALTERNATE || (args->flags & FP8R_SM90_INTERLEAVED)) {
            if (bf16 && !biased)
                store_interleaved<COLUMNS, true, false>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                        scale_b, bias, scale_a[i]);
            else if (bf16)
                store_interleaved<COLUMNS, true, true>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                       scale_b, bias, scale_a[i]);
            else if (!biased)
                store_interleaved<COLUMNS, false, false>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                         scale_b, bias, scale_a[i]);
            else
                store_interleaved<COLUMNS, false, true>(args, sums[i], tile->batch, m + 64 * i, tile->n,
                                                        scale_b, bias, scale_a[i]);
        } else if (!ALTERNATE && (args->flags & FP8R_SM90_OUT_FOURS) && !biased) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 16; ++j) {
                const float *s = &sums[i][8 * j];
                const float4 pair[2] = {make_float4(s[0], s[1], s[2], s[3]),
                                        make_float4(s[4], s[5], s[6], s[7])};
                store_straight_fours<false>(args, (uint16_t *)args->out + tile->batch * args->out_batch, pair,
                                            m + 64 * i, tile->n + 16 * j, scale_b + 16 * j, bias + 16 * j,
                                            scale_a[i]);
            }
        } else if (!ALTERNATE) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 16; ++j) {
                const float *s = &sums[i][8 * j];
                const float4 pair[2] = {make_float4(s[0], s[1], s[2], s[3]),
                                        make_float4(s[4], s[5], s[6], s[7])};
                store_straight(args, pair, tile->batch, m + 64 * i, tile->n + 16 * j, scale_b + 16 * j,
                               bias + 16 * j, scale_a[i]);
            }
        }
    }
}

#endif
