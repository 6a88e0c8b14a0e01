/* Between the sm90 files: rows of b by eights, and the copy of a in front.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_EIGHTS_H
#define FP8R_SM90_EIGHTS_H

#include "backend/sm90/map_cache.h"
#include "backend/sm90/sm90.h"

/* Do those that multiply fetch a, in words? */
bool fp8r_sm90_gathers(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* Is a copied into workspace? */
bool fp8r_sm90_copies(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* Bytes from one row of the copy to the next. */
int64_t fp8r_sm90_copy_pitch(const fp8r_problem *problem);

/* Queues the copy into workspace, if there is one. Errors: DEVICE. */
fp8r_status fp8r_sm90_copy(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                           const fp8r_pointers *pointers, void *workspace, void *stream);

/* A map of b for boxes of box_rows rows: those of each class of eight together, which begins in front of its rows, by up to
 * 112 bytes (shifted.cuh). */
struct fp8r_sm90_map_form fp8r_sm90_eights_form(const fp8r_problem *problem, const void *b, int box_rows);

#endif
