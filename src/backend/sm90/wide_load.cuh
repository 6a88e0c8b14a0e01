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

/* Keeps one operand's part of the stages full, over all tiles of the block, by one thread. What does not change
 * from one block of K to the next is computed outside of the loop: its length is what small tiles wait for.
 * Each of the blocks that share a tile loads an equal part of its rows for all of them. */
template <int ROWS, int COLUMNS, bool SHARED>
FP8R_DEVICE void wide_load_a(const struct fp8r_sm90_args *args, const struct wide_place *place,
                             const struct pipeline *pipe, const struct wide_tile *tile, struct cursor *at)
{
    constexpr int boxes = FP8R_SM90_WIDE_BOXES(ROWS);
    const int part = SHARED ? place->n_rank * args->part_a : 0, y = tile->m + part,
              z = args->a_batch * tile->batch;
    const uint32_t offset = part * FP8R_SM90_BLOCK_K;
    int k = place->first_block * FP8R_SM90_BLOCK_K;
    for (int left = place->blocks; left > 0; --left, k += FP8R_SM90_BLOCK_K) {
        barrier_wait(at->full + FP8R_SM90_EMPTY_OFFSET, at->parity);
        if (SHARED)
            tma_load_multicast(at->to + offset, &args->map_a, k, y, z, at->full, place->share_a,
                               FP8R_L2_EVICT_NORMAL);
        else
#pragma unroll
            for (int i = 0; i < boxes; ++i)
                tma_load(at->to + i * (ROWS / boxes * FP8R_SM90_BLOCK_K), &args->map_a, k,
                         y + i * (ROWS / boxes), z, at->full, FP8R_L2_EVICT_NORMAL);
        cursor_advance(at, pipe);
    }
}

/* Blocks begin .. end - 1 of a tile of b; the thread that loads it also says how much a stage will hold. fresh:
 * no stage has to be waited for. */
template <int ROWS, int COLUMNS, bool SHARED>
FP8R_DEVICE void wide_load_b(const struct fp8r_sm90_args *args, const struct wide_place *place,
                             const struct pipeline *pipe, const struct wide_tile *tile, struct cursor *at,
                             int begin, int end, bool fresh)
{
    constexpr int group = FP8R_SM90_WIDE_GROUP(COLUMNS);
    const uint32_t bytes = args->load_bytes;
    const int part = SHARED ? place->m_rank * args->part_b : 0, row = tile->n + part;
    const bool plain = !(args->flags & FP8R_SM90_INTERLEAVED);
    const int y = plain ? row : 0, z = plain ? args->b_batch * tile->batch : 0;
    const int w = plain ? 0 : row / group + args->b_groups * tile->batch;
    const uint32_t offset = (ROWS + part) * FP8R_SM90_BLOCK_K;
    int k = (place->first_block + begin) * FP8R_SM90_BLOCK_K;
    for (int left = end - begin; left > 0; --left, k += FP8R_SM90_BLOCK_K) {
        if (!fresh) barrier_wait(at->full + FP8R_SM90_EMPTY_OFFSET, at->parity);
        barrier_expect(at->full, bytes);
        if (SHARED)
            tma_load_5d_multicast(at->to + offset, &args->map_b, k, y, z, 0, w, at->full, place->share_b,
                                  FP8R_L2_EVICT_NORMAL);
        else
            tma_load_5d(at->to + offset, &args->map_b, k, y, z, 0, w, at->full, FP8R_L2_EVICT_NORMAL);
        cursor_advance(at, pipe);
    }
}

template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_produce_a(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                const struct pipeline *pipe, int first)
{
    struct cursor at = cursor_start(pipe);
    for (int index = first; index < args->tiles; index += args->step) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        if (args->share_n == 1)
            wide_load_a<ROWS, COLUMNS, false>(args, place, pipe, &tile, &at);
        else
            wide_load_a<ROWS, COLUMNS, true>(args, place, pipe, &tile, &at);
    }
}

/* The first stages of b, before the kernels in front are complete. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_produce_ahead(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                    const struct pipeline *pipe, int first, int ahead)
{
    struct cursor at = cursor_start(pipe);
    const struct wide_tile tile = wide_tile_at(args, place, first, ROWS, COLUMNS);
    if (args->share_m == 1)
        wide_load_b<ROWS, COLUMNS, false>(args, place, pipe, &tile, &at, 0, ahead, true);
    else
        wide_load_b<ROWS, COLUMNS, true>(args, place, pipe, &tile, &at, 0, ahead, true);
}

/* All others. */
template <int ROWS, int COLUMNS>
FP8R_DEVICE void wide_produce_b(const struct fp8r_sm90_args *args, const struct wide_place *place,
                                const struct pipeline *pipe, int first, int ahead)
{
    struct cursor at = cursor_start(pipe);
    cursor_skip(&at, pipe, ahead);
    for (int index = first; index < args->tiles; index += args->step, ahead = 0) {
        const struct wide_tile tile = wide_tile_at(args, place, index, ROWS, COLUMNS);
        if (args->share_m == 1)
            wide_load_b<ROWS, COLUMNS, false>(args, place, pipe, &tile, &at, ahead, place->blocks, false);
        else
            wide_load_b<ROWS, COLUMNS, true>(args, place, pipe, &tile, &at, ahead, place->blocks, false);
    }
    /* Others of the cluster may still be about to give stages back to this block: stay until they have. */
    if (pipe->peers) {
        for (int stage = 0; stage < pipe->stages; ++stage) {
            barrier_wait(at.full + FP8R_SM90_EMPTY_OFFSET, at.parity);
            cursor_advance(&at, pipe);
        }
    }
}

#endif
