/* What a launch hands to a kernel, by value. Shared by host and device code; filled by launch.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_ARGS_H
#define FP8R_SM90_ARGS_H

#include <cuda.h>
#include <stdint.h>

#include "backend/sm90/limits.h"

/* Bits of fp8r_sm90_args.flags. */
enum {
    FP8R_SM90_OUT_VECTORS = 1 << 0, /* out's address and pitches allow stores of 4 elements */
    FP8R_SM90_INTERLEAVED = 1 << 1, /* wide: rows of b in encode_interleaved's order, stores of 16 bytes */
    FP8R_SM90_OUT_FOURS = 1 << 3, /* out is bf16 and whole in groups of 4 elements that one store may write */
    FP8R_SM90_OUT_LINES = 1 << 4, /* shifted: out has elements of 16 bits, and its address and pitches allow stores of 8 */
    FP8R_SM90_GATHERS = 1 << 5, /* shifted: rows of a in words */
    FP8R_SM90_RECEIVE_IN_STAGES = 1 << 2 /* skinny: partial sums take the place of the stages */
};

/* What kernels divide by: reciprocal = floor(2^32 / d), at most 2^32 - 1. */
struct fp8r_sm90_divisor {
    int32_t d;
    uint32_t reciprocal;
};

/* An operand as it lies in memory, rows of K: its first byte, the end of its last row, bytes from one row and
 * from one matrix to the next (0: one for all). */
struct fp8r_sm90_matrix {
    const uint8_t *data, *end;
    int64_t row, batch;
};

struct fp8r_sm90_args {
    CUtensorMap map_a, map_b;
    /* First what a skinny block needs before its first load, in three lines of constants of 64 bytes: each
     * comes from memory, once a launch. */
    int32_t rows;            /* skinny: of b a block */
    int32_t split;           /* blocks of the cluster that take a part of K each */
    int32_t inner;           /* skinny: segments of K a block, each for its own warpgroups */
    int32_t barriers_offset; /* as all offsets, bytes in shared memory */
    struct fp8r_sm90_divisor by_consumers, by_row_warps; /* skinny */
    int32_t stages, stage_bytes;
    int32_t load_bytes; /* that arrive in a stage */
    int32_t
        ahead; /* rounds (wide: stages) of b that may be loaded before the kernels in front are complete */
    int32_t depth; /* skinny: blocks of K a stage */
    int32_t step_x,
        step_z;      /* skinny: a block of K along the maps: 128, 0; or 0, 1 where blocks are an axis */
    int32_t b_batch; /* as a_batch: 1: the operand has a matrix for each batch item; 0: one for all */
    int32_t
        rounds[FP8R_SM90_SEGMENTS_MAX]; /* skinny: stages of the longest segment of a block of the cluster */
    int32_t first_rounds[FP8R_SM90_SEGMENTS_MAX]; /* skinny: of those, the ring's first turn */
    int32_t segment[FP8R_SM90_SEGMENTS_MAX + 1];  /* first block of K of each; then the number of blocks */
    int32_t n;
    int32_t lines; /* skinny: of 128 bytes of each row of a segment that are asked for at the start; or 0 */
    struct fp8r_sm90_divisor by_lines;
    int32_t a_batch;
    const uint8_t *b; /* skinny */
    int64_t b_row, b_matrix;
    struct fp8r_sm90_divisor by_split, by_units, by_depth; /* skinny; units of a warp */
    int32_t receive_offset, scales_offset;
    int32_t tokens_offset, halves_offset; /* skinny, quantising: codes of a; its rows */
    const void *halves; /* likewise: a, bf16 or fp16, rows and matrices so many elements apart; and m */
    int64_t halves_row, halves_batch;
    struct fp8r_sm90_divisor by_rows;
    const float *scale_a, *scale_b; /* NULL: 1 */
    const void *bias;               /* NULL: none */
    void *out;
    int64_t scale_a_batch, scale_a_row, scale_b_batch, scale_b_col; /* elements; 0 broadcasts */
    int64_t bias_batch, bias_col, out_batch, out_row;
    int32_t m;
    int32_t out_dtype, bias_dtype; /* FP8R_DTYPE_* */
    int32_t flags;
    int32_t share_m,
        share_n; /* wide, cluster tiles: blocks along M share tiles of b, blocks along N tiles of a */
    int32_t tiles_m, tiles_n; /* cluster tiles a matrix */
    int32_t tiles;            /* cluster tiles in all, batch counted */
    int32_t row_warps;        /* skinny: warps that multiply one segment; times inner: consumers */
    int32_t raster;           /* wide: cluster tiles along M that are walked together */
    struct fp8r_sm90_divisor by_matrix, by_band, by_height, by_last_height, by_share_m, by_size, by_stages; /* wide */
    int32_t rows_a;      /* skinny: of a in a stage, those that are there by eights; wide: not looked at */
    int32_t ring_rounds; /* skinny: stages a segment */
    int32_t share_a, share_b; /* wide: masks of the blocks that share with block 0 */
    int32_t part_a, part_b;   /* wide: rows of a tile that each of them loads */
    int32_t b_groups;         /* wide, interleaved: groups of rows from one matrix of b to the next */
    int32_t step;             /* wide: cluster tiles that are made at the same time */
    int32_t weight_bytes;     /* skinny: of one block of K of the weights, in shared memory */
    int32_t k;                /* packed; skinny, quantising */
    struct fp8r_sm90_matrix packed_a, packed_b; /* packed, which has no maps */
};

#endif
