/* What the tests of routes share: a route file's text, and the identity it belongs to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_SAMPLE_H
#define FP8R_ROUTE_SAMPLE_H

#include <string.h>

#include "problem/grammar.h"
#include "route/route_file.h"

#define SAMPLE_HEADER                                                                                                  \
    "fp8route-routes 1\n"                                                                                              \
    "device cpu\n"                                                                                                     \
    "identity features=avx2+fma+f16c+avx512 threads=2 llc_bytes=272629760\n"                                           \
    "library blas \"openblas 0.3.21\"\n"                                                                               \
    "fact name \"A \\\"fine\\\" processor\"\n"                                                                         \
    "fact date \"2026-11-29\"\n"
#define SAMPLE_FULL "protocol full mode=eager operands=cold\n"
#define SAMPLE_SEGMENT                                                                                                 \
    "  m=1..16 backend=cpu config=avx512_skinny rev=0123456789ab median_us=812.4 runner_up=blas:sgemm "                \
    "runner_up_us=9120 gain=10.9..11.6 verdict=clear\n"
#define SAMPLE_BODY                                                                                                    \
    "\nentry Mx4096x14336\n" SAMPLE_SEGMENT                                                                            \
    "  m=17..64 at=17,32,64 backend=blas config=sgemm rev=\"\" median_us=0.00081243 rival=cpu:x rival_us=0.5 "         \
    "rival_gain=0.99..1.25 verdict=tie\n"                                                                              \
    "  m=128..9223372036854775807 backend=blas config=sgemm rev=\"a b\" median_us=123457000 gain=1..1.02 verdict=tie\n" \
    "\nentry 16*Mx512x128:fp16:tensor\n"                                                                               \
    "  m=1..1 backend=reference config=plain rev=1 median_us=1 verdict=clear\n"                                        \
    "\nend entries=2\n"
#define SAMPLE_TEXT SAMPLE_HEADER SAMPLE_FULL SAMPLE_BODY

static inline struct fp8r_identity sample_identity(void)
{
    struct fp8r_identity identity = {.kind = FP8R_DEVICE_CPU,
                                     .cpu_features = FP8R_CPU_AVX2 | FP8R_CPU_FMA | FP8R_CPU_F16C | FP8R_CPU_AVX512,
                                     .threads = 2,
                                     .last_level_bytes = 272629760,
                                     .library_count = 1,
                                     .libraries = {{"blas", "openblas 0.3.30"}}};
    return identity;
}

static inline fp8r_status sample_parse(const char *text, struct fp8r_route_file *file)
{
    return fp8r_route_file_parse("sample", text, strlen(text), file);
}

#endif
