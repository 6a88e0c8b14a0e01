/* The tensor core's FP8 product, m64 x n x k32, fp32 accumulators in registers, both operands in shared
 * memory. One specialisation a width; the accumulator lists are put together from tens because asm operands
 * are numbered. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_WGMMA_CUH
#define FP8R_SM90_WGMMA_CUH

#include "backend/sm90/ptx.cuh"

/* Types of the two operands, first the one on the m64 side. */
enum { FP8R_WGMMA_E4M3_E4M3, FP8R_WGMMA_E4M3_E5M2, FP8R_WGMMA_E5M2_E4M3 };

/* Descriptor of a K-major tile: rows of 128 bytes, 128-byte swizzle, groups of 8 rows 1024 bytes apart. Only
 * the low half depends on the address (a multiple of 1024): it counts 16 bytes, so that sums of addresses are
 * sums of low halves. */
#define FP8R_WGMMA_DESCRIPTOR_HIGH 0x40000040u

FP8R_DEVICE uint32_t wgmma_descriptor_low(uint32_t address)
{
    return address >> 4 | 1u << 16;
}

FP8R_DEVICE uint32_t wgmma_descriptor_address(uint32_t low)
{
    return (low ^ 1u << 16) << 4;
}

FP8R_DEVICE uint64_t wgmma_descriptor(uint32_t low)
{
    return (uint64_t)FP8R_WGMMA_DESCRIPTOR_HIGH << 32 | low;
}

/* Between other uses of the accumulators and the first product into them. */
FP8R_DEVICE void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

FP8R_DEVICE void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> FP8R_DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* The digits 0..9 behind a tens digit, as operand names and as operands. */
#define NAMES_2(t)  "%" #t "0, %" #t "1"
#define NAMES_4(t)  NAMES_2(t) ", %" #t "2, %" #t "3"
#define NAMES_6(t)  NAMES_4(t) ", %" #t "4, %" #t "5"
#define NAMES_8(t)  NAMES_6(t) ", %" #t "6, %" #t "7"
#define NAMES_10(t) NAMES_8(t) ", %" #t "8, %" #t "9"
#define DATA_2(t)   "+f"(d[t##0]), "+f"(d[t##1])
#define DATA_4(t)   DATA_2(t), "+f"(d[t##2]), "+f"(d[t##3])
#define DATA_6(t)   DATA_4(t), "+f"(d[t##4]), "+f"(d[t##5])
#define DATA_8(t)   DATA_6(t), "+f"(d[t##6]), "+f"(d[t##7])
#define DATA_10(t)  DATA_8(t), "+f"(d[t##8]), "+f"(d[t##9])

/* The first so many full tens. The operand lists travel in parentheses, because they hold commas. */
#define NAMES_1_TENS  NAMES_10()
#define NAMES_2_TENS  NAMES_1_TENS ", " NAMES_10(1)
#define NAMES_3_TENS  NAMES_2_TENS ", " NAMES_10(2)
#define NAMES_4_TENS  NAMES_3_TENS ", " NAMES_10(3)
#define NAMES_5_TENS  NAMES_4_TENS ", " NAMES_10(4)
#define NAMES_6_TENS  NAMES_5_TENS ", " NAMES_10(5)
#define NAMES_7_TENS  NAMES_6_TENS ", " NAMES_10(6)
#define NAMES_8_TENS  NAMES_7_TENS ", " NAMES_10(7)
#define NAMES_9_TENS  NAMES_8_TENS ", " NAMES_10(8)
#define NAMES_10_TENS NAMES_9_TENS ", " NAMES_10(9)
#define NAMES_11_TENS NAMES_10_TENS ", " NAMES_10(10)
#define NAMES_12_TENS NAMES_11_TENS ", " NAMES_10(11)
#define DATA_1_TENS   DATA_10()
#define DATA_2_TENS   DATA_1_TENS, DATA_10(1)
#define DATA_3_TENS   DATA_2_TENS, DATA_10(2)
#define DATA_4_TENS   DATA_3_TENS, DATA_10(3)
#define DATA_5_TENS   DATA_4_TENS, DATA_10(4)
#define DATA_6_TENS   DATA_5_TENS, DATA_10(5)
#define DATA_7_TENS   DATA_6_TENS, DATA_10(6)
#define DATA_8_TENS   DATA_7_TENS, DATA_10(7)
#define DATA_9_TENS   DATA_8_TENS, DATA_10(8)
#define DATA_10_TENS  DATA_9_TENS, DATA_10(9)
#define DATA_11_TENS  DATA_10_TENS, DATA_10(10)
#define DATA_12_TENS  DATA_11_TENS, DATA_10(11)

/* d += p * q (or d = p * q where accumulate is 0); asynchronous. */
template <int N, int TYPES> struct wgmma;

#define UNWRAP(...) __VA_ARGS__
#define WGMMA_TYPED(n, types, suffix, names, data, p_name, q_name, accumulate_name)                          \
    template <> struct wgmma<n, types> {                                                                     \
        static __device__ __forceinline__ void run(float *d, uint64_t p, uint64_t q, int accumulate)         \
        {                                                                                                    \
            asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " accumulate_name ", 0;\n"      \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32." suffix " {" names "}, " p_name    \
                         ", " q_name ", accumulate, 1, 1;\n}"                                                \
                         : UNWRAP data                                                                       \
                         : "l"(p), "l"(q), "r"(accumulate));                                                 \
        }                                                                                                    \
    };
#define WGMMA(n, names, data, p_name, q_name, accumulate_name)                                               \
    WGMMA_TYPED(n, FP8R_WGMMA_E4M3_E4M3, "e4m3.e4m3", names, data, p_name, q_name, accumulate_name)          \
    WGMMA_TYPED(n, FP8R_WGMMA_E4M3_E5M2, "e4m3.e5m2", names, data, p_name, q_name, accumulate_name)          \
    WGMMA_TYPED(n, FP8R_WGMMA_E5M2_E4M3, "e5m2.e4m3", names, data, p_name, q_name, accumulate_name)

/* clang-format off */
WGMMA(8, NAMES_4(), (DATA_4()), "%4", "%5", "%6")
WGMMA(16, NAMES_8(), (DATA_8()), "%8", "%9", "%10")
WGMMA(24, NAMES_1_TENS ", " NAMES_2(1), (DATA_1_TENS, DATA_2(1)), "%12", "%13", "%14")
WGMMA(32, NAMES_1_TENS ", " NAMES_6(1), (DATA_1_TENS, DATA_6(1)), "%16", "%17", "%18")
WGMMA(48, NAMES_2_TENS ", " NAMES_4(2), (DATA_2_TENS, DATA_4(2)), "%24", "%25", "%26")
WGMMA(64, NAMES_3_TENS ", " NAMES_2(3), (DATA_3_TENS, DATA_2(3)), "%32", "%33", "%34")
WGMMA(72, NAMES_3_TENS ", " NAMES_6(3), (DATA_3_TENS, DATA_6(3)), "%36", "%37", "%38")
WGMMA(80, NAMES_4_TENS, (DATA_4_TENS), "%40", "%41", "%42")
WGMMA(88, NAMES_4_TENS ", " NAMES_4(4), (DATA_4_TENS, DATA_4(4)), "%44", "%45", "%46")
WGMMA(96, NAMES_4_TENS ", " NAMES_8(4), (DATA_4_TENS, DATA_8(4)), "%48", "%49", "%50")
WGMMA(112, NAMES_5_TENS ", " NAMES_6(5), (DATA_5_TENS, DATA_6(5)), "%56", "%57", "%58")
WGMMA(128, NAMES_6_TENS ", " NAMES_4(6), (DATA_6_TENS, DATA_4(6)), "%64", "%65", "%66")
WGMMA(136, NAMES_6_TENS ", " NAMES_8(6), (DATA_6_TENS, DATA_8(6)), "%68", "%69", "%70")
WGMMA(144, NAMES_7_TENS ", " NAMES_2(7), (DATA_7_TENS, DATA_2(7)), "%72", "%73", "%74")
WGMMA(160, NAMES_8_TENS, (DATA_8_TENS), "%80", "%81", "%82")
WGMMA(176, NAMES_8_TENS ", " NAMES_8(8), (DATA_8_TENS, DATA_8(8)), "%88", "%89", "%90")
WGMMA(192, NAMES_9_TENS ", " NAMES_6(9), (DATA_9_TENS, DATA_6(9)), "%96", "%97", "%98")
WGMMA(224, NAMES_11_TENS ", " NAMES_2(11), (DATA_11_TENS, DATA_2(11)), "%112", "%113", "%114")
WGMMA(256, NAMES_12_TENS ", " NAMES_8(12), (DATA_12_TENS, DATA_8(12)), "%128", "%129", "%130")
/* clang-format on */

#undef WGMMA
#undef WGMMA_TYPED
#undef UNWRAP

#endif
