/* The tensor core's FP8 product whose first operand comes from registers. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WGMMA_REGISTERS_CUH
#define FP8R_SM90_WGMMA_REGISTERS_CUH

#include "backend/sm90/wgmma.cuh"

/* d += p * q as in wgmma.cuh, but with p in registers: four words a step, of rows lane / 4 and lane / 4 + 8 of a warp's sixteen, words
 * lane % 4 of the step's first four, then of its last four. They are read until the product is complete. */
template <int N> struct wgmma_registers;

#define UNWRAP_DATA(...) __VA_ARGS__
#define WGMMA_REGISTERS(n, names, data, p_names, q_name, accumulate_name)                                    \
    template <> struct wgmma_registers<n> {                                                                  \
        static __device__ __forceinline__ void run(float *d, const uint32_t *p, uint64_t q, int accumulate)  \
        {                                                                                                    \
            asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " accumulate_name ", 0;\n"      \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3 {" names "}, {" p_names   \
                         "}, " q_name ", accumulate, 1, 1;\n}"                                               \
                         : UNWRAP_DATA data                                                                       \
                         : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(q), "r"(accumulate));             \
        }                                                                                                    \
    };

/* clang-format off */
WGMMA_REGISTERS(16, NAMES_8(), (DATA_8()), "%8, %9, %10, %11", "%12", "%13")
WGMMA_REGISTERS(64, NAMES_3_TENS ", " NAMES_2(3), (DATA_3_TENS, DATA_2(3)), "%32, %33, %34, %35", "%36", "%37")
WGMMA_REGISTERS(128, NAMES_6_TENS ", " NAMES_4(6), (DATA_6_TENS, DATA_4(6)), "%64, %65, %66, %67", "%68", "%69")
WGMMA_REGISTERS(256, NAMES_12_TENS ", " NAMES_8(12), (DATA_12_TENS, DATA_8(12)), "%128, %129, %130, %131", "%132", "%133")
/* clang-format on */

#undef WGMMA_REGISTERS
#undef UNWRAP_DATA

#endif
