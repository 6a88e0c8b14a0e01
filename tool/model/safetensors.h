/* Reads the header of one safetensors file: which tensors it holds, of what type and shape, at which bytes.
 * Accepts exactly what the format allows and judges a file only by its header and its size; tensor data is
 * not touched.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SAFETENSORS_H
#define FP8R_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "tensor.h"
#include "tool_error.h"

/* The format's own limit on the JSON header. */
#define FP8R_SAFETENSORS_HEADER_LIMIT_BYTES UINT64_C(100000000)

/* The tensors in the header's order; their ranges cover the data exactly, without overlap or hole. */
struct fp8r_safetensors {
    struct fp8r_tensor *tensors;
    size_t count;
    char *names; /* what the tensors' names and shapes point into */
    int64_t *shapes;
};

/* Parses the head of a file: its first head_bytes bytes, which must include the whole header; file_bytes is
 * the size of the whole file. origin names the file in errors. Writes *file only on success; fini frees it.
 * Exit codes: BAD_DATA with the tensor and what is wrong, INTERNAL when memory runs out. */
int fp8r_safetensors_parse(const void *head, size_t head_bytes, uint64_t file_bytes, const char *origin,
                           struct fp8r_safetensors *file, struct fp8r_tool_error *error);

/* The same from a file, of which only the header is read. */
int fp8r_safetensors_read(const char *path, struct fp8r_safetensors *file, struct fp8r_tool_error *error);

void fp8r_safetensors_fini(struct fp8r_safetensors *file);

#endif
