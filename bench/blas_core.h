/* Sees to it that OpenBLAS runs the kernels of this processor.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BENCH_BLAS_CORE_H
#define FP8R_BENCH_BLAS_CORE_H

#include <fp8route/backend.h>

/* An OpenBLAS that does not know the processor's model falls back to kernels of twenty years ago, and decides
 * that when it is loaded. Where that happened, starts this program again with OPENBLAS_CORETYPE set. */
void bench_blas_core(const fp8r_device_facts *facts, char **argv);

#endif
