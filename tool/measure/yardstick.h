/* What the results of one product are held against on a device that can judge there: the same product in fp32 by the
 * portable row, itself checked against the reference (all of it, or the sample that every result would have been checked
 * by). Every element of every other result is then compared with it, and nothing but a count leaves the device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_YARDSTICK_H
#define FP8R_YARDSTICK_H

#include "measure/measure_device.h"
#include "measure/verify.h"

struct fp8r_yardstick;

/* member: the product with its data in host memory. pointers: the same operands on the device; borrowed. *yardstick
 * stays NULL where there is none (no portable row here, an operand that is quantised on the way, no memory, or the row's
 * own result was wrong): then results must be fetched and checked here. Exit codes: INTERNAL, UNMEASURED where the
 * device fails. */
int fp8r_yardstick_create(fp8r_context *context, const struct fp8r_measure_device *device, const fp8r_matmul *member,
                          const fp8r_pointers *pointers, const struct fp8r_verify_options *options,
                          struct fp8r_yardstick **yardstick, struct fp8r_tool_error *error);
void fp8r_yardstick_destroy(struct fp8r_yardstick *yardstick);

/* Checks a result that lies on the device, where each of its bytes was poisoned before. */
int fp8r_yardstick_judge(const struct fp8r_yardstick *yardstick, void *out, struct fp8r_verdict *verdict,
                         struct fp8r_tool_error *error);

#endif
