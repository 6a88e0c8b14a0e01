/* Can one backend replace another? Equal bits over several inputs, and times in pairs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_COMPARE_H
#define TOOL_TUNE_COMPARE_H

#include "measure/measure_device.h"
#include "measure/rotation.h"
#include "measure/sequential.h"
#include "route/table.h"
#include "problem/grammar.h"
#include "tune/bits.h"

struct compare {
    fp8r_context *context;
    const struct fp8r_measure_device *device;
    const char *a, *b; /* backend or backend:config; b is to replace a */
    uint64_t seed;
    double margin;
    bool wants_bits, wants_time;
    struct fp8r_rotation rotation; /* zero; compare_fini */
};

/* One product. */
struct compare_case {
    char problem[FP8R_TEXT_BYTES];
    char a[FP8R_LABEL_BYTES],
        b[FP8R_LABEL_BYTES]; /* with the configuration that ran; "" where it was refused */
    char refusal[512];       /* why one of them cannot run it; then the rest is 0 */
    int inputs;              /* sets of operands that were compared, the last one with NaN codes */
    struct bits_difference bits;
    double a_us, b_us;              /* medians */
    struct fp8r_paired_result time; /* ratio b's time / a's; FP8R_PAIRED_GO_ON: was not timed */
};

enum compare_pace { COMPARE_UNTIMED, COMPARE_FASTER, COMPARE_AS_FAST, COMPARE_INCONCLUSIVE, COMPARE_SLOWER };

/* b beside a: FASTER where the whole interval is, by the margin. */
enum compare_pace compare_pace_of(const struct compare_case *it, double margin);

/* "untimed", "faster", "not slower", "inconclusive", "slower". */
const char *compare_pace_name(enum compare_pace pace);

/* FAILED (differs or slower), INCONCLUSIVE, UNMEASURED (refused) or GOOD. */
int compare_case_exit(const struct compare_case *it, double margin);

/* Compares on one product (without data). Exit codes: USAGE for a name that is unknown, INTERRUPTED,
 * UNMEASURED when the device fails, INTERNAL. What is found is no error. */
int compare_run(struct compare *compare, const fp8r_matmul *matmul, struct compare_case *it,
                struct fp8r_tool_error *error);
void compare_fini(struct compare *compare);

#endif
