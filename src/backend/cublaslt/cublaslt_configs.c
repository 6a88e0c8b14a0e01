/* Asking the library for algorithms.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_configs.h"

#include <string.h>

const char *const fp8r_cublaslt_config_names[] = {"heuristic",
#define FP8R_CUBLASLT_CONFIG(rows, columns, cluster_rows, cluster_columns, option)                           \
    "t" #rows "x" #columns "_c" #cluster_rows "x" #cluster_columns "_o" #option,
#include "backend/cublaslt/cublaslt_configs.inc"
#undef FP8R_CUBLASLT_CONFIG
                                                  NULL};

static const struct attributes {
    int32_t tile;
    uint16_t cluster;
    int32_t option;
} table[] = {
    {0},
#define FP8R_CUBLASLT_CONFIG(rows, columns, cluster_rows, cluster_columns, option_)                          \
    {.tile = CUBLASLT_MATMUL_TILE_##rows##x##columns,                                                        \
     .cluster = CUBLASLT_CLUSTER_SHAPE_##cluster_rows##x##cluster_columns##x1,                               \
     .option = option_},
#include "backend/cublaslt/cublaslt_configs.inc"
#undef FP8R_CUBLASLT_CONFIG
};

enum { HOPPER_ALGORITHM = 66 };

/* ---- The library's first choice ---- */

static bool set(const struct fp8r_cublaslt *library, cublasLtMatmulPreferenceOpaque_t *preference,
                cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
    return library->preference_set(preference, attribute, value, bytes) == CUBLAS_STATUS_SUCCESS;
}

static bool set_alignment(const struct fp8r_cublaslt *library, cublasLtMatmulPreferenceOpaque_t *preference,
                          cublasLtMatmulPreferenceAttributes_t attribute, int32_t align_bytes)
{
    uint32_t value = (uint32_t)align_bytes;
    return set(library, preference, attribute, &value, sizeof value);
}

static bool init_preference(const struct fp8r_cublaslt *library, const fp8r_problem *problem,
                            cublasLtMatmulPreferenceOpaque_t *preference)
{
    uint64_t bytes = FP8R_CUBLASLT_WORKSPACE_BYTES;
    return library->preference_init(preference, sizeof *preference) == CUBLAS_STATUS_SUCCESS &&
           set(library, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes) &&
           set_alignment(library, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         problem->b.align_bytes) &&
           set_alignment(library, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         problem->a.align_bytes) &&
           set_alignment(library, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         problem->out.align_bytes) &&
           set_alignment(library, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                         problem->out.align_bytes);
}

static cublasStatus_t first(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                            const fp8r_problem *problem, struct fp8r_cublaslt_product *product,
                            struct fp8r_cublaslt_choice *choice)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result = {0};
    int count = 0;
    if (!init_preference(library, problem, &preference)) return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status =
        library->algo_first(handle, &product->desc, &product->b, &product->a, &product->out, &product->out,
                            &preference, 1, &result, &count);
    if (status == CUBLAS_STATUS_SUCCESS && (count < 1 || result.state != CUBLAS_STATUS_SUCCESS))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    choice->algo = result.algo;
    choice->workspace_bytes = result.workspaceSize;
    return status;
}

/* ---- One algorithm by its attributes ---- */

static bool init_algo(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                      const fp8r_problem *problem, const struct attributes *attributes,
                      cublasLtMatmulAlgo_t *algo)
{
    int32_t stages = CUBLASLT_MATMUL_STAGES_128xAUTO, split = 1;
    cudaDataType_t a = fp8r_cublaslt_type(problem->a.dtype), b = fp8r_cublaslt_type(problem->b.dtype),
                   out = fp8r_cublaslt_type(problem->out.dtype);
    const struct {
        cublasLtMatmulAlgoConfigAttributes_t name;
        const void *value;
        size_t bytes;
    } values[] = {{CUBLASLT_ALGO_CONFIG_TILE_ID, &attributes->tile, sizeof attributes->tile},
                  {CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages, sizeof stages},
                  {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split},
                  {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, &attributes->option, sizeof attributes->option},
                  {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &attributes->cluster, sizeof attributes->cluster}};
    if (library->algo_init(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, b, a, out, out, HOPPER_ALGORITHM, algo) !=
        CUBLAS_STATUS_SUCCESS)
        return false;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (library->algo_set(algo, values[i].name, values[i].value, values[i].bytes) !=
            CUBLAS_STATUS_SUCCESS)
            return false;
    return true;
}

static cublasStatus_t named(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                            const fp8r_problem *problem, const struct attributes *attributes,
                            struct fp8r_cublaslt_product *product, struct fp8r_cublaslt_choice *choice)
{
    cublasLtMatmulHeuristicResult_t result = {0};
    if (!init_algo(library, handle, problem, attributes, &choice->algo)) return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasStatus_t status = library->algo_check(handle, &product->desc, &product->b, &product->a,
                                                &product->out, &product->out, &choice->algo, &result);
    choice->workspace_bytes = result.workspaceSize;
    return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize > FP8R_CUBLASLT_WORKSPACE_BYTES
               ? CUBLAS_STATUS_NOT_SUPPORTED
               : status;
}

bool fp8r_cublaslt_ask(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                       const fp8r_problem *problem, int config, int64_t m,
                       struct fp8r_cublaslt_product *product, struct fp8r_cublaslt_choice *choice,
                       fp8r_reason *reason)
{
    memset(choice, 0, sizeof *choice);
    bool is_set = fp8r_cublaslt_product_set_m(library, m, product);
    cublasStatus_t status = !is_set ? CUBLAS_STATUS_INVALID_VALUE
                            : config == FP8R_CUBLASLT_HEURISTIC
                                ? first(library, handle, problem, product, choice)
                                : named(library, handle, problem, &table[config], product, choice);
    FP8R_REJECT_IF(status == CUBLAS_STATUS_NOT_SUPPORTED && config != FP8R_CUBLASLT_HEURISTIC, reason, OTHER,
                   "cuBLASLt does not take this problem with this algorithm", 0, 0);
    FP8R_REJECT_IF(status == CUBLAS_STATUS_NOT_SUPPORTED, reason, OTHER,
                   "cuBLASLt offers no algorithm for this problem", 0, 0);
    FP8R_REJECT_IF(status != CUBLAS_STATUS_SUCCESS, reason, OTHER, "cuBLASLt refuses this problem", 0, 0);
    return true;
}
