/* Loading the kernels: once a context, since none can be loaded while a stream captures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/sm90/load.h"

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "backend/sm90/kernels.h"
#include "backend/sm90/limits.h"
#include "backend/sm90/shifted.h"

/* The most shared memory that a block can have on this architecture. */
enum { SHARED_BYTES_MOST = 232448 };

/* NULL: there is none such. */
static cudaError_t load(const void *kernel)
{
    if (!kernel) return cudaSuccess;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES_MOST);
}

static cudaError_t load_all(bool e5m2)
{
    const void *const kernels[] = {
#define SKINNY_FAST(tokens)    fp8r_sm90_skinny_fast(tokens, e5m2),
#define SKINNY_PRECISE(tokens) fp8r_sm90_skinny_precise(tokens, e5m2),
#define WIDE_FAST(groups, tiles, columns)    fp8r_sm90_wide_fast(groups, tiles, columns, e5m2),
#define PACKED_FAST(groups, columns)         fp8r_sm90_packed(groups, columns, false, e5m2),
#define PACKED_PRECISE(groups, columns)      fp8r_sm90_packed(groups, columns, true, e5m2),
#define SHIFTED(groups, tokens)              fp8r_sm90_shifted(groups, tokens),
#define WIDE_PRECISE(groups, tiles, columns) fp8r_sm90_wide_precise(groups, tiles, columns, e5m2),
        FP8R_SM90_SKINNY_FAST(SKINNY_FAST) FP8R_SM90_SKINNY_PRECISE(SKINNY_PRECISE)
            FP8R_SM90_WIDE_FAST(WIDE_FAST) FP8R_SM90_WIDE_PRECISE(WIDE_PRECISE)
                FP8R_SM90_PACKED_FAST(PACKED_FAST) FP8R_SM90_PACKED_PRECISE(PACKED_PRECISE) FP8R_SM90_SHIFTED(SHIFTED)
                    fp8r_sm90_shifted_copy(), fp8r_sm90_skinny_halves(e5m2)};
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels && error == cudaSuccess; ++i)
        error = load(kernels[i]);
    return error;
}

bool fp8r_sm90_load(fp8r_reason *reason)
{
    cudaError_t error = load_all(false);
    if (error == cudaSuccess) error = load_all(true);
    if (error != cudaSuccess) (void)cudaGetLastError(); /* the reason says it */
    FP8R_REJECT_IF(error != cudaSuccess, reason, OTHER, cudaGetErrorString(error), error, 0);
    return true;
}
