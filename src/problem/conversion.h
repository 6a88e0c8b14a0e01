/* A conversion: quantising or dequantising a batch of matrices with one scale a group; judged here, run by api/.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PROBLEM_CONVERSION_H
#define FP8R_PROBLEM_CONVERSION_H

#include <fp8route/fp8route.h>

/* Normalised: the stride of a scale's broadcast dimension is 0. */
struct fp8r_conversion {
    fp8r_matrix in, out, scale; /* scale.dtype NONE = 1 everywhere */
};

/* in wide, out e4m3, scale fp32. Errors: INVALID_ARGUMENT naming the argument. */
fp8r_status fp8r_quantize_check(const fp8r_matrix *in, const fp8r_matrix *out, const fp8r_matrix *scale,
                                int32_t scaling, struct fp8r_conversion *conversion);

/* The same without a look at the data pointers. */
fp8r_status fp8r_quantize_check_shapes(const fp8r_matrix *in, const fp8r_matrix *out, const fp8r_matrix *scale,
                                       int32_t scaling, struct fp8r_conversion *conversion);

/* in fp8, out wide, scale fp32, NONE or NULL. */
fp8r_status fp8r_dequantize_check(const fp8r_matrix *in, const fp8r_matrix *scale, const fp8r_matrix *out,
                                  struct fp8r_conversion *conversion);

/* Types, signs, sizes and alignment of one matrix by itself. */
fp8r_status fp8r_matrix_check(const char *name, const fp8r_matrix *matrix);

/* Refuses strides with which the elements of `matrix` overlap each other. */
fp8r_status fp8r_matrix_check_written(const char *name, const fp8r_matrix *matrix);

#endif
