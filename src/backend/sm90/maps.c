/* Tensor maps: what the copy engine knows of operands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/maps.h"

#include "backend/sm90/eights.h"
#include "backend/sm90/limits.h"
#include "backend/sm90/map_cache.h"

/* How an operand lies in memory: rows of K elements. batch_stride 0: one matrix. */
struct operand_rows {
    const void *data;
    int64_t k, rows, batch, row_stride, batch_stride;
};

static cuuint64_t matrices_of(const struct operand_rows *operand)
{
    return operand->batch_stride ? (cuuint64_t)operand->batch : 1;
}

static cuuint64_t matrix_pitch(const struct operand_rows *operand)
{
    return (cuuint64_t)(operand->batch_stride ? operand->batch_stride : operand->row_stride);
}

/* A box of box_rows rows of 128 bytes, swizzled so that the tensor core reads it without conflicts. What lies
 * outside reads as zero. */
static struct fp8r_sm90_map_form form_of(const struct operand_rows *operand, int box_rows)
{
    return (struct fp8r_sm90_map_form){
        .data = operand->data,
        .extents = {(cuuint64_t)operand->k, (cuuint64_t)operand->rows, matrices_of(operand)},
        .pitches = {(cuuint64_t)operand->row_stride, matrix_pitch(operand)},
        .box = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, 1},
        .rank = 3,
    };
}

/* The same with an axis between rows and batch that counts blocks of K, `depth` of them a box; with depth 1
 * that axis has extent 1 and K stays whole, so that its ragged end reads as zero. */
static struct fp8r_sm90_map_form deep_form(const struct operand_rows *operand, int box_rows, int depth)
{
    const bool whole = depth == 1;
    return (struct fp8r_sm90_map_form){
        .data = operand->data,
        .extents = {(cuuint64_t)(whole ? operand->k : FP8R_SM90_BLOCK_K), (cuuint64_t)operand->rows,
                    (cuuint64_t)(whole ? 1 : operand->k / FP8R_SM90_BLOCK_K), matrices_of(operand)},
        .pitches = {(cuuint64_t)operand->row_stride, FP8R_SM90_BLOCK_K, matrix_pitch(operand)},
        .box = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, (cuuint32_t)depth, 1},
        .rank = 4,
    };
}

/* Rows of b in an order of their own inside every `group`: row (group / 4) q + 2 p + e of memory (q < 4, e <
 * 2) becomes row 8 p + 2 q + e of the tile, so that a thread's results are consecutive columns of out.
 * Matrices of the batch are a multiple of `group` rows apart, which makes them one long axis. */
static struct fp8r_sm90_map_form interleaved_form(const struct operand_rows *operand, int box_rows, int group)
{
    const cuuint64_t row = (cuuint64_t)operand->row_stride, groups = (cuuint64_t)operand->rows / (cuuint32_t)group;
    const cuuint64_t apart = operand->batch_stride ? (cuuint64_t)operand->batch_stride / (row * (cuuint64_t)group) : 0;
    return (struct fp8r_sm90_map_form){
        .data = operand->data,
        .extents = {(cuuint64_t)operand->k, 2, 4, (cuuint64_t)(group / 8),
                    (matrices_of(operand) - 1) * apart + groups},
        .pitches = {row, row * (cuuint64_t)(group / 4), row * 2, row * (cuuint64_t)group},
        .box = {FP8R_SM90_BLOCK_K, 2, 4, (cuuint32_t)(group / 8), (cuuint32_t)(box_rows / group)},
        .rank = 5,
    };
}

/* As form_of, with two axes of extent 1 behind: the same instruction loads either order. */
static struct fp8r_sm90_map_form plain_form(const struct operand_rows *operand, int box_rows)
{
    struct fp8r_sm90_map_form form = form_of(operand, box_rows);
    for (int i = 3; i < 5; ++i) {
        form.extents[i] = form.box[i] = 1;
        form.pitches[i - 1] = (cuuint64_t)operand->row_stride;
    }
    form.rank = 5;
    return form;
}

/* Where the kernel finds a: in place, or the copy. */
static struct operand_rows a_of(const struct fp8r_sm90_config *config, const fp8r_problem *problem, const void *a,
                                const void *workspace)
{
    struct operand_rows rows = {a, problem->k, problem->m, problem->batch, problem->a.row_stride, problem->a.batch_stride};
    if (!fp8r_sm90_copies(config, problem)) return rows;
    rows.data = workspace;
    rows.row_stride = fp8r_sm90_copy_pitch(problem);
    if (rows.batch_stride) rows.batch_stride = problem->m * rows.row_stride;
    return rows;
}

static struct fp8r_sm90_map_form b_form(const struct fp8r_sm90_config *config, const struct fp8r_sm90_shape *shape,
                                        const fp8r_problem *problem, const void *data, bool is_interleaved)
{
    const struct operand_rows b = {data, problem->k, problem->n, problem->batch, problem->b.col_stride,
                                   problem->b.batch_stride};
    if (config->shifted) return fp8r_sm90_eights_form(problem, data, shape->rows_b);
    if (config->family == FP8R_SM90_SKINNY) return deep_form(&b, shape->rows_b, shape->depth);
    if (is_interleaved) return interleaved_form(&b, shape->rows_b, FP8R_SM90_WIDE_GROUP(config->columns));
    return plain_form(&b, shape->rows_b);
}

bool fp8r_sm90_fill_map_b(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                          const fp8r_problem *problem, const fp8r_pointers *pointers, struct fp8r_sm90_args *args)
{
    const struct fp8r_sm90_map_form b =
        b_form(plan->config, shape, problem, pointers->b, (args->flags & FP8R_SM90_INTERLEAVED) != 0);
    return fp8r_sm90_map_get(plan->encode, &b, &args->map_b);
}

bool fp8r_sm90_fill_maps(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                         const fp8r_problem *problem, const fp8r_pointers *pointers, const void *workspace,
                         struct fp8r_sm90_args *args)
{
    if (plan->config->packed) return true; /* it has none */
    if (args->flags & FP8R_SM90_GATHERS) {
        const bool done = fp8r_sm90_fill_map_b(plan, shape, problem, pointers, args);
        args->map_a = args->map_b; /* nobody loads by it */
        return done;
    }
    const struct operand_rows rows = a_of(plan->config, problem, pointers->a, workspace);
    const struct fp8r_sm90_map_form a = plan->config->family == FP8R_SM90_SKINNY
                                            ? deep_form(&rows, args->rows_a, shape->depth)
                                            : form_of(&rows, args->rows_a);
    return fp8r_sm90_map_get(plan->encode, &a, &args->map_a) &&
           fp8r_sm90_fill_map_b(plan, shape, problem, pointers, args);
}
