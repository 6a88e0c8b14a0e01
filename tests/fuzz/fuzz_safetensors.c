/* A safetensors file, or a sharded index, from a stranger. What is accepted must keep the format's promises:
 * every tensor inside the file, its size that of its shape, and the ranges tiling the data.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "model/checkpoint.h"
#include "model/layer_shapes.h"
#include "model/safetensors.h"
#include "model/shard_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tensors_check(const struct fp8r_safetensors *file, const uint8_t *data, uint64_t size)
{
    uint64_t covered = 0, first = 8;
    for (int i = 0; i < 8; i++) {
        first += (uint64_t)data[i] << 8 * i;
    }
    for (size_t i = 0; i < file->count; i++) {
        const struct fp8r_tensor *tensor = &file->tensors[i];
        uint64_t bytes = 0;
        char shape[24];
        if (tensor->begin_bytes < first || tensor->begin_bytes > tensor->end_bytes ||
            tensor->end_bytes > size)
            abort();
        if (!fp8r_tensor_size(tensor->type, tensor->shape, tensor->rank, &bytes)) abort();
        if (bytes != tensor->end_bytes - tensor->begin_bytes) abort();
        if (strlen(fp8r_tensor_shape_format(tensor, shape, sizeof shape)) >= sizeof shape) abort();
        if (fp8r_tensor_role_name(fp8r_tensor_role(tensor))[0] == '\0') abort();
        covered += bytes;
    }
    if (covered != size - first) abort();
}

/* The tensors as a checkpoint of one file, grouped into layers. */
static void layers_check(const struct fp8r_safetensors *file)
{
    struct fp8r_checkpoint checkpoint = {0};
    struct fp8r_projection_list list = {0};
    struct fp8r_tool_error error = {0};
    checkpoint.tensors = calloc(file->count + 1, sizeof *checkpoint.tensors);
    if (checkpoint.tensors == NULL) return;
    for (size_t i = 0; i < file->count; i++) {
        checkpoint.tensors[checkpoint.count++] = (struct fp8r_checkpoint_tensor){.tensor = &file->tensors[i]};
    }
    for (int64_t tp = 1; tp <= 2; tp++) {
        int rc = fp8r_layer_shapes_list(&checkpoint, tp, &list, &error);
        if (rc != FP8R_EXIT_GOOD && (rc != error.exit_code || error.text[0] == '\0')) abort();
    }
    fp8r_projection_list_fini(&list);
    free(checkpoint.tensors);
}

/* A file and a buffer of the same bytes are the same list. */
static void file_check(const uint8_t *data, size_t size, const struct fp8r_safetensors *expected,
                       int expected_rc)
{
    struct fp8r_safetensors file;
    struct fp8r_tool_error error = {0};
    if (fp8r_safetensors_read(fuzz_file(data, size), &file, &error) != expected_rc) abort();
    if (expected_rc != FP8R_EXIT_GOOD) return;
    if (file.count != expected->count) abort();
    fp8r_safetensors_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp8r_safetensors file;
    struct fp8r_shard_index index;
    struct fp8r_tool_error error = {0};
    int rc = fp8r_safetensors_parse(data, size, size, "fuzz", &file, &error);
    if (fuzz_wants_file(data, size)) file_check(data, size, &file, rc);
    if (rc == FP8R_EXIT_GOOD) {
        tensors_check(&file, data, size);
        layers_check(&file);
        fp8r_safetensors_fini(&file);
    } else if (rc != error.exit_code || error.text[0] == '\0') {
        abort();
    }
    rc = fp8r_shard_index_parse((const char *)data, size, "fuzz", &index, &error);
    if (rc == FP8R_EXIT_GOOD) fp8r_shard_index_fini(&index);
    return 0;
}
