/* Products with few rows: every code of b is read from memory once and multiplied with all rows of a while it
 * is in registers or level 1. Bound by memory up to a few rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/job.h"

#include "base/sizes.h"

static int64_t tiles(const struct fp8r_cpu_job *job)
{
    return fp8r_size_blocks(job->problem->n, job->cut.tile_columns);
}

int64_t fp8r_cpu_skinny_units(const struct fp8r_cpu_job *job)
{
    return job->batches * tiles(job);
}

/* Four columns of b from n on; the last valid one stands in for those beyond the edge. */
static void point(const struct fp8r_cpu_job *job, int64_t batch, int64_t n,
                  const uint8_t *columns[FP8R_CPU_SKINNY_COLUMNS])
{
    const fp8r_operand *b = &job->problem->b;
    const uint8_t *item = (const uint8_t *)job->pointers->b + (job->first_batch + batch) * b->batch_stride;
    for (int c = 0; c < FP8R_CPU_SKINNY_COLUMNS; c++)
        columns[c] = item + fp8r_size_min(n + c, job->problem->n - 1) * b->col_stride;
}

/* Four columns x all rows. Pass j over the same codes (from level 1 or 2 after the first) takes block j of
 * the rows; the fetching ahead is dealt over the passes, so that memory keeps busy during all of them. */
static void multiply_group(const struct fp8r_cpu_job *job, int64_t batch, const uint8_t *const columns[],
                           const uint8_t *const next[], float *results, int64_t ld)
{
    const struct fp8r_cpu_cut *cut = &job->cut;
    int64_t blocks = fp8r_size_blocks(job->rows, cut->kernel->rows);
    for (int64_t j = 0; j < blocks; j++) {
        int64_t start = fp8r_cpu_block_start(job->rows, blocks, j);
        int64_t rows = fp8r_cpu_block_start(job->rows, blocks, j + 1) - start;
        const uint8_t *ahead[FP8R_CPU_SKINNY_COLUMNS];
        for (int64_t c = 0; c < FP8R_CPU_SKINNY_COLUMNS; c++)
            ahead[c] = c % blocks == j ? next[c] : columns[c];
        cut->kernel->skinny(job->tables, (int)rows, job->problem->k,
                            fp8r_cpu_panel(job, batch, start, 0, cut->k_padded), columns, ahead,
                            results + start * ld, ld);
    }
}

/* One tile of columns. after: the unit this worker takes next (fetched ahead from the last group on). */
static void multiply_tile(const struct fp8r_cpu_job *job, int64_t unit, int64_t after, float *results)
{
    const struct fp8r_cpu_cut *cut = &job->cut;
    int64_t per_item = tiles(job), batch = unit / per_item, first = unit % per_item * cut->tile_columns;
    int64_t count = fp8r_size_min(cut->tile_columns, job->problem->n - first);
    const uint8_t *columns[FP8R_CPU_SKINNY_COLUMNS], *next[FP8R_CPU_SKINNY_COLUMNS];
    point(job, batch, first, columns);
    for (int64_t i = 0; i < count; i += FP8R_CPU_SKINNY_COLUMNS) {
        if (i + FP8R_CPU_SKINNY_COLUMNS < count)
            point(job, batch, first + i + FP8R_CPU_SKINNY_COLUMNS, next);
        else
            point(job, after / per_item, after % per_item * cut->tile_columns, next);
        multiply_group(job, batch, columns, next, results + i, cut->tile_columns);
        for (int c = 0; c < FP8R_CPU_SKINNY_COLUMNS; c++)
            columns[c] = next[c];
    }
    for (int64_t r = 0; r < job->rows; r++)
        fp8r_cpu_finish_row(job, batch, r, first, count, results + r * cut->tile_columns);
}

void fp8r_cpu_skinny_work(void *argument, int64_t worker)
{
    struct fp8r_cpu_job *job = argument;
    float *results = (float *)(job->scratch + worker * job->cut.scratch_bytes);
    int64_t units = fp8r_cpu_skinny_units(job);
    int64_t unit = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
    while (unit < units) {
        int64_t after = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        multiply_tile(job, unit, after < units ? after : unit, results);
        unit = after;
    }
}
