/* Many rows, AMX tiles with bf16: two tiles of rows times two of columns, 32 k a step. One class of its own:
 * a tile product adds its sixteen pairs before it adds to the chain, always the same ones, since steps begin
 * at multiples of 32.
 *
 * Tiles treat subnormals as zero and flush small results; see avx512bf16_codes.h why neither happens here.
 *
 * Compiled with the flags of its own (CMakeLists.txt); reached only where the features below are there and
 * the system has granted the tiles' state (amx_permission.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#include "backend/cpu/avx512bf16_pairs.h"
#include "backend/cpu/epilogue_row.h"
#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

enum {
    TILE_ROWS = 16,
    TILE_COLUMNS = 16,
    TILE_BYTES = 64,
    TILE_CODES = 32,
    ROWS = 2 * TILE_ROWS,
    COLUMNS = 2 * TILE_COLUMNS
};

/* Tile registers: products (row tile, column tile), rows of a, columns of b. The intrinsics want literals. */
#define SUM00  0
#define SUM01  1
#define SUM10  2
#define SUM11  3
#define TOP    4
#define BOTTOM 5
#define LEFT   6
#define RIGHT  7

/* The memory image of LDTILECFG (palette 1). */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Rows of a: vectors of 32 codes in order, one row of a tile each. */
static void decode_a(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel)
{
    struct bf16_tables bytes = bf16_tables_load(tables, form);
    const __m512i in_order =
        _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); /* undoes the interleaving of bf16_decode */
    for (int64_t r = 0; r < rows; r++) {
        char *to = (char *)panel + r * TILE_BYTES;
        for (int64_t i = 0; i < count; i += FP8R_CPU_BLOCK, to += 2 * rows * TILE_BYTES) {
            __m512i first, second,
                block = _mm512_maskz_loadu_epi8(bf16_tail_mask(count - i), codes + r * stride + i);
            bf16_decode(&bytes, _mm512_permutexvar_epi64(in_order, block), &first, &second);
            _mm512_store_si512(to, first);
            _mm512_store_si512(to + rows * TILE_BYTES, second);
        }
    }
}

static void decode_b(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                     int64_t columns, int64_t count, void *panel)
{
    bf16_pairs_b(tables, codes, stride, columns, count, panel, COLUMNS);
}

static void configure(int rows)
{
    struct tile_config config = {.palette = 1};
    int top = rows < TILE_ROWS ? rows : TILE_ROWS, bottom = rows > TILE_ROWS ? rows - TILE_ROWS : TILE_ROWS;
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = TILE_BYTES;
        config.rows[i] = TILE_ROWS;
    }
    config.rows[SUM00] = config.rows[SUM01] = config.rows[TOP] = (uint8_t)top;
    config.rows[SUM10] = config.rows[SUM11] = config.rows[BOTTOM] = (uint8_t)bottom;
    _tile_loadconfig(&config);
}

/* Up to 16 rows. */
static void panel_of_one(int64_t rows, int64_t steps, const char *a, const char *b, float *sums, int64_t ld,
                         bool first)
{
    const int64_t b_pitch = COLUMNS * 4, ld_bytes = ld * (int64_t)sizeof(float);
    if (first) {
        _tile_zero(SUM00);
        _tile_zero(SUM01);
    } else {
        _tile_loadd(SUM00, sums, ld_bytes);
        _tile_loadd(SUM01, sums + TILE_COLUMNS, ld_bytes);
    }
    for (int64_t s = 0; s < steps; s++, a += rows * TILE_BYTES, b += TILE_CODES / 2 * b_pitch) {
        _tile_loadd(TOP, a, TILE_BYTES);
        _tile_loadd(LEFT, b, b_pitch);
        _tile_dpbf16ps(SUM00, TOP, LEFT);
        _tile_loadd(RIGHT, b + TILE_BYTES, b_pitch);
        _tile_dpbf16ps(SUM01, TOP, RIGHT);
    }
    _tile_stored(SUM00, sums, ld_bytes);
    _tile_stored(SUM01, sums + TILE_COLUMNS, ld_bytes);
}

/* A tile load waits for level 2 as nothing else can be done meanwhile; b's next step is brought to level 1
 * before. */
ALWAYS_INLINE void fetch(const char *step)
{
#pragma GCC unroll 32
    for (int i = 0; i < TILE_CODES / 2 * COLUMNS * 4; i += 64)
        _mm_prefetch(step + i, _MM_HINT_T0);
}

/* 17 to 32 rows. */
static void panel_of_two(int64_t rows, int64_t steps, const char *a, const char *b, float *sums, int64_t ld,
                         bool first)
{
    const int64_t b_pitch = COLUMNS * 4, ld_bytes = ld * (int64_t)sizeof(float);
    float *below = sums + TILE_ROWS * ld;
    if (first) {
        _tile_zero(SUM00);
        _tile_zero(SUM01);
        _tile_zero(SUM10);
        _tile_zero(SUM11);
    } else {
        _tile_loadd(SUM00, sums, ld_bytes);
        _tile_loadd(SUM01, sums + TILE_COLUMNS, ld_bytes);
        _tile_loadd(SUM10, below, ld_bytes);
        _tile_loadd(SUM11, below + TILE_COLUMNS, ld_bytes);
    }
    for (int64_t s = 0; s < steps; s++, a += rows * TILE_BYTES, b += TILE_CODES / 2 * b_pitch) {
        fetch(b + TILE_CODES / 2 * b_pitch);
        _tile_loadd(TOP, a, TILE_BYTES);
        _tile_loadd(LEFT, b, b_pitch);
        _tile_dpbf16ps(SUM00, TOP, LEFT);
        _tile_loadd(RIGHT, b + TILE_BYTES, b_pitch);
        _tile_dpbf16ps(SUM01, TOP, RIGHT);
        _tile_loadd(BOTTOM, a + TILE_ROWS * TILE_BYTES, TILE_BYTES);
        _tile_dpbf16ps(SUM10, BOTTOM, LEFT);
        _tile_dpbf16ps(SUM11, BOTTOM, RIGHT);
    }
    _tile_stored(SUM00, sums, ld_bytes);
    _tile_stored(SUM01, sums + TILE_COLUMNS, ld_bytes);
    _tile_stored(SUM10, below, ld_bytes);
    _tile_stored(SUM11, below + TILE_COLUMNS, ld_bytes);
}

/* The tiles are configured and released here: nobody else's configuration is met or left behind. */
static void packed(int rows, int64_t count, const void *a, const void *b, int64_t panels, int64_t panel_bytes,
                   float *sums, int64_t ld, bool first)
{
    int64_t steps = (count + TILE_CODES - 1) / TILE_CODES;
    configure(rows);
    for (int64_t p = 0; p < panels; p++) {
        const char *panel = (const char *)b + p * panel_bytes;
        if (rows <= TILE_ROWS)
            panel_of_one(rows, steps, a, panel, sums + p * COLUMNS, ld, first);
        else
            panel_of_two(rows, steps, a, panel, sums + p * COLUMNS, ld, first);
    }
    _tile_release();
}

const struct fp8r_cpu_kernel fp8r_cpu_amx_packed = {
    .numerics = "cpu:amxbf16",
    .needs = "AMX with BF16 and AVX-512 with VBMI",
    .features = FP8R_CPU_AVX512 | FP8R_CPU_AVX512_VBMI | FP8R_CPU_AVX512_BF16 | FP8R_CPU_AMX_BF16,
    .rows = ROWS,
    .columns = COLUMNS,
    .code_bytes = 2,
    .vector_codes = TILE_CODES,
    .decode_a = decode_a,
    .decode_b = decode_b,
    .packed = packed,
    .epilogue = epilogue,
};
