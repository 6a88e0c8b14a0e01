/* Descriptors and the call. An attribute is set by its number, its address and its size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_product.h"

cudaDataType_t fp8r_cublaslt_type(int32_t dtype)
{
    switch (dtype) {
    case FP8R_DTYPE_E4M3:
        return CUDA_R_8F_E4M3;
    case FP8R_DTYPE_E5M2:
        return CUDA_R_8F_E5M2;
    case FP8R_DTYPE_BF16:
        return CUDA_R_16BF;
    case FP8R_DTYPE_FP16:
        return CUDA_R_16F;
    default:
        return CUDA_R_32F;
    }
}

static bool set(const struct fp8r_cublaslt *library, cublasLtMatmulDescOpaque_t *desc,
                cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return library->desc_set(desc, attribute, value, bytes) == CUBLAS_STATUS_SUCCESS;
}

static bool set_int(const struct fp8r_cublaslt *library, cublasLtMatmulDescOpaque_t *desc,
                    cublasLtMatmulDescAttributes_t attribute, int32_t value)
{
    return set(library, desc, attribute, &value, sizeof value);
}

static bool set_pointer(const struct fp8r_cublaslt *library, cublasLtMatmulDescOpaque_t *desc,
                        cublasLtMatmulDescAttributes_t attribute, const void *pointer)
{
    return set(library, desc, attribute, &pointer, sizeof pointer);
}

/* NULL = absent: a scale of 1. */
static bool set_pointers(const struct fp8r_cublaslt *library, cublasLtMatmulDescOpaque_t *desc,
                         const fp8r_pointers *pointers)
{
    return (!pointers->scale_b ||
            set_pointer(library, desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers->scale_b)) &&
           (!pointers->scale_a ||
            set_pointer(library, desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers->scale_a)) &&
           (!pointers->bias || set_pointer(library, desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers->bias));
}

/* An address that is aligned as the operand is, and never looked at. */
static const void *placeholder(const fp8r_operand *operand)
{
    return operand->dtype == FP8R_DTYPE_NONE ? NULL : (const void *)(uintptr_t)(4096 + operand->align_bytes);
}

static bool init_desc(const struct fp8r_cublaslt *library, const fp8r_problem *problem,
                      cublasLtMatmulDescOpaque_t *desc)
{
    const fp8r_pointers pointers = {.scale_a = placeholder(&problem->scale_a),
                                    .scale_b = placeholder(&problem->scale_b),
                                    .bias = placeholder(&problem->bias)};
    int8_t fast = problem->accumulation != FP8R_ACCUMULATE_PRECISE;
    bool row_wise = fp8r_cublaslt_is_row_wise(problem), has_bias = problem->bias.dtype != FP8R_DTYPE_NONE;
    return library->desc_init(desc, sizeof *desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set_int(library, desc, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T) &&
           set(library, desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast) &&
           (!row_wise || (set_int(library, desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
                                  CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F) &&
                          set_int(library, desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
                                  CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F))) &&
           (!has_bias || (set_int(library, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS) &&
                          set_int(library, desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                  (int32_t)fp8r_cublaslt_type(problem->bias.dtype)))) &&
           set_pointers(library, desc, &pointers);
}

static bool set_batch_stride(const struct fp8r_cublaslt *library, cublasLtMatrixLayoutOpaque_t *layout,
                             int64_t stride)
{
    return library->layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride) ==
           CUBLAS_STATUS_SUCCESS;
}

/* rows, cols: as the library counts them. */
static bool init_layout(const struct fp8r_cublaslt *library, const fp8r_operand *operand, int64_t rows,
                        int64_t cols, int64_t pitch, int64_t batch, cublasLtMatrixLayoutOpaque_t *layout)
{
    int32_t count = (int32_t)batch;
    return library->layout_init(layout, sizeof *layout, fp8r_cublaslt_type(operand->dtype), (uint64_t)rows,
                                (uint64_t)cols, pitch) == CUBLAS_STATUS_SUCCESS &&
           (batch == 1 || (library->layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                               sizeof count) == CUBLAS_STATUS_SUCCESS &&
                           set_batch_stride(library, layout, operand->batch_stride)));
}

bool fp8r_cublaslt_product_init(const struct fp8r_cublaslt *library, const fp8r_problem *problem,
                                struct fp8r_cublaslt_product *product)
{
    const fp8r_problem *p = problem;
    return init_desc(library, p, &product->desc) &&
           init_layout(library, &p->a, p->k, p->m, p->a.row_stride, p->batch, &product->a) &&
           init_layout(library, &p->b, p->k, p->n, p->b.col_stride, p->batch, &product->b) &&
           init_layout(library, &p->out, p->n, p->m, p->out.row_stride, p->batch, &product->out);
}

bool fp8r_cublaslt_product_set_m(const struct fp8r_cublaslt *library, int64_t m,
                                 struct fp8r_cublaslt_product *product)
{
    uint64_t cols = (uint64_t)m;
    return library->layout_set(&product->a, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols) ==
               CUBLAS_STATUS_SUCCESS &&
           library->layout_set(&product->out, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols) ==
               CUBLAS_STATUS_SUCCESS;
}

fp8r_status fp8r_cublaslt_multiply(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                                   const struct fp8r_cublaslt_product *product, const fp8r_problem *problem,
                                   const fp8r_pointers *pointers, const cublasLtMatmulAlgo_t *algo,
                                   void *workspace, size_t workspace_bytes, void *stream)
{
    static const float one = 1.0f, zero = 0.0f;
    struct fp8r_cublaslt_product own = *product;
    if (!set_pointers(library, &own.desc, pointers) ||
        !fp8r_cublaslt_product_set_m(library, problem->m, &own) ||
        (problem->batch > 1 && (!set_batch_stride(library, &own.a, problem->a.batch_stride) ||
                                !set_batch_stride(library, &own.out, problem->out.batch_stride))))
        return fp8r_cublaslt_fail("a cuBLASLt descriptor's attribute", CUBLAS_STATUS_INVALID_VALUE);
    cublasStatus_t status = library->multiply(handle, &own.desc, &one, pointers->b, &own.b, pointers->a,
                                              &own.a, &zero, pointers->out, &own.out, pointers->out, &own.out,
                                              algo, workspace, workspace_bytes, (cudaStream_t)stream);
    return status == CUBLAS_STATUS_SUCCESS ? FP8R_OK : fp8r_cublaslt_fail("cublasLtMatmul", status);
}
