/* Every configuration of every row that fits a context's device, as "name:config".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_LABELS_H
#define FP8R_TESTS_GPU_LABELS_H

#include <fp8route/fp8route.h>

enum { GPU_LABELS_MOST = 256 };

struct gpu_labels {
    char names[GPU_LABELS_MOST][128];
    int count;
};

void gpu_labels_init(struct gpu_labels *labels, const fp8r_context *context);

#endif
