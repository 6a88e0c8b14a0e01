/* The quick protocol: a grid over M, nothing else. Every entrant is verified, then raced in interleaved
 * rounds; the winner replaces the default only where the whole interval of the paired ratio clears the
 * margin. Knows no files. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_QUICK_H
#define FP8R_QUICK_H

#include "measure/rotation.h"
#include "tune/families.h"
#include "tune/points.h"

/* What a protocol says while it works. Borrowed for the call. */
struct fp8r_progress {
    const char *family;
    int64_t m;
    double share;        /* of all work, 0 to 1 */
    double left_seconds; /* about; 0 where nothing is known of it */
};

struct fp8r_quick {
    fp8r_context *context; /* without routes */
    const struct fp8r_measure_device *device;
    struct fp8r_rotation rotation;
    uint64_t seed;
    double margin;     /* 0.02: less is not worth a change */
    bool ms_are_given; /* measure each M however long it takes */
    void (*progress)(void *user, const struct fp8r_progress *progress);
    void (*note)(void *user, const char *line); /* something that a person should know, e.g. a wrong result */
    void *user;
    double done_seconds, all_seconds; /* by the plan of FP8R_QUICK_CANDIDATE_MS */
};

/* Measures a family. points must be empty; it has a point for each M that was measured, and perhaps none.
 * Exit codes: INTERRUPTED, UNMEASURED, INTERNAL; also FAILED where an entrant's result was wrong (the others
 * were measured). */
int fp8r_quick_measure(struct fp8r_quick *quick, const struct fp8r_tune_family *family,
                       struct fp8r_points *points, struct fp8r_tool_error *error);

#endif
