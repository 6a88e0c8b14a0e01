/* What samples say: medians and intervals of every candidate, a decision a problem, segments a family. Pure and
 * deterministic: the same samples give the same decisions, in whatever order they were taken or merged.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_ANALYSIS_H
#define TOOL_TUNE_ANALYSIS_H

#include "measure/sequential.h"
#include "tune/samples.h"

enum analysis_verdict {
    ANALYSIS_CLEAR, /* the chosen one is faster than the default by more than the margin, or is the default and that much
                       faster than the runner-up */
    ANALYSIS_TIE,   /* the default stays: nothing beats it by the margin */
    ANALYSIS_NOISY  /* the default stays: the times spread too much to say */
};

/* "clear", "tie", "noisy". */
const char *analysis_verdict_name(enum analysis_verdict verdict);

/* One candidate of one problem, over the samples of all phases of a tune. */
struct analysis_candidate {
    size_t count; /* 0: never measured; the rest is then 0 */
    double median_us, low_us, high_us; /* 95 % interval of the median */
};

/* One problem. */
struct analysis_point {
    const struct sample_case *it;
    struct analysis_candidate *candidates; /* owned; as many as it->count */
    int fastest;   /* by median; -1 where nothing was measured */
    int runner_up; /* fastest beside the chosen one; -1 where it is alone */
    int chosen;
    enum analysis_verdict verdict;
    int pairs;                     /* behind the verdict */
    double gain_low, gain_high;    /* interval of default time / chosen time */
};

/* One key: its points by ascending m. */
struct analysis_family {
    struct fp8r_key key;
    char text[FP8R_TEXT_BYTES];
    struct analysis_point *points; /* owned */
    size_t count;
    bool has_steps; /* of a GPU, whose kernels work in whole tiles */
};

struct analysis {
    struct analysis_family *families; /* owned; by fp8r_key_compare */
    size_t count;
};

/* Analyses the cases of one machine. Exit codes: bad data, internal. */
int analysis_init(const struct samples *samples, int machine, struct analysis *analysis, struct fp8r_tool_error *error);
void analysis_fini(struct analysis *analysis);

/* How many of its points are too noisy to say: the default stays there. */
size_t analysis_noisy(const struct analysis_family *family);

/* Is another candidate chosen at point i + 1 than at point i? */
bool analysis_is_switch(const struct analysis_family *family, size_t i);

/* Does anything that a route says change between points i and i + 1: the choice, the verdict, or whether the choice is the
 * default? */
bool analysis_is_border(const struct analysis_family *family, size_t i);

/* The last m that belongs to point i's side of the border behind it (fp8r_border_place). */
int64_t analysis_border(const struct analysis_family *family, size_t i);

/* The route file that the analysis amounts to, with the machine's header. Fini it. Exit codes: internal. */
int analysis_routes(const struct samples *samples, int machine, const struct analysis *analysis,
                    struct fp8r_route_file *file, struct fp8r_tool_error *error);

#endif
