/* Between the sm90 files: tensor maps by what they are encoded from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_MAP_CACHE_H
#define FP8R_SM90_MAP_CACHE_H

#include <cuda.h>
#include <stdbool.h>

/* All that differs between the maps of this backend: bytes from `data`, `rank` axes of so many elements, bytes from one
 * element of each but the first axis to the next, elements of a box. What is behind the last axis is 0. */
struct fp8r_sm90_map_form {
    const void *data;
    cuuint64_t extents[5], pitches[4];
    cuuint32_t box[5], rank;
};

/* The form's map, from the cache or the driver's cuTensorMapEncodeTiled, which is pure: the same form has the same map,
 * whatever lies at the address by now. Any thread. False: the driver refuses. */
bool fp8r_sm90_map_get(void *encode, const struct fp8r_sm90_map_form *form, CUtensorMap *map);

#endif
