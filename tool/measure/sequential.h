/* The decision between two alternatives from paired times: looks after 30, 45, 60, 90 and 120 pairs, an
 * interval of the median ratio that may be looked at five times, one verdict. Pure: the same pairs give the
 * same verdict, whenever and however often it is asked for. Knows nothing of clocks, problems or backends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SEQUENTIAL_H
#define FP8R_SEQUENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "tool_error.h"

#define FP8R_SEQUENTIAL_LOOKS 5

/* Two times of one problem, taken next to each other in random order, so that drift of the machine falls on
 * both. */
struct fp8r_pair {
    double base_us;  /* tune: the default; gate: the chosen backend */
    double other_us; /* tune: the candidate; gate: the runner-up or the default */
};

enum fp8r_paired_verdict {
    FP8R_PAIRED_GO_ON = 0,    /* more pairs are wanted */
    FP8R_PAIRED_CLEAR,        /* tune: the whole interval is above the margin */
    FP8R_PAIRED_TIE,          /* tune: it is not, and the interval is narrow enough to say so */
    FP8R_PAIRED_NOISY,        /* tune: the interval is too wide to say anything; keep the default */
    FP8R_PAIRED_REGRESSION,   /* gate: the other one is faster by more than the margin */
    FP8R_PAIRED_FINE,         /* gate: surely not */
    FP8R_PAIRED_INCONCLUSIVE, /* gate: the interval holds both answers */
    FP8R_PAIRED_VERDICTS
};

enum fp8r_sequential_kind { FP8R_SEQUENTIAL_TUNE, FP8R_SEQUENTIAL_GATE };

/* Start from fp8r_sequential_defaults. */
struct fp8r_sequential_options {
    enum fp8r_sequential_kind kind;
    double margin;    /* 0.02: less than 2 % is not worth a change */
    double error;     /* chance of a wrong verdict on either side, over all looks and all candidates */
    double width_max; /* tune: an interval wider than this at the last look is noise; in units of the ratio */
    int candidates;   /* share error between so many comparisons of one problem */
    int pairs_max;    /* the last look, one of the looks above; 120 */
};

struct fp8r_sequential {
    struct fp8r_sequential_options options;
    int look_count;
    int looks[FP8R_SEQUENTIAL_LOOKS];    /* pairs at each look, ascending */
    int critical[FP8R_SEQUENTIAL_LOOKS]; /* the interval's lower end at a look is the largest value that has
                                            at least so many ratios at or above it */
    double spent[FP8R_SEQUENTIAL_LOOKS]; /* error of one side used up by this look and the ones before */
};

struct fp8r_paired_result {
    enum fp8r_paired_verdict verdict;
    int pairs; /* what the numbers below are from: the deciding look, or the last one reached; 0: none was */
    int pairs_next;   /* FP8R_PAIRED_GO_ON: how many there must be for the next look; otherwise 0 */
    double ratio;     /* median of base / other: 1.05 says that the other one is 5 % faster */
    double low, high; /* its interval; 0 and INFINITY where so few pairs bound nothing */
    double inflation; /* of the variance, by neighbouring pairs that resemble each other; 1: independent */
};

/* margin 2 %, one candidate, 120 pairs. Error 3 % a side in a tune: by simulation, what is left of 5 % covers
 * that the inflation is estimated (tests/tool/sequential_simulation.h). Equal backends are a whole margin
 * away from a gate's alarm, so that its 1.5 % flags far fewer than one in a hundred, and is lenient enough to
 * end early. */
struct fp8r_sequential_options fp8r_sequential_defaults(enum fp8r_sequential_kind kind);

/* FP8R_EXIT_USAGE for options out of range: margin and width_max in (0, 1), error in (0, 0.5), candidates
 * >= 1. */
int fp8r_sequential_init(struct fp8r_sequential *sequential, const struct fp8r_sequential_options *options,
                         struct fp8r_tool_error *error);

/* The verdict on count pairs in the order they were taken. Looks after the deciding one are not taken, pairs
 * past the last look reached are not read: a longer record never changes a verdict. FP8R_EXIT_BAD_DATA for a
 * time that is not a positive number. */
int fp8r_sequential_decide(const struct fp8r_sequential *sequential, const struct fp8r_pair *pairs,
                           size_t count, struct fp8r_paired_result *result, struct fp8r_tool_error *error);

/* "go-on", "clear", "tie", "noisy", "regression", "fine", "inconclusive". */
const char *fp8r_paired_verdict_name(enum fp8r_paired_verdict verdict);

#endif
