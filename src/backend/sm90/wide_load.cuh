/* Large M, the loading side: which tile is whose, and the thread that keeps the stages full of tiles of a and
 * b. Knows addresses and barriers, not what is done with the tiles. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WIDE_LOAD_CUH
#define FP8R_SM90_WIDE_LOAD_CUH

#include "backend/sm90/mainloop.cuh"

struct wide_tile {
    int batch, m, n; /* first row of a, first row of b */
};

/* A block's place in its cluster. */
struct wide_place {
    int k_rank, m_rank, n_rank;
    int first_block, blocks;   /* of K */
    uint16_t share_a, share_b; /* masks of the blocks that get this block's part of a tile of a, of b */
};

FP8R_DEVICE struct wide_place wide_locate(const struct fp8r_sm90_args *args)
{
    struct wide_place place;
    const int rank = args->split * args->share_m * args->share_n > 1 ? (int)cluster_rank() : 0;
    const int shared = divide(rank, &args->by_split, &place.k_rank);
    place.n_rank = divide(shared, &args->by_share_m, &place.m_rank);
    place.first_block = args->segment[place.k_rank];
    place.blocks = args->segment[place.k_rank + 1] - place.first_block;
    place.share_a = (uint16_t)(args->share_a << (place.k_rank + args->split * place.m_rank));
    place.share_b = (uint16_t)(args->share_b << (place.k_rank + args->split * args->share_m * place.n_rank));
    return place;
}

/* The cluster's tile of this number. `raster` rows of cluster tiles are walked together, column by column, so
 * that the tiles under way at one time touch few rows of either operand and find them in L2. */
FP8R_DEVICE struct wide_tile wide_tile_at(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                          int index, int rows, int columns)
{
    struct wide_tile tile;
    int in_matrix, in_band, at_m;
    tile.batch = divide(index, &args->by_matrix, &in_matrix);
    const int first = divide(in_matrix, &args->by_band, &in_band) * args->raster;
    const bool whole = args->tiles_m - first >= args->raster;
    const int at_n = divide(in_band, whole ? &args->by_height : &args->by_last_height, &at_m);
    tile.m = ((first + at_m) * args->share_m + place->m_rank) * rows;
    /* A last tile that reaches beyond M starts earlier instead, and its first rows are computed and stored twice, with
     * the same bits: the copy engine fills rows that are not there more slowly than it fetches rows that are. */
    if (args->m >= rows) tile.m = min(tile.m, args->m - rows);
    tile.n = (at_n * args->share_n + place->n_rank) * columns;
    return tile;
}

/* Each of the blocks that share a tile loads an equal part of its rows for all of them. */
FP8R_DEVICE void load_a(const struct fp8r_sm90_args *args, const struct wide_place *place,
                        const struct pipeline *pipe, const struct wide_tile *tile, int stage, int block)
{
    const uint32_t to = pipe->tiles + stage * pipe->stage_bytes, full = pipe->full + 8 * stage;
    const int k = (place->first_block + block) * FP8R_SM90_BLOCK_K, z = args->a_batch * tile->batch;
    const int part = place->n_rank * args->part_a;
    if (args->share_n == 1)
        tma_load(to, &args->map_a, k, tile->m, z, full, FP8R_L2_EVICT_NORMAL);
    else
        tma_load_multicast(to + part * FP8R_SM90_BLOCK_K, &args->map_a, k, tile->m + part, z, full,
                           place->share_a, FP8R_L2_EVICT_NORMAL);
}

template <int ROWS, int COLUMNS>
FP8R_DEVICE void load_b(const struct fp8r_sm90_args *args, const struct wide_place *place,
                        const struct pipeline *pipe, const struct wide_tile *tile, int stage, int block)
{
    constexpr int group = FP8R_SM90_WIDE_GROUP(COLUMNS);
    const uint32_t to = pipe->tiles + stage * pipe->stage_bytes + ROWS * FP8R_SM90_BLOCK_K,
                   full = pipe->full + 8 * stage;
    const int k = (place->first_block + block) * FP8R_SM90_BLOCK_K, part = place->m_rank * args->part_b;
    const bool plain = !(args->flags & FP8R_SM90_INTERLEAVED);
    const int row = tile->n + part, y = plain ? row : 0, z = plain ? args->b_batch * tile->batch : 0;
    const int w = plain ? 0 : row / group + args->b_groups * tile->batch;
    if (args->share_m == 1)
        tma_load_5d(to, &args->map_b, k, y, z, 0, w, full, FP8R_L2_EVICT_NORMAL);
    else
        tma_load_5d_multicast(to + part * FP8R_SM90_BLOCK_K, &args->map_b, k, y, z, 0, w, full,
                              place->share_b, FP8R_L2_EVICT_NORMAL);
}

/* The one thread that keeps the pipeline full, over all tiles of the block. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_produce_ahead(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                    const struct pipeline *pipe, int first, int ahead)
{
    const uint32_t bytes = (ROWS + COLUMNS) * FP8R_SM90_BLOCK_K;
    const struct wide_tile tile = wide_tile_at(args, place, first, ROWS, COLUMNS);
    for (int i = 0; i < ahead; ++i) {
        barrier_expect(pipe->full + 8 * i, bytes);
        load_b<ROWS, COLUMNS>(args, place, pipe, &tile, i, i);
    }
}

template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_produce(const struct fp8r_sm90_args *args, const struct wide_place *place,
                              const struct pipeline *pipe, int first, int ahead)
{
    const uint32_t bytes = (ROWS + COLUMNS) * FP8R_SM90_BLOCK_K;
    struct ring ring = {0, 1, 0, 0};
    for (int index = first; index < args->tiles; index += args->step) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        for (int block = 0; block < place->blocks; ++block) {
            if (ahead > 0) {
                --ahead; /* this stage has its part of b under way */
                load_a(args, place, pipe, &tile, ring.stage, block);
            } else {
                barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
                barrier_expect(pipe->full + 8 * ring.stage, bytes);
                load_a(args, place, pipe, &tile, ring.stage, block);
                load_b<ROWS, COLUMNS>(args, place, pipe, &tile, ring.stage, block);
            }
            ring_advance(&ring, pipe->stages, 1);
        }
    }
    /* Others of the cluster may still be about to give stages back to this block: stay until they have. */
    if (pipe->peers) {
        for (int stage = 0; stage < pipe->stages; ++stage) {
            barrier_wait(pipe->empty + 8 * ring.stage, ring.parity);
            ring_advance(&ring, pipe->stages, 1);
        }
    }
}

#endif
