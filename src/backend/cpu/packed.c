/* Products with many rows. K goes in chunks; for each, a tile's columns of b are decoded and stay in level 2,
 * a block of a's rows stays in level 1 while it is multiplied with all of them. Chains in progress are kept
 * between chunks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/job.h"

#include "base/sizes.h"

/* One worker's tile. */
struct tile {
    const struct fp8r_cpu_job *job;
    int64_t batch, first_row, rows, first_column, columns;
    int64_t first_block, end_block; /* of the slab's row blocks */
    char *b;
    float *sums;
    uint8_t *codes;
};

static int64_t row_blocks(const struct fp8r_cpu_job *job)
{
    return fp8r_size_blocks(job->rows, job->cut.kernel->rows);
}

/* Row tiles are whole blocks. */
static int64_t tile_blocks(const struct fp8r_cpu_job *job)
{
    return fp8r_size_max(1, job->cut.tile_rows / job->cut.kernel->rows);
}

static int64_t row_tiles(const struct fp8r_cpu_job *job)
{
    return fp8r_size_blocks(row_blocks(job), tile_blocks(job));
}

static int64_t column_tiles(const struct fp8r_cpu_job *job)
{
    return fp8r_size_blocks(job->problem->n, job->cut.tile_columns);
}

int64_t fp8r_cpu_packed_units(const struct fp8r_cpu_job *job)
{
    return job->batches * column_tiles(job) * row_tiles(job);
}

static void place(struct tile *tile, int64_t unit)
{
    const struct fp8r_cpu_job *job = tile->job;
    int64_t rows = row_tiles(job), columns = column_tiles(job), blocks = row_blocks(job);
    int64_t row_tile = unit % rows, rest = unit / rows;
    tile->batch = rest / columns;
    tile->first_column = rest % columns * job->cut.tile_columns;
    tile->columns = fp8r_size_min(job->cut.tile_columns, job->problem->n - tile->first_column);
    tile->first_block = fp8r_cpu_block_start(blocks, rows, row_tile);
    tile->end_block = fp8r_cpu_block_start(blocks, rows, row_tile + 1);
    tile->first_row = fp8r_cpu_block_start(job->rows, blocks, tile->first_block);
    tile->rows = fp8r_cpu_block_start(job->rows, blocks, tile->end_block) - tile->first_row;
}

/* Codes of b that do not lie side by side along k: brought together, column after column, in the order of
 * memory where N is the contiguous dimension. */
static void gather_codes(const struct tile *tile, const uint8_t *b, int64_t count)
{
    const fp8r_operand *operand = &tile->job->problem->b;
    for (int64_t k = 0; k < count; k++)
        for (int64_t c = 0; c < tile->columns; c++)
            tile->codes[c * count + k] = b[k * operand->row_stride + c * operand->col_stride];
}

/* The panels of b for `count` codes of K from k on, one after the other. */
static void decode_b(const struct tile *tile, int64_t k, int64_t count, int64_t padded)
{
    const struct fp8r_cpu_job *job = tile->job;
    const struct fp8r_cpu_kernel *kernel = job->cut.kernel;
    const fp8r_operand *operand = &job->problem->b;
    const uint8_t *b = (const uint8_t *)job->pointers->b +
                       (job->first_batch + tile->batch) * operand->batch_stride + k * operand->row_stride +
                       tile->first_column * operand->col_stride;
    int64_t stride = operand->col_stride;
    if (operand->row_stride != 1) {
        gather_codes(tile, b, count);
        b = tile->codes;
        stride = count;
    }
    for (int64_t c = 0; c < tile->columns; c += kernel->columns)
        kernel->decode_b(job->tables, b + c * stride, stride,
                         fp8r_size_min(kernel->columns, tile->columns - c), count,
                         tile->b + c * padded * kernel->code_bytes);
}

static void multiply_chunk(const struct tile *tile, int64_t k, int64_t count, int64_t padded)
{
    const struct fp8r_cpu_job *job = tile->job;
    const struct fp8r_cpu_cut *cut = &job->cut;
    const struct fp8r_cpu_kernel *kernel = cut->kernel;
    int64_t blocks = row_blocks(job), panel_bytes = kernel->columns * padded * kernel->code_bytes;
    for (int64_t j = tile->first_block; j < tile->end_block; j++) {
        int64_t start = fp8r_cpu_block_start(job->rows, blocks, j);
        int64_t rows = fp8r_cpu_block_start(job->rows, blocks, j + 1) - start;
        const char *a = fp8r_cpu_panel(job, tile->batch, start, k, padded);
        float *sums = tile->sums + (start - tile->first_row) * cut->tile_columns;
        kernel->packed((int)rows, count, a, tile->b, fp8r_size_blocks(tile->columns, kernel->columns),
                       panel_bytes, sums, cut->tile_columns, k == 0);
    }
}

void fp8r_cpu_packed_work(void *argument, int64_t worker)
{
    struct fp8r_cpu_job *job = argument;
    const struct fp8r_cpu_cut *cut = &job->cut;
    char *scratch = job->scratch + worker * cut->scratch_bytes;
    struct tile tile = {.job = job,
                        .b = scratch,
                        .sums = (float *)(scratch + cut->b_bytes),
                        .codes = (uint8_t *)scratch + (cut->scratch_bytes - cut->codes_bytes)};
    for (;;) {
        int64_t unit = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (unit >= fp8r_cpu_packed_units(job)) return;
        place(&tile, unit);
        for (int64_t k = 0; k < cut->k_padded; k += cut->k_chunk) {
            int64_t padded = fp8r_size_min(cut->k_chunk, cut->k_padded - k);
            int64_t count = fp8r_size_min(padded, job->problem->k - k);
            decode_b(&tile, k, count, padded);
            multiply_chunk(&tile, k, count, padded);
        }
        for (int64_t r = 0; r < tile.rows; r++)
            fp8r_cpu_finish_row(job, tile.batch, tile.first_row + r, tile.first_column, tile.columns,
                                tile.sums + r * cut->tile_columns);
    }
}
