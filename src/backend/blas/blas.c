/* The blas backend: a and b are decoded to fp32 a piece at a time, a BLAS library's sgemm multiplies the pieces on the
 * threads of our pool, and the shared epilogue writes out. Takes every layout, type, scale and bias form; promises no
 * bits that are independent of M, because a library may sum in another order for another shape.
 *
 * Sums are fp32 over k, in the library's order: every product of two fp8 values is exact, so that the error is that of
 * the additions, which FP8R_ACCUMULATE_PRECISE allows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>

#include "backend/blas/blas_decode.h"
#include "backend/blas/blas_library.h"
#include "backend/blas/blas_tiling.h"
#include "base/dtype.h"
#include "base/epilogue.h"
#include "base/quantize.h"
#include "base/sizes.h"
#include "base/status.h"

static const char *const configs[] = {"sgemm", NULL};

enum { LINES_A_TASK = 8 };

/* What prepare leaves behind. */
struct state {
    const struct fp8r_blas *library;
    int32_t threads;
    float table_a[256], table_b[256];
};

/* The part of the product that is under way. */
struct block {
    int64_t item, items; /* batch items */
    int64_t row, rows, col, cols, k, depth;
};

/* One call, as its tasks see it. */
struct call {
    const struct state *state;
    const fp8r_problem *problem;
    const fp8r_pointers *pointers;
    struct fp8r_blas_tiling tiling; /* for this call's m: its workspace may be that of no larger one */
    bool half;     /* a is quantised on the way */
    bool outer_a;  /* a is decoded column by column */
    bool outer_b;  /* b is decoded row by row */
    float *scales; /* half: of the block's rows */
    float *a, *b, *columns, *c;
    struct block block;
    int64_t panels, parts; /* of the block's columns and rows */
    _Atomic int64_t next;
};

/* ---- a ---- */

/* The scale of one row of the block, over all of k. */
static void scale_row(void *argument, int64_t index)
{
    const struct call *call = argument;
    const fp8r_problem *p = call->problem;
    const struct block *block = &call->block;
    int64_t at = (block->item + index / block->rows) * p->a.batch_stride +
                 (block->row + index % block->rows) * p->a.row_stride;
    const uint8_t *row = (const uint8_t *)call->pointers->a + at * fp8r_dtype_bytes(p->a.dtype);
    call->scales[index] = fp8r_quantize_scale(fp8r_quantize_amax(row, p->a.dtype, p->a.col_stride, p->k, 0.0f));
}

/* Lines of the block's a run along its smaller stride: rows, or columns where a is column-major. */
static int64_t lines_of(const struct call *call)
{
    return call->outer_a ? call->block.depth : call->block.rows;
}

static void decode_line_a(const struct call *call, int64_t item, int64_t line)
{
    const fp8r_problem *p = call->problem;
    const struct block *block = &call->block;
    int64_t row = block->row + (call->outer_a ? 0 : line), k = block->k + (call->outer_a ? line : 0);
    int64_t stride = call->outer_a ? p->a.row_stride : p->a.col_stride;
    int64_t count = call->outer_a ? block->rows : block->depth;
    int64_t at = (block->item + item) * p->a.batch_stride + row * p->a.row_stride + k * p->a.col_stride;
    const uint8_t *from = (const uint8_t *)call->pointers->a + at * fp8r_dtype_bytes(p->a.dtype);
    float *to = call->a + item * block->rows * block->depth + line * count;
    if (call->half)
        fp8r_blas_decode_half(call->state->table_a, from, p->a.dtype, stride, count,
                              1.0f / call->scales[item * block->rows + line], to);
    else
        fp8r_blas_decode(call->state->table_a, from, stride, count, to);
}

static void decode_lines_a(void *argument, int64_t index)
{
    const struct call *call = argument;
    int64_t lines = lines_of(call), groups = fp8r_size_blocks(lines, LINES_A_TASK);
    int64_t first = index % groups * LINES_A_TASK, last = fp8r_size_min(first + LINES_A_TASK, lines);
    for (int64_t line = first; line < last; line++)
        decode_line_a(call, index / groups, line);
}

/* ---- b and the product ---- */

/* One task's part of the block. */
struct tile {
    int64_t item;          /* in the block */
    int64_t row, rows;     /* in the block */
    int64_t col, cols;     /* in the block; a panel of b */
    float *b, *columns, *c;
};

static void decode_b(const struct call *call, const struct tile *tile, int64_t k, int64_t depth)
{
    const fp8r_problem *p = call->problem;
    int64_t at = (call->block.item + tile->item) * p->b.batch_stride + k * p->b.row_stride +
                 (call->block.col + tile->col) * p->b.col_stride;
    const uint8_t *from = (const uint8_t *)call->pointers->b + at;
    int64_t lines = call->outer_b ? depth : tile->cols, count = call->outer_b ? tile->cols : depth;
    int64_t line_stride = call->outer_b ? p->b.row_stride : p->b.col_stride;
    int64_t stride = call->outer_b ? p->b.col_stride : p->b.row_stride;
    for (int64_t line = 0; line < lines; line++)
        fp8r_blas_decode(call->state->table_b, from + line * line_stride, stride, count, tile->b + line * count);
}

static void multiply(const struct call *call, const struct tile *tile)
{
    const struct block *block = &call->block;
    const float *a = call->a + tile->item * block->rows * block->depth;
    int lda = (int)(call->outer_a ? block->rows : block->depth);
    int64_t step = call->tiling.depth_b;
    for (int64_t k = 0; k < block->depth; k += step) {
        int64_t depth = fp8r_size_min(step, block->depth - k);
        decode_b(call, tile, block->k + k, depth);
        const float *a_part = call->outer_a ? a + k * lda + tile->row : a + tile->row * lda + k;
        fp8r_blas_multiply(call->state->library, call->outer_a ? FP8R_BLAS_TRANSPOSED : FP8R_BLAS_PLAIN,
                           call->outer_b ? FP8R_BLAS_PLAIN : FP8R_BLAS_TRANSPOSED, (int)tile->rows, (int)tile->cols,
                           (int)depth, a_part, lda, tile->b, (int)(call->outer_b ? tile->cols : depth),
                           block->k + k > 0 ? 1.0f : 0.0f, tile->c, (int)tile->cols);
    }
}

/* ---- The epilogue ---- */

static float line_value(const void *data, const fp8r_operand *operand, int64_t batch, int64_t row, int64_t col)
{
    int64_t index = batch * operand->batch_stride + row * operand->row_stride + col * operand->col_stride;
    return data ? fp8r_load(data, index, operand->dtype) : 1.0f;
}

/* One row of the tile: a loop an output type. */
static void store_row(const fp8r_operand *out, void *data, int64_t at, const float *values, int64_t count)
{
    int64_t stride = out->col_stride;
    if (out->dtype == FP8R_DTYPE_BF16)
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)data)[at + i * stride] = fp8r_to_bf16(values[i]);
    else if (out->dtype == FP8R_DTYPE_FP16)
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)data)[at + i * stride] = fp8r_to_fp16(values[i]);
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)data)[at + i * stride] = values[i];
}

static void finish(const struct call *call, const struct tile *tile)
{
    const fp8r_problem *p = call->problem;
    const fp8r_pointers *at = call->pointers;
    const struct block *block = &call->block;
    int64_t batch = block->item + tile->item, col = block->col + tile->col;
    float *scale_b = tile->columns, *bias = tile->columns + tile->cols;
    for (int64_t j = 0; j < tile->cols; j++) {
        scale_b[j] = line_value(at->scale_b, &p->scale_b, batch, 0, col + j);
        bias[j] = line_value(at->bias, &p->bias, batch, 0, col + j);
    }
    for (int64_t i = 0; i < tile->rows; i++) {
        int64_t row = block->row + tile->row + i;
        float scale_a = call->half ? call->scales[tile->item * block->rows + tile->row + i]
                                   : line_value(at->scale_a, &p->scale_a, batch, row, 0);
        float *c = tile->c + i * tile->cols;
        for (int64_t j = 0; j < tile->cols; j++)
            c[j] = fp8r_epilogue(c[j], scale_b[j], scale_a, at->bias ? &bias[j] : NULL);
        store_row(&p->out, at->out, batch * p->out.batch_stride + row * p->out.row_stride + col * p->out.col_stride, c,
                  tile->cols);
    }
}

/* ---- One call ---- */

/* A task for each slot: it has a panel of the workspace and takes tiles until none is left. */
static void work(void *argument, int64_t slot)
{
    struct call *call = argument;
    const struct block *block = &call->block;
    const struct fp8r_blas_tiling *t = &call->tiling;
    int64_t count = block->items * call->panels * call->parts;
    struct tile tile = {.b = call->b + slot * t->width * t->depth_b, .columns = call->columns + slot * 2 * t->width};
    for (;;) {
        int64_t index = atomic_fetch_add_explicit(&call->next, 1, memory_order_relaxed);
        if (index >= count)
            return;
        int64_t part = index % call->parts, panel = index / call->parts % call->panels;
        tile.item = index / call->parts / call->panels;
        tile.row = block->rows * part / call->parts;
        tile.rows = block->rows * (part + 1) / call->parts - tile.row;
        tile.col = panel * t->width;
        tile.cols = fp8r_size_min(t->width, block->cols - tile.col);
        tile.c = call->c + block->rows * (tile.item * block->cols + tile.col) + tile.row * tile.cols;
        multiply(call, &tile);
        if (block->k + block->depth == call->problem->k)
            finish(call, &tile);
    }
}

/* All of k for one block of out. */
static void run_block(struct call *call, const fp8r_services *services)
{
    struct block *block = &call->block;
    const struct fp8r_blas_tiling *t = &call->tiling;
    call->panels = fp8r_size_blocks(block->cols, t->width);
    call->parts = fp8r_blas_row_parts(block->items * call->panels, block->rows);
    for (block->k = 0; block->k < call->problem->k; block->k += block->depth) {
        block->depth = fp8r_size_min(t->depth, call->problem->k - block->k);
        services->parallel(services->pool, block->items * fp8r_size_blocks(lines_of(call), LINES_A_TASK),
                           decode_lines_a, call);
        atomic_store_explicit(&call->next, 0, memory_order_relaxed);
        services->parallel(services->pool, t->slots, work, call);
    }
}

static void run_blocks(struct call *call, const fp8r_services *services)
{
    const fp8r_problem *p = call->problem;
    const struct fp8r_blas_tiling *t = &call->tiling;
    struct block *block = &call->block;
    int64_t rows = fp8r_size_min(p->m, t->rows), items = t->rows / rows;
    for (block->item = 0; block->item < p->batch; block->item += block->items) {
        block->items = fp8r_size_min(items, p->batch - block->item);
        for (block->row = 0; block->row < p->m; block->row += block->rows) {
            block->rows = fp8r_size_min(rows, p->m - block->row);
            if (call->half)
                services->parallel(services->pool, block->items * block->rows, scale_row, call);
            for (block->col = 0; block->col < p->n; block->col += block->cols) {
                block->cols = fp8r_size_min(t->cols, p->n - block->col);
                run_block(call, services);
            }
        }
    }
}

/* ---- The contract ---- */

static bool probe(void *user, const fp8r_device_facts *device, fp8r_reason *reason)
{
    (void)user, (void)device;
    return fp8r_blas_load(reason) != NULL;
}

static const char *library(void *user)
{
    (void)user;
    fp8r_reason reason;
    const struct fp8r_blas *loaded = fp8r_blas_load(&reason);
    return loaded ? loaded->name : NULL;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)config;
    FP8R_REJECT_IF(problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT, reason, NUMERICS, NULL, 0, 0);
    return true;
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user, (void)device, (void)problem;
    return 0;
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user, (void)config;
    struct fp8r_blas_tiling tiling;
    fp8r_blas_tiling_init(&tiling, problem, device->threads);
    return (size_t)tiling.bytes;
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **result)
{
    (void)user, (void)services, (void)config;
    fp8r_reason reason;
    const struct fp8r_blas *loaded = fp8r_blas_load(&reason);
    if (!loaded)
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "blas: no library could be loaded");
    struct state *state = malloc(sizeof *state);
    if (!state)
        return fp8r_fail_memory("the state of a blas plan");
    state->library = loaded;
    state->threads = device->threads;
    fp8r_blas_table_init(state->table_a, problem->a.dtype == FP8R_DTYPE_E5M2 ? FP8R_DTYPE_E5M2 : FP8R_DTYPE_E4M3);
    fp8r_blas_table_init(state->table_b, FP8R_DTYPE_E4M3);
    *result = state;
    return FP8R_OK;
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state_, const fp8r_problem *problem,
                       int config, const fp8r_pointers *pointers, void *space, size_t space_bytes, void *stream)
{
    (void)user, (void)config, (void)space_bytes, (void)stream;
    const struct state *state = state_;
    char *at = space;
    struct call call = {
        .state = state,
        .problem = problem,
        .pointers = pointers,
        .half = fp8r_dtype_is_half(problem->a.dtype),
        .outer_b = problem->b.col_stride < problem->b.row_stride,
    };
    fp8r_blas_tiling_init(&call.tiling, problem, state->threads);
    call.scales = (float *)(void *)(at + call.tiling.scales_at);
    call.a = (float *)(void *)(at + call.tiling.a_at);
    call.b = (float *)(void *)(at + call.tiling.b_at);
    call.columns = (float *)(void *)(at + call.tiling.columns_at);
    call.c = (float *)(void *)(at + call.tiling.c_at);
    call.outer_a = !call.half && problem->a.row_stride < problem->a.col_stride; /* a row is quantised as a whole */
    fp8r_blas_hold(state->library);
    run_blocks(&call, services);
    fp8r_blas_release(state->library);
    return FP8R_OK;
}

static void destroy(void *user, void *state)
{
    (void)user;
    free(state);
}

const fp8r_backend fp8r_backend_blas = {
    .configs = configs,
    .probe = probe,
    .library = library,
    .supports = supports,
    .pick = pick,
    .workspace = workspace,
    .prepare = prepare,
    .run = run,
    .destroy = destroy,
};
