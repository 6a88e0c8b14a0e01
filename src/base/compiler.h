/* Compiler and architecture tests, the only ones outside of the tops of ISA files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_COMPILER_H
#define FP8R_BASE_COMPILER_H

#if defined(__x86_64__)
#define FP8R_X86_64 1
#else
#define FP8R_X86_64 0
#endif

#if defined(__aarch64__)
#define FP8R_AARCH64 1
#else
#define FP8R_AARCH64 0
#endif

/* A function for what hardly ever happens: its callers keep such paths out of the lines of code that always run. */
#define FP8R_COLD __attribute__((cold))

/* The same for a condition that nearly always holds, where the compiler guesses otherwise. */
#define FP8R_LIKELY(condition) __builtin_expect((condition), 1)

#define FP8R_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))

/* Tells the processor that this is a spin loop. */
static inline void fp8r_spin_hint(void)
{
#if FP8R_X86_64
    __builtin_ia32_pause();
#elif FP8R_AARCH64
    __asm__ volatile("yield");
#endif
}

#define FP8R_TRY(expression)                                                                                           \
    do {                                                                                                               \
        fp8r_status try_status_ = (expression);                                                                        \
        if (try_status_ != FP8R_OK)                                                                                    \
            return try_status_;                                                                                        \
    } while (0)

#endif
