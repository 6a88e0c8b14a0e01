/* From sample files to a route file: which machine's samples, and what they amount to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_BUILD_H
#define FP8R_ROUTE_BUILD_H

#include "tune/samples.h"

/* One line of what a header's times are true for: "cpu features=avx2+fma threads=2 llc_bytes=33554432, blas openblas
 * 0.3.21, full eager cold". */
enum { FP8R_HEADER_BYTES = 1024 };
void fp8r_header_describe(const struct fp8r_route_file *header, char text[FP8R_HEADER_BYTES]);

/* The machine to build for: the only one with a finished case, or the wanted-th of those (from 1, by their lines; 0: not
 * said). Exit codes: UNMEASURED where no case is finished, BAD_DATA where there are several and none is wanted (the line
 * names them), USAGE, INTERNAL. */
int fp8r_build_choose(const struct samples *samples, int64_t wanted, int *machine, struct fp8r_tool_error *error);

struct fp8r_build_summary {
    int runs;                        /* of this machine, gates and audits too */
    size_t families, segments;
    size_t cases, noisy, unfinished; /* noisy: kept at the default; unfinished: left out */
    size_t outside;                  /* problems of a gate or an audit that no tune measured: left out */
    size_t samples;                  /* of finished cases, whoever took them */
};

/* The route file of that machine's samples. Fini it. Exit codes: BAD_DATA, UNMEASURED, INTERNAL. */
int fp8r_build_routes(const struct samples *samples, int machine, struct fp8r_route_file *file,
                      struct fp8r_build_summary *summary, struct fp8r_tool_error *error);

#endif
