/* The safetensors element types and what a tensor's name and shape say about its use. The role is a reading
 * of naming conventions, so it marks tensors for the user and never decides what may be loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor.h"

#include <stdio.h>
#include <string.h>

static const struct fp8r_tensor_type types[] = {
    {"F8_E4M3", FP8R_TENSOR_F8_E4M3, 8},
    {"F8_E5M2", FP8R_TENSOR_F8_E5M2, 8},
    {"BF16", FP8R_TENSOR_BF16, 16},
    {"F16", FP8R_TENSOR_F16, 16},
    {"F32", FP8R_TENSOR_F32, 32},
    {"F64", FP8R_TENSOR_F64, 64},
    {"BOOL", FP8R_TENSOR_OTHER_DTYPE, 8},
    {"F4", FP8R_TENSOR_OTHER_DTYPE, 4},
    {"F6_E2M3", FP8R_TENSOR_OTHER_DTYPE, 6},
    {"F6_E3M2", FP8R_TENSOR_OTHER_DTYPE, 6},
    {"F8_E8M0", FP8R_TENSOR_OTHER_DTYPE, 8},
    {"F8_E4M3FNUZ", FP8R_TENSOR_OTHER_DTYPE, 8},
    {"F8_E5M2FNUZ", FP8R_TENSOR_OTHER_DTYPE, 8},
    {"U8", FP8R_TENSOR_OTHER_DTYPE, 8},
    {"I8", FP8R_TENSOR_OTHER_DTYPE, 8},
    {"U16", FP8R_TENSOR_OTHER_DTYPE, 16},
    {"I16", FP8R_TENSOR_OTHER_DTYPE, 16},
    {"U32", FP8R_TENSOR_OTHER_DTYPE, 32},
    {"I32", FP8R_TENSOR_OTHER_DTYPE, 32},
    {"U64", FP8R_TENSOR_OTHER_DTYPE, 64},
    {"I64", FP8R_TENSOR_OTHER_DTYPE, 64},
    {"C64", FP8R_TENSOR_OTHER_DTYPE, 64},
};

const struct fp8r_tensor_type *fp8r_tensor_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) return &types[i];
    }
    return NULL;
}

bool fp8r_tensor_size(const struct fp8r_tensor_type *type, const int64_t *shape, size_t rank, uint64_t *bytes)
{
    uint64_t bits = type->bits;
    for (size_t i = 0; i < rank; i++) {
        uint64_t extent = (uint64_t)shape[i];
        if (extent != 0 && bits > INT64_MAX / extent) return false;
        bits *= extent;
    }
    *bytes = bits / 8;
    return bits % 8 == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t text_bytes = strlen(text), end_bytes = strlen(end);
    return text_bytes >= end_bytes && strcmp(text + text_bytes - end_bytes, end) == 0;
}

static bool contains_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(text, words[i]) != NULL) return true;
    }
    return false;
}

enum fp8r_tensor_role fp8r_tensor_role(const struct fp8r_tensor *tensor)
{
    static const char *const norms[] = {"norm", "Norm", ".ln_", "ln_f."};
    /* wte/wpe: GPT-2's token and position tables; shared and relative_attention_bias: T5's. */
    static const char *const tables[] = {"embed",      "Embed",         "wte.weight",
                                         "wpe.weight", "shared.weight", "relative_attention_bias"};
    const char *name = tensor->name;
    if (!ends_with(name, ".weight")) return FP8R_TENSOR_OTHER;
    if (contains_any(name, norms, sizeof norms / sizeof norms[0]) && tensor->rank == 1)
        return FP8R_TENSOR_NORM;
    if (tensor->rank != 2 || tensor->type->dtype == FP8R_TENSOR_OTHER_DTYPE) return FP8R_TENSOR_OTHER;
    if (contains_any(name, tables, sizeof tables / sizeof tables[0])) return FP8R_TENSOR_EMBEDDING;
    return FP8R_TENSOR_LINEAR;
}

const char *fp8r_tensor_role_name(enum fp8r_tensor_role role)
{
    static const char *const names[] = {
        [FP8R_TENSOR_LINEAR] = "linear",
        [FP8R_TENSOR_EMBEDDING] = "embedding",
        [FP8R_TENSOR_NORM] = "norm",
        [FP8R_TENSOR_OTHER] = "other",
    };
    return names[role];
}

const char *fp8r_tensor_shape_format(const struct fp8r_tensor *tensor, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < tensor->rank; i++) {
        int wrote =
            snprintf(text + used, size - used, "%s%lld", i == 0 ? "[" : ",", (long long)tensor->shape[i]);
        if (wrote < 0 || (size_t)wrote >= size - used || size - used - (size_t)wrote < sizeof ",...]") {
            (void)snprintf(text + used, size - used, "%s...]", i == 0 ? "[" : ",");
            return text;
        }
        used += (size_t)wrote;
    }
    (void)snprintf(text + used, size - used, "%s", tensor->rank == 0 ? "[]" : "]");
    return text;
}
