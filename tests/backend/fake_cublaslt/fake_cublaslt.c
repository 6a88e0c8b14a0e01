/* A cuBLASLt on the processor: it keeps what it is told in the opaque structs, refuses what the real one
 * refuses where a test needs it, and multiplies by the definition, so that a swapped operand, stride or scale
 * shows. Chosen by one FAKE_* definition: GOOD, OTHER (a later version), OLD, WITHOUT (a function).
 * SPDX-License-Identifier: Apache-2.0 */
#include <cublasLt.h>
#include <string.h>

#include "base/convert.h"

#if defined(FAKE_OLD)
enum { VERSION = 120805 };
#elif defined(FAKE_OTHER)
enum { VERSION = 140203 };
#else
enum { VERSION = 130100 };
#endif

struct desc {
    int32_t trans_a, trans_b, mode_a, mode_b, epilogue, bias_type;
    int8_t fast;
    const float *scale_a, *scale_b;
    const void *bias;
};

struct layout {
    int32_t type, batch;
    uint64_t rows, cols;
    int64_t pitch, stride;
};

/* What an algorithm was told: config attributes by their number. */
struct algo {
    int32_t id, values[9];
};

_Static_assert(sizeof(struct desc) <= sizeof(cublasLtMatmulDescOpaque_t), "the fake's struct must fit");
_Static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "the fake's struct must fit");
_Static_assert(sizeof(struct algo) <= sizeof(cublasLtMatmulAlgo_t), "the fake's struct must fit");

size_t cublasLtGetVersion(void)
{
    return VERSION;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    static int anything;
    *handle = (cublasLtHandle_t)(void *)&anything;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    memset(desc, 0, size);
    return compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS
                                                                : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t size)
{
    struct desc *it = (struct desc *)(void *)desc;
    const struct {
        cublasLtMatmulDescAttributes_t name;
        void *to;
        size_t size;
    } known[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &it->trans_a, 4},
                 {CUBLASLT_MATMUL_DESC_TRANSB, &it->trans_b, 4},
                 {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &it->mode_a, 4},
                 {CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &it->mode_b, 4},
                 {CUBLASLT_MATMUL_DESC_EPILOGUE, &it->epilogue, 4},
                 {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &it->bias_type, 4},
                 {CUBLASLT_MATMUL_DESC_FAST_ACCUM, &it->fast, 1},
                 {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, (void *)&it->scale_a, 8},
                 {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, (void *)&it->scale_b, 8},
                 {CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)&it->bias, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].name == name && known[i].size == size) {
            memcpy(known[i].to, value, size);
            return CUBLAS_STATUS_SUCCESS;
        }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t cols,
                                                 int64_t pitch)
{
    const struct layout made = {
        .type = (int32_t)type, .batch = 1, .rows = rows, .cols = cols, .pitch = pitch};
    memset(layout, 0, size);
    memcpy(layout, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name, const void *value,
                                                size_t size)
{
    struct layout *it = (struct layout *)(void *)layout;
    if (name == CUBLASLT_MATRIX_LAYOUT_COLS && size == sizeof it->cols)
        memcpy(&it->cols, value, size);
    else if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof it->batch)
        memcpy(&it->batch, value, size);
    else if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof it->stride)
        memcpy(&it->stride, value, size);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size)
{
    memset(preference, 0, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* The first words: bytes of workspace, then the four alignments. */
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t size)
{
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == 8)
        memcpy(&preference->data[0], value, size);
    else if (name >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
             name <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES && size == 4)
        memcpy(&preference->data[1 + name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, size);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* One algorithm a power of two of M, with as many bytes of workspace; none for K = 4080. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *count)
{
    const struct layout *of_b = (const struct layout *)(const void *)b;
    struct algo algo = {.id = 7};
    (void)desc, (void)a, (void)c, (void)d;
    *count = 0;
    if (!handle || wanted != 1 || preference->data[0] == 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (of_b->rows == 4080) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int32_t i = 0; i < 4; i++)
        algo.values[i] = (int32_t)preference->data[1 + i];
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &algo, sizeof algo);
    results->workspaceSize = (size_t)of_b->cols;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute,
                                      cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                                      cudaDataType_t c, cudaDataType_t d, int id, cublasLtMatmulAlgo_t *algo)
{
    const struct algo made = {.id = id};
    (void)compute, (void)scale, (void)b, (void)c, (void)d;
    if (!handle || a != CUDA_R_8F_E4M3) return CUBLAS_STATUS_INVALID_VALUE;
    memset(algo, 0, sizeof *algo);
    memcpy(algo, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    const void *value, size_t size)
{
    struct algo *it = (struct algo *)(void *)algo;
    if ((size_t)name >= sizeof it->values / sizeof *it->values || size > sizeof *it->values)
        return CUBLAS_STATUS_INVALID_VALUE;
    it->values[name] = 0;
    memcpy(&it->values[name], value, size);
    return CUBLAS_STATUS_SUCCESS;
}

#if !defined(FAKE_WITHOUT)
/* Takes 128x128 tiles only. */
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    const struct algo *it = (const struct algo *)(const void *)algo;
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d;
    if (it->values[CUBLASLT_ALGO_CONFIG_TILE_ID] != CUBLASLT_MATMUL_TILE_128x128)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    result->workspaceSize = 4;
    return CUBLAS_STATUS_SUCCESS;
}
#endif

static int32_t dtype_of(int32_t type)
{
    return type == CUDA_R_8F_E4M3   ? FP8R_DTYPE_E4M3
           : type == CUDA_R_8F_E5M2 ? FP8R_DTYPE_E5M2
           : type == CUDA_R_16BF    ? FP8R_DTYPE_BF16
           : type == CUDA_R_16F     ? FP8R_DTYPE_FP16
                                    : FP8R_DTYPE_FP32;
}

static float scale_at(const float *scale, int32_t mode, int64_t index)
{
    return !scale ? 1.0f : scale[mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F ? index : 0];
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_, const void *b,
                              cublasLtMatrixLayout_t b_, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_, void *d, cublasLtMatrixLayout_t d_,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream)
{
    const struct desc *desc = (const struct desc *)(const void *)desc_;
    const struct layout *la = (const struct layout *)(const void *)a_,
                        *lb = (const struct layout *)(const void *)b_,
                        *ld = (const struct layout *)(const void *)d_;
    (void)workspace, (void)workspace_bytes, (void)stream, (void)c_;
    if (!handle || !algo || c != d || *(const float *)alpha != 1.0f || *(const float *)beta != 0.0f ||
        desc->trans_a != CUBLAS_OP_T || desc->trans_b != CUBLAS_OP_N || la->rows != lb->rows ||
        la->cols != ld->rows || lb->cols != ld->cols || la->batch != lb->batch || la->batch != ld->batch)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int64_t item = 0; item < ld->batch; item++)
        for (int64_t col = 0; col < (int64_t)ld->cols; col++)
            for (int64_t row = 0; row < (int64_t)ld->rows; row++) {
                double sum = 0;
                for (int64_t k = 0; k < (int64_t)la->rows; k++)
                    sum += (double)fp8r_load(a, item * la->stride + row * la->pitch + k, dtype_of(la->type)) *
                           (double)fp8r_load(b, item * lb->stride + col * lb->pitch + k, dtype_of(lb->type));
                float result = (float)sum * scale_at(desc->scale_a, desc->mode_a, row);
                result *= scale_at(desc->scale_b, desc->mode_b, col);
                if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS)
                    result += fp8r_load(desc->bias, row, dtype_of(desc->bias_type));
                fp8r_store(d, item * ld->stride + col * ld->pitch + row, dtype_of(ld->type), result);
            }
    return CUBLAS_STATUS_SUCCESS;
}
