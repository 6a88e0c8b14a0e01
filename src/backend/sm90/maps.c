/* Tensor maps: what the copy engine knows of operands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/maps.h"

#include "backend/sm90/fours.h"
#include "backend/sm90/limits.h"

typedef CUresult (*encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* How an operand lies in memory: rows of K elements. batch_stride 0: one matrix. */
struct operand_rows {
    const void *data;
    int64_t k, rows, batch, row_stride, batch_stride;
};

/* A box of box_rows rows of 128 bytes, swizzled so that the tensor core reads it without conflicts. What lies
 * outside reads as zero. */
static bool encode_operand(encoder encode, CUtensorMap *map, const struct operand_rows *operand, int box_rows)
{
    const cuuint64_t extents[3] = {(cuuint64_t)operand->k, (cuuint64_t)operand->rows,
                                   operand->batch_stride ? (cuuint64_t)operand->batch : 1};
    const cuuint64_t pitches[2] = {
        (cuuint64_t)operand->row_stride,
        (cuuint64_t)(operand->batch_stride ? operand->batch_stride : operand->row_stride)};
    const cuuint32_t box[3] = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, 1}, steps[3] = {1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, (void *)(uintptr_t)operand->data, extents, pitches,
                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* The same with an axis between rows and batch that counts blocks of K, `depth` of them a box; with depth 1
 * that axis has extent 1 and K stays whole, so that its ragged end reads as zero. */
static bool encode_operand_deep(encoder encode, CUtensorMap *map, const struct operand_rows *operand,
                                int box_rows, int depth)
{
    const bool whole = depth == 1;
    const cuuint64_t extents[4] = {(cuuint64_t)(whole ? operand->k : FP8R_SM90_BLOCK_K),
                                   (cuuint64_t)operand->rows,
                                   (cuuint64_t)(whole ? 1 : operand->k / FP8R_SM90_BLOCK_K),
                                   operand->batch_stride ? (cuuint64_t)operand->batch : 1};
    const cuuint64_t pitches[3] = {
        (cuuint64_t)operand->row_stride, FP8R_SM90_BLOCK_K,
        (cuuint64_t)(operand->batch_stride ? operand->batch_stride : operand->row_stride)};
    const cuuint32_t box[4] = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, (cuuint32_t)depth, 1};
    const cuuint32_t steps[4] = {1, 1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, (void *)(uintptr_t)operand->data, extents, pitches,
                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* Rows of b in an order of their own inside every `group`: row (group / 4) q + 2 p + e of memory (q < 4, e <
 * 2) becomes row 8 p + 2 q + e of the tile, so that a thread's results are consecutive columns of out.
 * Matrices of the batch are a multiple of `group` rows apart, which makes them one long axis. */
static bool encode_interleaved(encoder encode, CUtensorMap *map, const struct operand_rows *operand,
                               int box_rows, int group)
{
    const cuuint64_t row = (cuuint64_t)operand->row_stride, groups = (cuuint64_t)(operand->rows / group);
    const cuuint64_t apart = (cuuint64_t)operand->batch_stride / (row * (cuuint64_t)group);
    const cuuint64_t extents[5] = {(cuuint64_t)operand->k, 2, 4, (cuuint64_t)(group / 8),
                                   operand->batch_stride ? ((cuuint64_t)operand->batch - 1) * apart + groups
                                                         : groups};
    const cuuint64_t pitches[4] = {row, row * (cuuint64_t)(group / 4), row * 2, row * (cuuint64_t)group};
    const cuuint32_t box[5] = {FP8R_SM90_BLOCK_K, 2, 4, (cuuint32_t)(group / 8),
                               (cuuint32_t)(box_rows / group)};
    const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 5, (void *)(uintptr_t)operand->data, extents, pitches,
                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* As encode_operand, with two axes of extent 1 behind: the same instruction loads either order. */
static bool encode_plain(encoder encode, CUtensorMap *map, const struct operand_rows *operand, int box_rows)
{
    const cuuint64_t row = (cuuint64_t)operand->row_stride,
                     matrix = operand->batch_stride ? (cuuint64_t)operand->batch_stride : row;
    const cuuint64_t extents[5] = {(cuuint64_t)operand->k, (cuuint64_t)operand->rows,
                                   operand->batch_stride ? (cuuint64_t)operand->batch : 1, 1, 1};
    const cuuint64_t pitches[4] = {row, matrix, row, row};
    const cuuint32_t box[5] = {FP8R_SM90_BLOCK_K, (cuuint32_t)box_rows, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 5, (void *)(uintptr_t)operand->data, extents, pitches,
                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
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

/* Rows of b by fours; of a in place, or the copy. */
static bool fill_shifted(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                         const fp8r_problem *problem, const fp8r_pointers *pointers, const void *workspace,
                         struct fp8r_sm90_args *args)
{
    encoder encode;
    *(void **)&encode = plan->encode;
    const struct operand_rows a = a_of(plan->config, problem, pointers->a, workspace);
    return encode_operand(encode, &args->map_a, &a, args->rows_a) &&
           fp8r_sm90_encode_fours(plan->encode, &args->map_b, problem, pointers->b, shape->rows_b);
}

bool fp8r_sm90_fill_maps(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                         const fp8r_problem *problem, const fp8r_pointers *pointers, const void *workspace,
                         struct fp8r_sm90_args *args)
{
    encoder encode;
    *(void **)&encode = plan->encode;
    const struct operand_rows a = {
        pointers->a, problem->k, problem->m, problem->batch, problem->a.row_stride, problem->a.batch_stride};
    const struct operand_rows b = {
        pointers->b, problem->k, problem->n, problem->batch, problem->b.col_stride, problem->b.batch_stride};
    if (plan->config->packed) return true; /* it has none */
    if (plan->config->shifted) return fill_shifted(plan, shape, problem, pointers, workspace, args);
    if (plan->config->family == FP8R_SM90_SKINNY)
        return encode_operand_deep(encode, &args->map_a, &a, args->rows_a, shape->depth) &&
               encode_operand_deep(encode, &args->map_b, &b, shape->rows_b, shape->depth);
    if (!encode_operand(encode, &args->map_a, &a, args->rows_a)) return false;
    if (args->flags & FP8R_SM90_INTERLEAVED)
        return encode_interleaved(encode, &args->map_b, &b, shape->rows_b,
                                  FP8R_SM90_WIDE_GROUP(plan->config->columns));
    return encode_plain(encode, &args->map_b, &b, shape->rows_b);
}
