/* An H200 made by hand: what is asked about it needs none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_H200_H
#define FP8R_TESTS_SUPPORT_H200_H

#include <fp8route/backend.h>

static const fp8r_device_facts h200 = {.struct_size = sizeof h200,
                                       .kind = FP8R_DEVICE_CUDA,
                                       .arch = 90,
                                       .sm_count = 132,
                                       .driver = 13000,
                                       .l2_bytes = 60 << 20,
                                       .last_level_bytes = 60 << 20,
                                       .bandwidth_gbs = 4917};

#endif

