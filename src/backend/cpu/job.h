/* One run of the cpu backend: how the problem is cut, where its workspace parts lie, and the steps over it.
 * Knows problems, strides and threads; instruction sets only through kernel.h.
 *
 * A run goes slab by slab. A slab is up to slab_rows rows of a (of one batch item, or of several where m is
 * small): its rows are decoded into panels once, then workers take tiles of its products.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_JOB_H
#define FP8R_BACKEND_CPU_JOB_H

#include <stdatomic.h>

#include "backend/cpu/kernel.h"
#include <fp8route/backend.h>

/* The largest K taken: sizes below stay far from overflow. */
#define FP8R_CPU_K_MOST ((int64_t)1 << 40)

/* How a problem is cut; a function of the problem, the configuration and the thread count. */
struct fp8r_cpu_cut {
    const struct fp8r_cpu_kernel *kernel;
    int32_t threads;
    int64_t k_padded;  /* codes */
    int64_t k_chunk;   /* codes of K taken at a time: k_padded for a skinny kernel */
    int64_t slab_rows; /* most rows in a slab, all its batch items together */
    int64_t tile_rows, tile_columns;
    int64_t panel_bytes;                      /* all of a slab's rows of a */
    int64_t scales_bytes;                     /* row scales of an a that is quantised on the way */
    int64_t b_bytes, sums_bytes, codes_bytes; /* parts of one worker's scratch */
    int64_t scratch_bytes;                    /* their sum */
    int64_t workspace_bytes;
};

struct fp8r_cpu_job {
    struct fp8r_cpu_cut cut;
    const struct fp8r_cpu_tables *tables;
    const fp8r_problem *problem;
    const fp8r_pointers *pointers;
    char *panels;
    float *row_scales; /* NULL: scale_a comes from the caller */
    char *scratch;
    int64_t first_batch, batches, first_row, rows; /* the slab: rows of each of its batch items */
    _Atomic int64_t next;                          /* unit of work that nobody has taken yet */
};

void fp8r_cpu_cut_make(const struct fp8r_cpu_kernel *kernel, int32_t threads, int64_t l2_bytes,
                       const fp8r_problem *problem, struct fp8r_cpu_cut *cut);

/* The slab's rows are dealt in blocks as even as possible: block i starts at this row. */
static inline int64_t fp8r_cpu_block_start(int64_t rows, int64_t blocks, int64_t i)
{
    return rows * i / blocks;
}

/* Where the panel of a slab row's block begins, for the chunk of K at k_first (of k_count codes, padded). */
static inline char *fp8r_cpu_panel(const struct fp8r_cpu_job *job, int64_t batch, int64_t block_first,
                                   int64_t k_first, int64_t k_count)
{
    return job->panels +
           ((batch * job->rows) * job->cut.k_padded + k_first * job->rows + block_first * k_count) *
               job->cut.kernel->code_bytes;
}

/* The steps; each is called by every worker of a loop and shares the work through job->next. */
void fp8r_cpu_pack_work(void *job, int64_t worker);
void fp8r_cpu_skinny_work(void *job, int64_t worker);
void fp8r_cpu_packed_work(void *job, int64_t worker);

int64_t fp8r_cpu_pack_units(const struct fp8r_cpu_job *job);
int64_t fp8r_cpu_skinny_units(const struct fp8r_cpu_job *job);
int64_t fp8r_cpu_packed_units(const struct fp8r_cpu_job *job);

/* Writes count results of out's row (slab batch, slab row), from column `first` on. */
void fp8r_cpu_finish_row(const struct fp8r_cpu_job *job, int64_t batch, int64_t row, int64_t first,
                         int64_t count, const float *sums);

/* The whole run: all slabs. */
void fp8r_cpu_job_run(struct fp8r_cpu_job *job, const fp8r_services *services);

#endif
