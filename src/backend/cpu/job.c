/* Cuts a problem into slabs and drives the steps over them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/job.h"

#include "base/dtype.h"
#include "base/sizes.h"

enum {
    SKINNY_SLAB_ROWS = 64,
    SKINNY_TILE_COLUMNS = 64, /* of bf16 out: two cache lines */
    PACKED_SLAB_ROWS = 1024,
    PACKED_TILE_ROWS = 560,
    PACKED_TILE_COLUMNS = 128,
    PACKED_L2_PART = 4, /* a panel of b takes at most this part of level 2 */
    SKINNY_UNITS = 16,  /* tiles a thread finds: so that a late thread costs little */
    PACKED_UNITS = 4,
    PART_BYTES = 256 /* parts begin at multiples of this */
};

static int64_t part(int64_t bytes)
{
    return fp8r_size_round_up(bytes, PART_BYTES);
}

/* Narrow enough that every thread finds several tiles, where N and batch allow it; whole kernels. */
static int64_t tile_columns(const struct fp8r_cpu_cut *cut, int64_t units, int64_t most,
                            const fp8r_problem *problem)
{
    int64_t items = fp8r_size_max(1, cut->threads * units / problem->batch);
    int64_t fair = fp8r_size_min(most, fp8r_size_max(1, problem->n / items));
    return fp8r_size_round_up(fair, cut->kernel->columns);
}

/* All of the slab's rows in one tile, unless the columns alone are too few tiles for the threads. */
static int64_t tile_rows(const struct fp8r_cpu_cut *cut, const fp8r_problem *problem)
{
    int64_t tiles =
        fp8r_size_blocks(problem->n, cut->tile_columns) * fp8r_size_min(problem->batch, cut->slab_rows);
    int64_t fair = fp8r_size_blocks(cut->slab_rows * fp8r_size_min(tiles, cut->threads), cut->threads);
    return fp8r_size_max(cut->kernel->rows, fp8r_size_min(PACKED_TILE_ROWS, fair));
}

static void cut_packed(struct fp8r_cpu_cut *cut, int64_t l2_bytes, const fp8r_problem *problem)
{
    int64_t code_bytes = cut->kernel->code_bytes;
    cut->k_chunk = fp8r_size_min(FP8R_CPU_CHUNK, cut->k_padded);
    int64_t fit = l2_bytes / PACKED_L2_PART / (cut->k_chunk * code_bytes);
    cut->tile_columns = tile_columns(cut, PACKED_UNITS, fp8r_size_min(PACKED_TILE_COLUMNS, fit), problem);
    cut->tile_rows = tile_rows(cut, problem);
    cut->b_bytes = part(cut->tile_columns * cut->k_chunk * code_bytes);
    if (problem->b.row_stride != 1) cut->codes_bytes = part(cut->tile_columns * cut->k_chunk);
}

void fp8r_cpu_cut_make(const struct fp8r_cpu_kernel *kernel, int32_t threads, int64_t l2_bytes,
                       const fp8r_problem *problem, struct fp8r_cpu_cut *cut)
{
    bool half = fp8r_dtype_is_half(problem->a.dtype);
    int64_t limit = kernel->packed ? PACKED_SLAB_ROWS : SKINNY_SLAB_ROWS;
    int64_t items = fp8r_size_min(limit, problem->batch), rows = fp8r_size_min(limit, problem->m);
    *cut = (struct fp8r_cpu_cut){.kernel = kernel, .threads = threads};
    cut->k_padded = fp8r_size_round_up(problem->k, FP8R_CPU_BLOCK);
    cut->slab_rows = fp8r_size_min(limit, rows * items);
    if (kernel->packed) {
        cut_packed(cut, l2_bytes, problem);
    } else {
        cut->k_chunk = cut->k_padded;
        cut->tile_columns = tile_columns(cut, SKINNY_UNITS, SKINNY_TILE_COLUMNS, problem);
        cut->tile_rows = cut->slab_rows;
    }
    cut->panel_bytes = part(cut->slab_rows * cut->k_padded * kernel->code_bytes);
    cut->scales_bytes = half ? part(cut->slab_rows * (int64_t)sizeof(float)) : 0;
    cut->sums_bytes = part(cut->tile_rows * cut->tile_columns * (int64_t)sizeof(float));
    if (half) cut->codes_bytes = fp8r_size_max(cut->codes_bytes, part(kernel->rows * problem->k));
    cut->scratch_bytes = cut->b_bytes + cut->sums_bytes + cut->codes_bytes;
    cut->workspace_bytes = cut->panel_bytes + cut->scales_bytes + threads * cut->scratch_bytes;
}

void fp8r_cpu_finish_row(const struct fp8r_cpu_job *job, int64_t batch, int64_t row, int64_t first,
                         int64_t count, const float *sums)
{
    const fp8r_problem *problem = job->problem;
    const fp8r_pointers *pointers = job->pointers;
    int64_t item = job->first_batch + batch, m = job->first_row + row;
    struct fp8r_cpu_row out = {
        .scale_a = 1.0f, .bias_dtype = problem->bias.dtype, .out_dtype = problem->out.dtype};
    if (job->row_scales)
        out.scale_a = job->row_scales[batch * job->rows + row];
    else if (pointers->scale_a)
        out.scale_a =
            ((const float *)
                 pointers->scale_a)[item * problem->scale_a.batch_stride + m * problem->scale_a.row_stride];
    if (pointers->scale_b) {
        out.scale_b_stride = problem->scale_b.col_stride;
        out.scale_b = (const float *)pointers->scale_b + item * problem->scale_b.batch_stride +
                      first * out.scale_b_stride;
    }
    if (pointers->bias) {
        out.bias_stride = problem->bias.col_stride;
        out.bias =
            (const char *)pointers->bias + (item * problem->bias.batch_stride + first * out.bias_stride) *
                                               fp8r_dtype_bytes(problem->bias.dtype);
    }
    out.out_stride = problem->n == 1 ? 1 : problem->out.col_stride;
    out.out = (char *)pointers->out +
              (item * problem->out.batch_stride + m * problem->out.row_stride + first * out.out_stride) *
                  fp8r_dtype_bytes(problem->out.dtype);
    job->cut.kernel->epilogue(&out, sums, count);
}

static void run_step(struct fp8r_cpu_job *job, const fp8r_services *services, int64_t units,
                     void (*work)(void *job, int64_t worker))
{
    atomic_store_explicit(&job->next, 0, memory_order_relaxed);
    int64_t workers = fp8r_size_min(units, job->cut.threads);
    if (workers <= 1)
        work(job, 0);
    else
        services->parallel(services->pool, workers, work, job);
}

static void run_slab(struct fp8r_cpu_job *job, const fp8r_services *services)
{
    run_step(job, services, fp8r_cpu_pack_units(job), fp8r_cpu_pack_work);
    if (job->cut.kernel->packed)
        run_step(job, services, fp8r_cpu_packed_units(job), fp8r_cpu_packed_work);
    else
        run_step(job, services, fp8r_cpu_skinny_units(job), fp8r_cpu_skinny_work);
}

void fp8r_cpu_job_run(struct fp8r_cpu_job *job, const fp8r_services *services)
{
    int64_t m = job->problem->m, batch = job->problem->batch, slab = job->cut.slab_rows;
    int64_t step = fp8r_size_max(1, slab / m);
    for (job->first_batch = 0; job->first_batch < batch; job->first_batch += step) {
        job->batches = fp8r_size_min(step, batch - job->first_batch);
        for (job->first_row = 0; job->first_row < m; job->first_row += slab) {
            job->rows = fp8r_size_min(slab, m - job->first_row);
            run_slab(job, services);
        }
    }
}
