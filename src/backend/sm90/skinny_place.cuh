/* What a block of the skinny family has of a product: rows of b, segments of K, and of the sums that segments
 * leave those that it adds up. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_SKINNY_PLACE_CUH
#define FP8R_SM90_SKINNY_PLACE_CUH

#include "backend/sm90/mainloop.cuh"

/* A block's place: which part of the product is its own. */
struct skinny_place {
    int batch, n;     /* first row of b */
    int segment;      /* its first segment of K */
    int rounds;       /* stages of its longest segment */
    int first_rounds; /* those of the ring's first turn */
    int k_rank;
};

/* The grid is blocks of a cluster x clusters along N x batch. */
FP8R_DEVICE struct skinny_place skinny_locate(const struct fp8r_sm90_args *args)
{
    struct skinny_place place;
    place.k_rank = blockIdx.x;
    place.batch = blockIdx.z;
    place.n = blockIdx.y * args->rows;
    place.segment = place.k_rank * args->inner;
    place.rounds = args->rounds[place.k_rank];
    place.first_rounds = args->first_rounds[place.k_rank];
    return place;
}

/* The stages of segment `inner` of the block: they are loaded in rounds, one of each segment. */
FP8R_DEVICE struct stride skinny_stride(const struct fp8r_sm90_args *args, const struct skinny_place *place,
                                        int inner)
{
    struct stride stride;
    stride.blocks = args->segment[place->segment + inner + 1] - args->segment[place->segment + inner];
    stride.turn = args->ring_rounds;
    int rest;
    stride.releases = divide(stride.blocks + args->depth - 1, &args->by_depth, &rest) - args->ring_rounds;
    return stride;
}

/* Units of the reduction: fragments of 16 columns x 8 rows of out, 512 bytes a segment. Unit u is added up by
 * rank u % split, as its unit u / split. */
FP8R_DEVICE int skinny_units(const struct fp8r_sm90_args *args)
{
    return (args->rows + 15) / 16 * ((args->m + 7) / 8);
}

FP8R_DEVICE int skinny_owned_units(const struct fp8r_sm90_args *args, int rank)
{
    int rest;
    const int each = divide(skinny_units(args), &args->by_split, &rest);
    return each + (rank < rest);
}

template <int TOKENS> FP8R_DEVICE constexpr bool skinny_few()
{
    return TOKENS <= FP8R_SM90_SKINNY_COUNTED_TOKENS;
}

#endif
