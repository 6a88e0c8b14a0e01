/* Every configuration of every row on one product on the GPU, and scaled_mm: where a row takes it, out must be right, with poison
 * around it, for the planned rows and for fewer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_ROWS_H
#define FP8R_TESTS_GPU_ROWS_H

#include "device/gpu_product.h"
#include "gpu_labels.h"

struct gpu_rows {
    fp8r_context *context;
    struct gpu_labels labels;
    cudaStream_t stream;
    void *space;
    size_t space_bytes;
    long runs, refusals;
};

void gpu_rows_init(struct gpu_rows *rows, fp8r_context *context); /* takes the context over */
void gpu_rows_fini(struct gpu_rows *rows);

/* Runs all of them on the sample, which is released. `name` for messages. */
void gpu_rows_run(struct gpu_rows *rows, struct sample *sample, const char *name);

/* Problem text, with exact data and with random ones. */
void gpu_rows_check(struct gpu_rows *rows, const char *text);
void gpu_rows_check_data(struct gpu_rows *rows, const char *text, enum sample_data data);

/* How far a tensor core's sum may be off, as bounds of the sample: it keeps about 13 bits, of everything with fast
 * accumulation, of 128 products with the other. */
void gpu_rows_widen(struct sample *sample);

#endif
