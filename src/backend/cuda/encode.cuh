/* Values of any type, codes of either, as fp32: the bits of base/convert.h. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CUDA_ENCODE_CUH
#define FP8R_CUDA_ENCODE_CUH

#include <cuda_fp16.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

#include "backend/cuda/decode.cuh"
#include "device/quantize_rows.cuh"

FP8R_DEVICE float load_value(const void *data, int64_t at, int dtype)
{
    if (dtype == FP8R_DTYPE_BF16) return __uint_as_float((uint32_t)((const uint16_t *)data)[at] << 16);
    if (dtype == FP8R_DTYPE_FP16) return __half2float(((const __half *)data)[at]);
    return ((const float *)data)[at];
}

FP8R_DEVICE float decode_one(uint8_t code, int dtype)
{
    const __half_raw half = {
        (unsigned short)(dtype == FP8R_DTYPE_E5M2 ? code << 8 : decode_pair(code) & 0xFFFFu)};
    return __half2float(__half(half));
}

#endif
