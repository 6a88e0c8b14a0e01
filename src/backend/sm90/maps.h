/* Between the sm90 files: tensor maps. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_MAPS_H
#define FP8R_SM90_MAPS_H

#include "backend/sm90/args.h"
#include "backend/sm90/sm90.h"

/* Fills args' maps, whose rows_a and flags are set. False: the driver refuses an operand. */
bool fp8r_sm90_fill_maps(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                         const fp8r_problem *problem, const fp8r_pointers *pointers, const void *workspace,
                         struct fp8r_sm90_args *args);

/* That of b alone. */
bool fp8r_sm90_fill_map_b(const struct fp8r_sm90_plan *plan, const struct fp8r_sm90_shape *shape,
                          const fp8r_problem *problem, const fp8r_pointers *pointers, struct fp8r_sm90_args *args);

#endif
