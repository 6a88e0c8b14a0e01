/* What a launch hands to the kernel that copies rows of a. Shared by host and device code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_COPY_ARGS_H
#define FP8R_SM90_COPY_ARGS_H

#include <stdint.h>

struct fp8r_sm90_copy_args {
    const uint8_t *from, *end; /* end: behind the operand's last byte */
    uint8_t *to;
    int64_t row, batch; /* bytes from one row, one matrix to the next */
    int64_t to_batch;
    int32_t to_row;
    int32_t k, rows;
    int32_t items; /* matrices */
};

#endif
