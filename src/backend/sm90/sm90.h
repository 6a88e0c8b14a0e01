/* The Hopper kernels as plain functions: which configurations there are, which problems they take, what they
 * would pick, and preparing and launching one. Knows the device only through its facts and, in prepare, the
 * occupancy of clusters. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SM90_H
#define FP8R_SM90_SM90_H

#include <stdbool.h>

#include <fp8route/backend.h>

#include "backend/sm90/args.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fp8r_sm90_family { FP8R_SM90_SKINNY, FP8R_SM90_WIDE };

struct fp8r_sm90_config {
    const char *name; /* stable */
    enum fp8r_sm90_family family;
    int split;            /* blocks of a cluster that take a part of K each */
    int share_m, share_n; /* wide: blocks along M, N that share tiles by multicast */
    int inner;            /* skinny: segments of K a block; split * inner is part of the numerics class */
    int cut,
        room; /* skinny: blocks a multiprocessor that the work is cut for, that shared memory is left for */
    int groups, tiles, columns; /* wide: the tile, see wide.cuh */
    bool alternate;             /* wide: warpgroups make tiles of their own, in turns */
    int tokens;                 /* wide: rows of a on the narrow side, where operands are swapped */
    bool shifted;               /* wide, swapped: rows of b by eights, rows of a copied in front */
    bool packed;                /* wide: rows of any pitch from any address, without the copy engine */
};

/* All configurations; an index below means these. */
extern const struct fp8r_sm90_config fp8r_sm90_configs[];
extern const int fp8r_sm90_config_count;

/* Can the configuration run the problem? A no fills the reason. */
bool fp8r_sm90_supports(const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                        fp8r_reason *reason);

/* The numerics class: accumulation and split of K; where it must not depend on M, a function of N and K only.
 */
const char *fp8r_sm90_class(const fp8r_device_facts *device, const fp8r_problem *problem, int config);

/* What a model of the device expects of a configuration that takes the problem. */
double fp8r_sm90_expected_us(const fp8r_device_facts *device, const fp8r_problem *problem, int config);

/* What the model multiplies a configuration's expected time by, or parts of it; one for each, in their order. */
struct fp8r_sm90_factor {
    const char *name;
    double times, walk, ends, by_k, by_m, by_n;
};
const struct fp8r_sm90_factor *fp8r_sm90_factors(int *count);

/* The configuration that the model expects to be fastest; -1: none takes the problem. */
int fp8r_sm90_pick(const fp8r_device_facts *device, const fp8r_problem *problem);

/* One way to cut the product, for products of up to m_max rows. */
struct fp8r_sm90_shape {
    const void *kernel;
    void *function; /* the driver's name for it; once prepared */
    int32_t m_max;
    int32_t rows_a, rows_b; /* of a box that the copy engine loads */
    int32_t rows;           /* skinny: rows of b a block */
    int32_t depth;          /* skinny: blocks of K a stage */
    int32_t weight_bytes;   /* skinny: of one block of K in shared memory */
    int32_t threads, shared_bytes, cluster, clusters_resident;
    bool receive_in_stages; /* skinny: partial sums take the place of the stages, after one more barrier */
    int32_t stages, stage_bytes, receive_offset, scales_offset, barriers_offset;
    int32_t tokens_offset, halves_offset; /* skinny, quantising: codes, behind the stages; rows */
    int32_t halves_rows;                  /* that there is room for; 0: none are quantised */
    int32_t tile_m, tile_n; /* rows and columns of out that one cluster makes */
    int32_t raster;
};

enum { FP8R_SM90_SHAPES_MAX = 12 };

/* A configuration made ready for a family of problems: plain data, nothing to destroy. */
struct fp8r_sm90_plan {
    const struct fp8r_sm90_config *config;
    fp8r_problem problem;
    bool dependent_launch; /* start while the kernel before runs out (programmatic dependent launch); default
                              true */
    int shape_count;
    struct fp8r_sm90_shape shapes[FP8R_SM90_SHAPES_MAX]; /* by m_max, ascending */
    void *encode, *start;                                /* the driver's: tensor maps, launches */
    int sm_count;
    void *copy;                                          /* the driver's name of the kernel that copies rows of a */
    struct fp8r_sm90_shape halves;                       /* of few tokens quantised by the product; kernel NULL: none */
    struct fp8r_sm90_args fixed_halves;
    struct fp8r_sm90_args fixed[FP8R_SM90_SHAPES_MAX];   /* each shape's arguments, but for rows and addresses; last, as
                                                            only shape_count of them need to be there */
};

/* Room for a plan of so many shapes, aligned as its tensor maps want it, which is more than malloc gives. free() it; NULL:
 * out of memory. */
struct fp8r_sm90_plan *fp8r_sm90_plan_new(int shape_count);

/* Moves a plan from plan_new to room for just the shapes that it has. Where memory is short it stays. */
struct fp8r_sm90_plan *fp8r_sm90_plan_shorten(struct fp8r_sm90_plan *plan);

/* Needs the device to be current. Errors: UNSUPPORTED, DEVICE. */
fp8r_status fp8r_sm90_prepare(const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                              struct fp8r_sm90_plan *plan);

/* Makes the plan ready for few rows of `a` in bf16 or fp16, too, which its kernel quantises itself, where there is such a
 * kernel and it fits. The plan's problem has them quantised. Needs the device to be current. */
void fp8r_sm90_prepare_halves(const fp8r_device_facts *device, const fp8r_operand *a, struct fp8r_sm90_plan *plan);

/* Does launch_halves take them? problem: as for launch; a, data: bf16 or fp16, as prepared, and their address. */
bool fp8r_sm90_takes_halves(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem, const fp8r_operand *a,
                            const void *data);

/* As launch, of pointers->a in place of quantised rows and their scales; without workspace. Errors: DEVICE. */
fp8r_status fp8r_sm90_launch_halves(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                                    const fp8r_operand *a, const fp8r_pointers *pointers, void *stream);

/* Bytes that a launch needs beside its operands; 0: none. */
size_t fp8r_sm90_workspace(const fp8r_problem *problem, int config);

/* Queues the product. problem: as prepared, but for m (1 .. prepared) and batch strides. workspace: as many
 * bytes as the problem needs, aligned to 256. Allocates nothing, does not synchronise, may be captured. Errors: DEVICE. */
fp8r_status fp8r_sm90_launch(const struct fp8r_sm90_plan *plan, const fp8r_problem *problem,
                             const fp8r_pointers *pointers, void *workspace, void *stream);

#ifdef __cplusplus
}
#endif
#endif
