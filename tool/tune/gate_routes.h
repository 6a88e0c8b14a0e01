/* The routes of a file as the gate takes them: which are measured, in which order, at which M, and what came
 * of it. Pure: measures nothing. SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_GATE_ROUTES_H
#define TOOL_TUNE_GATE_ROUTES_H

#include "measure/sequential.h"
#include "tune/families.h"
#include "tune/route_check.h"

enum {
    GATE_RIVALS = 2, /* runner-up and default */
    GATE_POINTS = 3  /* both borders and the middle */
};

/* The larger is the worse. */
enum gate_verdict {
    GATE_LEFT,         /* the budget ended before */
    GATE_FINE,         /* not slower than a rival by the margin */
    GATE_UNMEASURED,   /* cannot be run here */
    GATE_INCONCLUSIVE, /* the noise is wider than the question */
    GATE_REGRESSION,   /* a rival is faster by more than the margin, or the result is wrong */
    GATE_VERDICTS
};

/* "left", "fine", "unmeasured", "inconclusive", "regression". */
const char *gate_verdict_name(enum gate_verdict verdict);

/* The chosen one against a rival at one M; the ratio is chosen time / rival's time. */
struct gate_comparison {
    char label[FP8R_LABEL_BYTES];
    bool is_runner_up, is_default; /* may be both */
    double median_us;
    struct fp8r_paired_result result;
};

struct gate_point {
    int64_t m;
    enum gate_verdict verdict;
    double median_us; /* of the chosen one; 0 = it did not race */
    struct gate_comparison against[GATE_RIVALS];
    int count;
};

/* One segment of the file. */
struct gate_route {
    const struct fp8r_entry *entry; /* the file's */
    const struct fp8r_segment *segment;
    char family[FP8R_FAMILY_BYTES], label[FP8R_LABEL_BYTES];
    bool is_stale;
    uint64_t lot, entry_lot; /* drawn by the seed: what decides who is measured, and when */
    enum gate_verdict verdict;
    char why[512]; /* of a verdict that the numbers do not say: "unmeasured", a wrong result */
    struct gate_point points[GATE_POINTS];
    int point_count;
};

struct gate_routes {
    struct gate_route *items; /* owned; in the order of measuring */
    size_t count;             /* those that are to be measured */
    size_t all;               /* of the file */
    size_t stale;             /* of the families and shard that are wanted */
};

/* Which routes of a file: a share of those of some families that are dealt to a shard. */
struct gate_wanted {
    const struct fp8r_tune_families *families; /* without any: all */
    int shard, shards;                         /* 1 <= shard <= shards: every so many families */
    double share;                              /* 0 to 1, at least one route */
};

/* Lists those wanted: stale ones first, then drawn by the seed; routes of one entry follow each other. Routes that would
 * miss are listed as unmeasured, with the finding. The lists point into the file. Exit codes: INTERNAL; USAGE where the
 * file has no entry of a family. */
int gate_routes_init(const struct fp8r_route_file *file, const struct fp8r_table_report *report,
                     const struct gate_wanted *wanted, uint64_t seed, struct gate_routes *routes,
                     struct fp8r_tool_error *error);
void gate_routes_fini(struct gate_routes *routes);

/* What one point's comparisons amount to. */
enum gate_verdict gate_point_verdict(const struct gate_point *point);

/* The comparison by which the chosen one stands worst (the larger verdict, then the larger ratio), and its
 * point; NULL where nothing was compared. */
const struct gate_comparison *gate_route_worst(const struct gate_route *route, const struct gate_point **at);

/* For qsort: the worst first. */
int gate_route_compare(const void *a, const void *b);

/* The exit code that the routes amount to: FAILED, INCONCLUSIVE, UNMEASURED or GOOD; UNMEASURED also where
 * nothing was. */
int gate_routes_exit(const struct gate_routes *routes);

#endif
