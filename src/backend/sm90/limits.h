/* What host and kernels agree on: steps, registers, tiles. No CUDA header.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_LIMITS_H
#define FP8R_SM90_LIMITS_H

/* K is walked in blocks of 128: one 128-byte row of the swizzled tiles. */
#define FP8R_SM90_BLOCK_K 128

/* Most stages of a pipeline: more never helped, and the barriers' place is fixed. */
#define FP8R_SM90_STAGES_MAX 32

/* Most segments of K. */
#define FP8R_SM90_SEGMENTS_MAX 8

/* Numbers of named barriers: the stages' full barriers are ready; the empty ones are, too; of all that
 * multiply; whose turn it is, one each for the warpgroups; skinny: tokens are quantised. */
#define FP8R_SM90_READY_BARRIER     1
#define FP8R_SM90_EMPTY_BARRIER     2
#define FP8R_SM90_CONSUMERS_BARRIER 3
#define FP8R_SM90_TURN_BARRIER      4
#define FP8R_SM90_TOKENS_BARRIER    6
#define FP8R_SM90_LINES_BARRIER     7 /* two */

/* ---- Skinny
 * ------------------------------------------------------------------------------------------------------ */

/* Most segments of K inside a block. */
#define FP8R_SM90_SKINNY_INNER_MAX 4

/* Of a block's weights about so many bytes are asked for at the start, for products of few tokens: 64 KB, or
 * more tokens, cost more than they gain. */
#define FP8R_SM90_SKINNY_ASKED_BYTES  16384
#define FP8R_SM90_SKINNY_ASKED_TOKENS 16

/* Up to so many tokens partial sums are counted as they arrive; of more, each warp says when its own are there. */
#define FP8R_SM90_SKINNY_COUNTED_TOKENS 16

/* Most blocks of K a stage. */
#define FP8R_SM90_SKINNY_DEPTH_MAX 4

/* Most warpgroups a block. Registers are dealt out by warps a scheduler, so that the two extra warps
 * cost as much as a group: 4, 3, 2 groups leave 96, 128, 168 registers a thread, for tokens / 2 accumulators
 * (twice when promoting) and up to 32 others. */
#define FP8R_SM90_SKINNY_GROUPS(tokens, promote)                                                             \
    ((tokens) / 2 * ((promote) ? 2 : 1) <= 64 ? 4 : (tokens) / 2 * ((promote) ? 2 : 1) <= 96 ? 3 : 2)

/* Two of the widest blocks fit the registers at once where the accumulators are few: the next kernel's blocks
 * can start while this one's run out. */
#define FP8R_SM90_SKINNY_RESIDENT(tokens, promote) ((tokens) / 2 * ((promote) ? 2 : 1) <= 16 ? 2 : 1)

/* Consumers, one warp that loads weights, one that loads tokens. */
#define FP8R_SM90_SKINNY_THREADS(groups) ((groups)*128 + 64)

/* Most tokens that a block quantises itself, of the narrowest kernels. */
#define FP8R_SM90_SKINNY_HALVES_TOKENS 8

/* Their elements that a thread takes at once; most of them a warp: every block does that work for itself, and with more
 * the quantiser in front, which does it once, is faster (docs/worklog.md, sm90 27). */
#define FP8R_SM90_HALVES_VECTOR 8
#define FP8R_SM90_HALVES_WARP   3584

/* Widths of the tokens' side; the promoting kernels end where both sets of accumulators no longer fit. */
#define FP8R_SM90_SKINNY_FAST(X)    X(8) X(16) X(24) X(32) X(48) X(64) X(72) X(96) X(128) X(136) X(192) X(256)
#define FP8R_SM90_SKINNY_PRECISE(X) X(8) X(16) X(24) X(32) X(48) X(64) X(96) X(128)

/* ---- Wide
 * -------------------------------------------------------------------------------------------------------- */

/* Multiplying warpgroups and the one that loads. */
#define FP8R_SM90_WIDE_THREADS(groups) (((groups) + 1) * 128)

/* With up to 96 accumulators a thread a quarter of the registers is left to the small kernel in front of the
 * next product: that one can only start when all blocks of the small one have. */
#define FP8R_SM90_WIDE_SPARES(accumulators) ((accumulators) <= 96)
#define FP8R_SM90_WIDE_BOUND(groups, accumulators)                                                           \
    (FP8R_SM90_WIDE_SPARES(accumulators) ? 512 : FP8R_SM90_WIDE_THREADS(groups))

/* Registers a thread of two multiplying warpgroups and one that loads, after they have traded those that they
 * got at launch; the loaders need few. */
#define FP8R_SM90_WIDE_REGISTERS(accumulators) (FP8R_SM90_WIDE_SPARES(accumulators) ? 168 : 232)
#define FP8R_SM90_WIDE_LOADER_REGISTERS        40

/* Where two sets of accumulators beside the promoted sums fit the registers. */
#define FP8R_SM90_WIDE_PAIRS(tiles, columns) ((tiles) == 1 && (columns) <= 128)

/* Columns of out whose order in a tile may differ from that in memory: b's rows are loaded so that what a
 * thread holds of a row lies side by side. */
#define FP8R_SM90_WIDE_GROUP(columns) ((columns) % 32 == 0 ? 32 : 16)

/* Tiles: warpgroups, 64-row tiles a warpgroup, columns. A promoting kernel holds its accumulators twice. */
#define FP8R_SM90_WIDE_FAST(X)                                                                               \
    X(1, 1, 64) X(1, 1, 80) X(1, 1, 96) X(1, 1, 112) X(1, 1, 128) X(1, 1, 144) X(1, 1, 160) X(1, 1, 176)     \
    X(1, 1, 192) X(2, 1, 64)                                                                                 \
    X(2, 1, 96) X(2, 1, 112) X(2, 1, 128) X(2, 1, 176) X(2, 1, 192) X(2, 1, 224) X(2, 1, 256)
#define FP8R_SM90_WIDE_PRECISE(X) X(2, 1, 64) X(2, 1, 96) X(2, 1, 112) X(2, 1, 128) X(2, 1, 176) X(2, 1, 192)
/* Two warpgroups with a tile each, in turns: 64-row tiles, columns. */
/* Operands swapped: warpgroups with 64 rows of b each, parts of the rows of a, rows a part. */
#define FP8R_SM90_WIDE_BOXES(rows) ((rows) > 256 ? 3 : 1) /* of the copy engine, which takes 256 rows a box  \
                                                           */
#define FP8R_SM90_WIDE_SWAPPED(X)     X(1, 1, 72) X(1, 1, 136) X(2, 1, 136) X(2, 3, 88)
#define FP8R_SM90_WIDE_ALTERNATING(X) X(2, 96) X(2, 112) X(2, 128) X(2, 160) X(2, 176) X(2, 192)
/* Those that also take e5m2 for a. */
#define FP8R_SM90_WIDE_E5M2(X) X(2, 1, 128) X(2, 1, 192)

/* ---- Packed: wide tiles of rows that the copy engine does not take
 * -------------------------------------------------------------------------------------------------------- */

/* Warpgroups that load: one does not issue as fast as the tensor cores take. */
#define FP8R_SM90_PACKED_LOADERS 2

#define FP8R_SM90_PACKED_THREADS(groups) (((groups) + FP8R_SM90_PACKED_LOADERS) * 128)

/* Registers a thread after trading, where sums do not fit what each of 384 threads gets at launch. */
#define FP8R_SM90_PACKED_TRADES(accumulators) ((accumulators) > 96)
#define FP8R_SM90_PACKED_REGISTERS            216
#define FP8R_SM90_PACKED_LOADER_REGISTERS     144

/* Rows that a warpgroup fills in one step, eight threads each; the loading warpgroups take steps in turns. */
#define FP8R_SM90_PACKED_STEP_ROWS   16
#define FP8R_SM90_PACKED_STRIDE_ROWS (FP8R_SM90_PACKED_STEP_ROWS * FP8R_SM90_PACKED_LOADERS)
#define FP8R_SM90_PACKED_STEPS(rows)                                                                         \
    (((rows) + FP8R_SM90_PACKED_STRIDE_ROWS - 1) / FP8R_SM90_PACKED_STRIDE_ROWS)

/* Bytes of a window of K on its way to shared memory, and how many of them are: what the stages leave. */
#define FP8R_SM90_PACKED_WINDOW_BYTES(groups, columns)                                                       \
    ((FP8R_SM90_PACKED_STEPS(64 * (groups)) + FP8R_SM90_PACKED_STEPS(columns)) *                             \
     FP8R_SM90_PACKED_STRIDE_ROWS * FP8R_SM90_BLOCK_K)
#define FP8R_SM90_PACKED_STAGES(rows) ((rows) > 192 ? 3 : (rows) > 128 ? 4 : 5)
#define FP8R_SM90_PACKED_RING(groups, columns)                                                               \
    ((218 * 1024 - FP8R_SM90_PACKED_STAGES(64 * (groups) + (columns)) * (64 * (groups) + (columns)) * 128) / \
     FP8R_SM90_PACKED_WINDOW_BYTES(groups, columns))

/* Tiles: warpgroups of 64 rows, columns. Promoting, two warpgroups' sums do not fit the registers at launch.
 */
#define FP8R_SM90_PACKED_FAST(X)    X(1, 32) X(1, 64) X(1, 96) X(1, 128) X(1, 160) X(2, 128)
#define FP8R_SM90_PACKED_PRECISE(X) X(1, 32) X(1, 64) X(1, 128)
/* Those that also take e5m2 for a. */
#define FP8R_SM90_PACKED_E5M2(X) X(1, 64)

/* ---- Shifted: wide tiles of rows of b that the copy engine takes by eights
 * -------------------------------------------------------------------------------------------------------- */

/* Classes of rows of b, by which a box of the copy engine is sorted: N must be a multiple. */
#define FP8R_SM90_SHIFTED_GROUP 8

/* Accumulators and two blocks' words. */
#define FP8R_SM90_SHIFTED_REGISTERS(tokens) ((tokens) / 2 + 32)

/* Results of 64 columns and so many rows go out together: lines of 128 bytes. */
#define FP8R_SM90_SHIFTED_LINES 32

/* With so few rows of a tile, and so few blocks of K of a split one, of which a block of threads makes no other, those that
 * multiply fetch them, instead of a copy in front. */
#define FP8R_SM90_GATHER_ROWS   16
#define FP8R_SM90_GATHER_BLOCKS 8

/* Tiles: warpgroups with 64 rows of b each, rows of a. */
#define FP8R_SM90_SHIFTED(X) X(1, 16) X(1, 64) X(1, 128) X(2, 128) X(2, 256)

#endif
