/* FILE:TENSOR -> a weight and its scale in memory. One scale for all or one a row is what the products here
 * take; every other granularity is recognised and refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/weights.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <fp8route/fp8route.h>

#include "base/convert.h"
#include "model/checkpoint.h"
#include "model/file_read.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data is little-endian and is used as it lies in the file"
#endif

#define ALIGN_BYTES ((size_t)256)

struct loader {
    struct fp8r_checkpoint checkpoint;
    const char *file; /* as the user named it */
    struct fp8r_tool_error *error;
};

/* A tensor's bytes in memory of their own. */
static int data_load(const struct loader *loader, const struct fp8r_checkpoint_tensor *found, void **data)
{
    uint64_t bytes = found->tensor->end_bytes - found->tensor->begin_bytes;
    if (bytes > SIZE_MAX - ALIGN_BYTES) return fp8r_tool_error_memory(loader->error, found->tensor->name);
    size_t room = ((size_t)bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    void *memory = aligned_alloc(ALIGN_BYTES, room == 0 ? ALIGN_BYTES : room);
    if (memory == NULL) return fp8r_tool_error_memory(loader->error, found->tensor->name);
    struct fp8r_file file;
    int rc = fp8r_file_open(found->path, &file, loader->error);
    if (rc == FP8R_EXIT_GOOD) {
        rc = fp8r_file_read(&file, found->tensor->begin_bytes, memory, (size_t)bytes, loader->error);
        fp8r_file_close(&file);
    }
    if (rc != FP8R_EXIT_GOOD) {
        free(memory);
        return rc;
    }
    *data = memory;
    return FP8R_EXIT_GOOD;
}

/* A tensor named by joining parts; not finding it is no error. */
static int tensor_find(const struct loader *loader, const char *stem, size_t stem_bytes, const char *suffix,
                       const struct fp8r_checkpoint_tensor **found)
{
    size_t suffix_bytes = strlen(suffix) + 1;
    char *name = malloc(stem_bytes + suffix_bytes);
    if (name == NULL) return fp8r_tool_error_memory(loader->error, "a tensor's name");
    memcpy(name, stem, stem_bytes);
    memcpy(name + stem_bytes, suffix, suffix_bytes);
    *found = fp8r_checkpoint_find(&loader->checkpoint, name);
    free(name);
    return FP8R_EXIT_GOOD;
}

static int weight_find(const struct loader *loader, const char *name,
                       const struct fp8r_checkpoint_tensor **weight)
{
    *weight = fp8r_checkpoint_find(&loader->checkpoint, name);
    if (*weight != NULL) return FP8R_EXIT_GOOD;
    int rc = tensor_find(loader, name, strlen(name), ".weight", weight);
    if (rc != FP8R_EXIT_GOOD || *weight != NULL) return rc;
    return fp8r_tool_error_set(
        loader->error, FP8R_EXIT_USAGE,
        "%.180s: no tensor '%.120s', nor '%.60s.weight' (fp8route shapes --safetensors lists them)",
        loader->file, name, name);
}

/* The scale of an e4m3 weight, under one of the names in use; *scale stays NULL where none is stored. */
static int scale_find(const struct loader *loader, const struct fp8r_tensor *weight,
                      const struct fp8r_checkpoint_tensor **scale)
{
    const char *name = weight->name;
    size_t name_bytes = strlen(name), module_bytes = name_bytes;
    if (name_bytes >= 7 && strcmp(name + name_bytes - 7, ".weight") == 0) module_bytes -= 7;
    const struct fp8r_checkpoint_tensor *block = NULL, *suffixed = NULL, *prefixed = NULL;
    int rc = tensor_find(loader, name, name_bytes, "_scale_inv", &block);
    if (rc == FP8R_EXIT_GOOD) rc = tensor_find(loader, name, name_bytes, "_scale", &suffixed);
    if (rc == FP8R_EXIT_GOOD) rc = tensor_find(loader, name, module_bytes, ".scale_weight", &prefixed);
    if (rc != FP8R_EXIT_GOOD) return rc;
    if (block != NULL) {
        char shape[64];
        return fp8r_tool_error_set(
            loader->error, FP8R_EXIT_BAD_DATA,
            "%.150s: tensor '%.120s' has block scales (weight_scale_inv %s); only one scale a "
            "tensor or a row can be multiplied by",
            loader->file, name, fp8r_tensor_shape_format(block->tensor, shape, sizeof shape));
    }
    if (suffixed != NULL && prefixed != NULL) {
        return fp8r_tool_error_set(
            loader->error, FP8R_EXIT_BAD_DATA,
            "%.150s: tensor '%.120s' has two scales, weight_scale and scale_weight; one is right",
            loader->file, name);
    }
    *scale = suffixed != NULL ? suffixed : prefixed;
    return FP8R_EXIT_GOOD;
}

/* [], [1], [1,1]: the whole tensor. [N], [N,1]: a row each. */
static int scale_shape_check(const struct loader *loader, const struct fp8r_tensor *scale, int64_t n,
                             int64_t *count)
{
    const int64_t *shape = scale->shape;
    bool is_column = scale->rank == 1 || (scale->rank == 2 && shape[1] == 1);
    if (scale->rank == 0 || (is_column && (shape[0] == 1 || shape[0] == n))) {
        *count = scale->rank == 0 ? 1 : shape[0];
        return FP8R_EXIT_GOOD;
    }
    char text[64];
    return fp8r_tool_error_set(
        loader->error, FP8R_EXIT_BAD_DATA,
        "%.150s: scale '%.120s' has shape %s%s; it must be [], [1], [%lld] or [%lld,1]", loader->file,
        scale->name, fp8r_tensor_shape_format(scale, text, sizeof text),
        scale->rank == 2 ? ", block scales, which no product here takes" : "", (long long)n, (long long)n);
}

static float scale_value(enum fp8r_tensor_dtype dtype, const void *data, int64_t i)
{
    if (dtype == FP8R_TENSOR_F32) return ((const float *)data)[i];
    uint16_t code = ((const uint16_t *)data)[i];
    return dtype == FP8R_TENSOR_BF16 ? fp8r_from_bf16(code) : fp8r_from_fp16(code);
}

/* Every stored scale widened to fp32, which is exact. */
static int scale_widen(const struct loader *loader, const struct fp8r_tensor *scale, const void *data,
                       int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = scale_value(scale->type->dtype, data, i);
        if (!isfinite(values[i])) {
            return fp8r_tool_error_set(loader->error, FP8R_EXIT_BAD_DATA,
                                       "%.150s: scale '%.120s' holds %g at row %lld; it must be finite",
                                       loader->file, scale->name, (double)values[i], (long long)i);
        }
    }
    return FP8R_EXIT_GOOD;
}

static int scale_load(const struct loader *loader, const struct fp8r_checkpoint_tensor *found,
                      struct fp8r_weights *weights)
{
    const struct fp8r_tensor *scale = found->tensor;
    enum fp8r_tensor_dtype dtype = scale->type->dtype;
    int64_t count = 0;
    void *data = NULL;
    if (dtype != FP8R_TENSOR_F32 && dtype != FP8R_TENSOR_BF16 && dtype != FP8R_TENSOR_F16) {
        return fp8r_tool_error_set(loader->error, FP8R_EXIT_BAD_DATA,
                                   "%.150s: scale '%.120s' is %s; it must be F32, BF16 or F16", loader->file,
                                   scale->name, scale->type->name);
    }
    int rc = scale_shape_check(loader, scale, weights->n, &count);
    if (rc == FP8R_EXIT_GOOD) rc = data_load(loader, found, &data);
    if (rc != FP8R_EXIT_GOOD) return rc;
    /* The tensor's bytes were just in memory and a value is at most twice as wide. */
    weights->scale = calloc((size_t)count + 1, sizeof(float));
    rc = weights->scale == NULL ? fp8r_tool_error_memory(loader->error, scale->name)
                                : scale_widen(loader, scale, data, count, weights->scale);
    free(data);
    weights->scale_count = count;
    return rc;
}

/* The product's type for a stored weight, NONE where there is none. */
static int32_t weight_dtype(enum fp8r_tensor_dtype dtype)
{
    switch (dtype) {
    case FP8R_TENSOR_F8_E4M3:
        return FP8R_DTYPE_E4M3;
    case FP8R_TENSOR_BF16:
        return FP8R_DTYPE_BF16;
    case FP8R_TENSOR_F16:
        return FP8R_DTYPE_FP16;
    case FP8R_TENSOR_F32:
        return FP8R_DTYPE_FP32;
    default:
        return FP8R_DTYPE_NONE;
    }
}

static int weight_check(const struct loader *loader, const struct fp8r_tensor *weight)
{
    char shape[64];
    if (weight->rank != 2) {
        return fp8r_tool_error_set(loader->error, FP8R_EXIT_BAD_DATA,
                                   "%.150s: tensor '%.120s' has shape %s; a linear weight is [N,K]",
                                   loader->file, weight->name,
                                   fp8r_tensor_shape_format(weight, shape, sizeof shape));
    }
    if (weight_dtype(weight->type->dtype) != FP8R_DTYPE_NONE) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(loader->error, FP8R_EXIT_BAD_DATA,
                               "%.150s: tensor '%.120s' is %s; a weight must be F8_E4M3, BF16, F16 or F32",
                               loader->file, weight->name, weight->type->name);
}

static int tensor_load(const struct loader *loader, const char *name, struct fp8r_weights *weights)
{
    const struct fp8r_checkpoint_tensor *weight = NULL, *scale = NULL;
    int rc = weight_find(loader, name, &weight);
    if (rc == FP8R_EXIT_GOOD) rc = weight_check(loader, weight->tensor);
    if (rc != FP8R_EXIT_GOOD) return rc;
    weights->dtype = weight_dtype(weight->tensor->type->dtype);
    weights->n = weight->tensor->shape[0];
    weights->k = weight->tensor->shape[1];
    if (weights->dtype == FP8R_DTYPE_E4M3) {
        rc = scale_find(loader, weight->tensor, &scale);
        if (rc == FP8R_EXIT_GOOD && scale != NULL) rc = scale_load(loader, scale, weights);
    }
    if (rc == FP8R_EXIT_GOOD) rc = data_load(loader, weight, &weights->data);
    return rc;
}

int fp8r_weights_load(const char *file_and_tensor, struct fp8r_weights *weights,
                      struct fp8r_tool_error *error)
{
    const char *colon = strrchr(file_and_tensor, ':');
    if (colon == NULL || colon == file_and_tensor || colon[1] == '\0') {
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "'%.200s': weights are named FILE:TENSOR",
                                   file_and_tensor);
    }
    size_t file_bytes = (size_t)(colon - file_and_tensor);
    char *file = malloc(file_bytes + 1);
    if (file == NULL) return fp8r_tool_error_memory(error, "a path");
    memcpy(file, file_and_tensor, file_bytes);
    file[file_bytes] = '\0';
    struct loader loader = {.file = file, .error = error};
    struct fp8r_weights loaded = {0};
    int rc = fp8r_checkpoint_open((const char *const[]){file}, 1, &loader.checkpoint, error);
    if (rc == FP8R_EXIT_GOOD) rc = tensor_load(&loader, colon + 1, &loaded);
    fp8r_checkpoint_fini(&loader.checkpoint);
    free(file);
    if (rc == FP8R_EXIT_GOOD) {
        *weights = loaded;
    } else {
        fp8r_weights_fini(&loaded);
    }
    return rc;
}

void fp8r_weights_fini(struct fp8r_weights *weights)
{
    free(weights->data);
    free(weights->scale);
    *weights = (struct fp8r_weights){0};
}
