/* Between the sm90 files: how a configuration is cut for a problem.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SHAPES_H
#define FP8R_SM90_SHAPES_H

#include "backend/sm90/sm90.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Largest M that a skinny configuration takes; 0: none. */
int fp8r_sm90_skinny_widest(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* The split of K that every M of an (N, K) uses in batch-invariant mode. */
int fp8r_sm90_invariant_split(int64_t n, int64_t k);

/* Parts of K that a wide kernel without a split must keep apart to stay in the family's class; 0: none. */
int fp8r_sm90_segments(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* Does it need a kernel with promoted accumulation? */
bool fp8r_sm90_promotes(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* The kernel of a wide configuration; NULL: there is none for the problem's types and accumulation. */
const void *fp8r_sm90_wide_kernel(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* Can its tiles of out be stored 16 bytes at a time, b's rows in an order of their own? */
bool fp8r_sm90_interleaves(const struct fp8r_sm90_config *config, const fp8r_problem *problem);

/* Do both operands lie as the copy engine wants them, so that kernels that use it take the problem? */
bool fp8r_sm90_takes_maps(const fp8r_problem *problem);

/* Rows of a wide configuration's tile. */
int fp8r_sm90_tile_rows(const struct fp8r_sm90_config *config);

/* How many clusters of `size` blocks of this kernel the device holds at once; 0: none, or the device failed.
 */
int fp8r_sm90_clusters_resident(const void *kernel, int threads, int shared_bytes, int size);

/* Fills the shape for products of more than the previous shape's and up to shape->m_max rows. False: it does
 * not fit. clusters_resident is asked where the shape depends on it. */
bool fp8r_sm90_shape_skinny(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                            const fp8r_problem *problem, int tokens, struct fp8r_sm90_shape *shape);
/* The same for the few tokens of bf16 or fp16 that a block quantises itself. */
bool fp8r_sm90_shape_halves(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                            const fp8r_problem *problem, bool bf16, struct fp8r_sm90_shape *shape);
bool fp8r_sm90_shape_wide(const fp8r_device_facts *device, const struct fp8r_sm90_config *config,
                          const fp8r_problem *problem, struct fp8r_sm90_shape *shape);

/* Rows a block and places in shared memory for `clusters` clusters at a time. Returns in how many turns those
 * take all of N; 0: it does not fit. No device call. */
int fp8r_sm90_cut_skinny(const struct fp8r_sm90_config *config, const fp8r_problem *problem, int tokens,
                         int clusters, struct fp8r_sm90_shape *shape);

/* Width of the skinny kernel for m rows; 0: none. */
int fp8r_sm90_skinny_tokens(int64_t m, bool promote);

#ifdef __cplusplus
}
#endif
#endif
