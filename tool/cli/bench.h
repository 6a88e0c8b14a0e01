/* What `fp8route bench` measures and prints.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BENCH_H
#define FP8R_BENCH_H

#include "cli/progress.h"
#include "cli/session.h"
#include "measure/statistics.h"
#include "tune/case_list.h"
#include "tune/contest.h"

/* Operands rotate over this many times the last-level cache. */
enum { FP8R_BENCH_CACHE_FACTOR = 4 };

struct bench_arguments {
    struct fp8r_common common;
    const char *cases;
    int64_t seed;
    double seconds;
};

/* One racer's times. */
struct bench_row {
    enum fp8r_standing standing;
    double median_us;
    struct fp8r_interval interval;
    int samples;
    char why[256];
};

struct bench {
    const struct bench_arguments *arguments;
    struct fp8r_session session;
    struct fp8r_measure_device device;
    struct fp8r_rotation rotation;
    struct fp8r_points entrants; /* the list alone */
    const char **problems;
    size_t problem_count;
    struct fp8r_case_list list;
    struct bench_row *rows; /* problem after problem, one an entrant */
    int *chosen;            /* what the routes would choose, an entrant's index; -1 */
    struct fp8r_progress_line line;
};

/* Both print to standard output and return an exit code. */
int fp8r_bench_print_text(const struct bench *bench, struct fp8r_tool_error *error);
int fp8r_bench_print_json(const struct bench *bench, struct fp8r_tool_error *error);

#endif
