/* The candidates: the library's own first choice, and algorithms named by their attributes. Which of them
 * runs a product is asked of the library each time; it keeps its answers, so that asking again costs 1 to 4
 * us.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CUBLASLT_CONFIGS_H
#define FP8R_BACKEND_CUBLASLT_CONFIGS_H

#include "backend/cublaslt/cublaslt_product.h"

enum fp8r_cublaslt_config {
    FP8R_CUBLASLT_HEURISTIC,
#define FP8R_CUBLASLT_CONFIG(rows, columns, cluster_rows, cluster_columns, option)                           \
    FP8R_CUBLASLT_T##rows##x##columns##_C##cluster_rows##x##cluster_columns##_O##option,
#include "backend/cublaslt/cublaslt_configs.inc"
#undef FP8R_CUBLASLT_CONFIG
    FP8R_CUBLASLT_CONFIGS
};

/* NULL-terminated. */
extern const char *const fp8r_cublaslt_config_names[];

/* What a product may use. */
enum { FP8R_CUBLASLT_WORKSPACE_BYTES = 32 << 20 };

struct fp8r_cublaslt_choice {
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
};

/* The algorithm of a configuration for the problem with `m` rows. product: the problem's; its m is
 * overwritten. False fills the reason. */
bool fp8r_cublaslt_ask(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                       const fp8r_problem *problem, int config, int64_t m,
                       struct fp8r_cublaslt_product *product, struct fp8r_cublaslt_choice *choice,
                       fp8r_reason *reason);

#endif
