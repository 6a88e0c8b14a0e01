/* The element types: names, sizes, kinds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_DTYPE_H
#define FP8R_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

/* "none", "e4m3", "e5m2", "bf16", "fp16", "fp32"; "unknown" otherwise. */
static inline const char *fp8r_dtype_name(int32_t dtype)
{
    static const char *const names[] = {"none", "e4m3", "e5m2", "bf16", "fp16", "fp32"};
    return dtype >= 0 && dtype < 6 ? names[dtype] : "unknown";
}

/* Bytes of an element; 0 for NONE and for numbers that are no type. */
static inline int64_t fp8r_dtype_bytes(int32_t dtype)
{
    const uint32_t at = (uint32_t)dtype < 6 ? (uint32_t)dtype : 6;
    return 0x422110u >> 4 * at & 15; /* a digit a type: a table in memory would be one more line to fetch */
}

static inline bool fp8r_dtype_is_fp8(int32_t dtype)
{
    return dtype == FP8R_DTYPE_E4M3 || dtype == FP8R_DTYPE_E5M2;
}

/* bf16, fp16 or fp32: what out and bias may be. */
static inline bool fp8r_dtype_is_wide(int32_t dtype)
{
    return dtype >= FP8R_DTYPE_BF16 && dtype <= FP8R_DTYPE_FP32;
}

/* bf16 or fp16: an `a` of these is quantised on the way. */
static inline bool fp8r_dtype_is_half(int32_t dtype)
{
    return dtype == FP8R_DTYPE_BF16 || dtype == FP8R_DTYPE_FP16;
}

#endif
