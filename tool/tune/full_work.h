/* A family under way, between the files of the full protocol: what its phases share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_FULL_WORK_H
#define TOOL_TUNE_FULL_WORK_H

#include "tune/full.h"
#include "tune/recorded_race.h"

struct work {
    struct full *full;
    const struct fp8r_tune_family *family;
    const int *shard_of; /* of the family's problems */
    struct fp8r_points entrants;
    struct fp8r_inputs inputs;
    struct race_track track;
    const char **only; /* room for all entrants and a NULL */
    double *scratch; /* as many as any candidate has samples here */
    size_t scratch_count;
    size_t grid_done; /* this shard's problems of its grid, measured or found in the record */
};

/* Rounds of a grid or a border on a device that replays recordings. */
enum { RECORDED_ROUNDS = 7 };

/* NULL where the problem was not met yet. */
const struct sample_case *work_find_case(const struct work *work, const char *problem);

/* The family's product of m rows, and its text. */
int work_member(const struct work *work, int64_t m, fp8r_matmul *member, char problem[FP8R_TEXT_BYTES],
                struct fp8r_tool_error *error);

/* The median of a candidate's times in the tuning phases but the confirming one; INFINITY where there is none, or its result was
 * ever wrong. */
double work_median(struct work *work, const struct sample_candidate *it);

/* The fastest candidate; the default where it comes within the margin. -1 where nothing was measured. */
int work_winner(struct work *work, const struct sample_case *it);

/* Do the winner's and the default's times hold still, or at least the one as a multiple of the other? */
bool work_is_steady(struct work *work, const struct sample_case *it);

/* Who is dropped as being behind. */
void work_set_factors(const struct work *work, struct race_rules *rules);

int work_race(struct work *work, struct race_rules *rules, const char *problem, const fp8r_matmul *member, size_t *index,
              struct fp8r_tool_error *error);

bool work_is_over(const struct full *full);
void work_show(struct work *work, const char *phase, int64_t m);

/* The family's finished cases by m: new array of indices (free it), NULL when out of memory. */
size_t *work_finished(const struct work *work, size_t *count);

/* Which shard halves the interval that begins at m: the one of the grid problem at or below it. */
bool work_is_own_border(const struct work *work, int64_t m);

/* Halves the intervals between different winners. */
int work_borders(struct work *work, struct fp8r_tool_error *error);

/* Holds those who lead a problem's grid against the default, problem by problem. */
int work_confirmations(struct work *work, struct fp8r_tool_error *error);

#endif
