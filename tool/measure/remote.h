/* A plan run on a GPU over operands that lie in host memory: everything goes over as one block with poison between, and
 * comes back to be looked at. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_REMOTE_H
#define FP8R_REMOTE_H

#include <fp8route/fp8route.h>

#include "measure/measure_device.h"

/* The product with its operands' alignments in place of their addresses, which mean nothing on the device. */
fp8r_matmul fp8r_remote_matmul(const fp8r_matmul *matmul);

/* Runs it `calls` times in a row, and fetches out, gaps included. elapsed_ns, where not NULL: of all calls by the
 * device's clock, after as many that were not timed. Each operand keeps its alignment; the workspace is poison at first.
 * Errors: the run's, OUT_OF_MEMORY, DEVICE; DEVICE also where an operand or memory beside one was written. */
fp8r_status fp8r_remote_run(const struct fp8r_measure_device *device, const fp8r_plan *plan, const fp8r_matmul *matmul,
                            int64_t calls, int64_t *elapsed_ns);

#endif
