/* Listing configurations. SPDX-License-Identifier: Apache-2.0 */
#include "gpu_labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

void gpu_labels_init(struct gpu_labels *labels, const fp8r_context *context)
{
    labels->count = 0;
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        assert_int_equal(fp8r_context_backend(context, i, &info), FP8R_OK);
        for (size_t j = 0; info.fits && info.configs[j]; j++) {
            assert_true(labels->count < GPU_LABELS_MOST);
            (void)snprintf(labels->names[labels->count++], sizeof labels->names[0], "%.60s:%.60s", info.name,
                           info.configs[j]);
        }
    }
}
