/* A product in cuBLASLt's terms. Ours is row-major, out[m,n]; the library's matrices are column-major, so
 * that it computes the transpose, out'[n,m] = b'[n,k] * a[k,m]: its A is our b, its B our a, its rows are our
 * columns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CUBLASLT_PRODUCT_H
#define FP8R_BACKEND_CUBLASLT_PRODUCT_H

#include "backend/cublaslt/cublaslt_library.h"

/* What cuBLASLt is known to refuse, from the problem and the architecture alone; a yes still has to be asked
 * of the library. The same for all m up to INT32_MAX, but that a row-wise scale_a of one row may have any
 * stride. */
bool fp8r_cublaslt_takes(const fp8r_device_facts *device, const fp8r_problem *problem, fp8r_reason *reason);

/* One scale a row of a and a column of b; otherwise one, or none, each. */
bool fp8r_cublaslt_is_row_wise(const fp8r_problem *problem);

/* The library's number for FP8R_DTYPE_*. */
cudaDataType_t fp8r_cublaslt_type(int32_t dtype);

/* The descriptors, plain memory: copied for each run, where m, batch strides and pointers are set. */
struct fp8r_cublaslt_product {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, out; /* ours */
};

/* False where the library refuses an attribute. Pointers are placeholders, aligned as the problem says. */
bool fp8r_cublaslt_product_init(const struct fp8r_cublaslt *library, const fp8r_problem *problem,
                                struct fp8r_cublaslt_product *product);

/* The same product with another m. */
bool fp8r_cublaslt_product_set_m(const struct fp8r_cublaslt *library, int64_t m,
                                 struct fp8r_cublaslt_product *product);

/* Queues it. product: as prepared. Errors: UNSUPPORTED, OUT_OF_MEMORY, DEVICE. */
fp8r_status fp8r_cublaslt_multiply(const struct fp8r_cublaslt *library, cublasLtHandle_t handle,
                                   const struct fp8r_cublaslt_product *product, const fp8r_problem *problem,
                                   const fp8r_pointers *pointers, const cublasLtMatmulAlgo_t *algo,
                                   void *workspace, size_t workspace_bytes, void *stream);

#endif
