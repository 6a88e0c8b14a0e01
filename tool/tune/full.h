/* The full protocol: a grid over M, borders by bisection, confirmation of every winner against the default. Resumable: it
 * looks at what the record holds and measures what is missing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_FULL_H
#define TOOL_TUNE_FULL_H

#include "measure/rotation.h"
#include "tune/families.h"
#include "tune/quick.h"
#include "tune/record.h"

struct full {
    fp8r_context *context; /* without routes */
    const struct fp8r_measure_device *device;
    struct record *record;
    uint64_t seed;
    double margin;
    bool is_warm; /* operands are not rotated out of the caches */
    int shard, shards;      /* this process measures problems dealt to shard 1..shards */
    double budget_seconds;  /* no further problem is begun behind this; 0 = no limit */
    void (*progress)(void *user, const struct fp8r_progress *progress);
    void (*note)(void *user, const char *line);
    void *user;
    /* What was done. */
    size_t problems, measured, left; /* of this shard: all, measured by this call, not begun */
    size_t waiting; /* borders that need other shards' results first */
    bool is_wrong;  /* some result was wrong */
    bool *is_measured; /* of each family: did this call time anything of it? the caller's, zeroed */
    size_t finished;    /* problems of the grids of families that are through */
    double share_found; /* of all work, what the record held when this call showed its first progress; below 0 before */
    struct fp8r_rotation rotation;
    int64_t start_ns, timed_ns; /* when it began; timed work since */
    double seconds;              /* what all took */
};

/* Measures the families. Exit codes: BAD_DATA (the record holds times of other revisions of backends, and nothing is
 * measured), INTERRUPTED (what was measured is in the record), UNMEASURED, INTERNAL. Reaching the
 * budget is GOOD, with `left` saying how much. */
int full_tune(struct full *full, const struct fp8r_tune_families *families, struct fp8r_tool_error *error);

#endif
