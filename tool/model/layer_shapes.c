/* Groups a checkpoint's 2-D weights by name pattern, shape and type, and applies the usual tensor-parallel
 * split by name. SPDX-License-Identifier: Apache-2.0 */
#include "model/layer_shapes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct layer {
    char *pattern;
    const struct fp8r_tensor *tensor;
    size_t place; /* in the checkpoint's order; after grouping, that of the group's first layer */
    int64_t count;
};

enum split { SPLIT_NONE, SPLIT_N, SPLIT_K };

/* The last part of the module's name, or for "dense" (BERT) its last two. */
static const struct {
    const char *module;
    enum split split;
} splits[] = {
    {"q_proj", SPLIT_N},
    {"k_proj", SPLIT_N},
    {"v_proj", SPLIT_N},
    {"qkv_proj", SPLIT_N},
    {"gate_proj", SPLIT_N},
    {"up_proj", SPLIT_N},
    {"gate_up_proj", SPLIT_N},
    {"query", SPLIT_N},
    {"key", SPLIT_N},
    {"value", SPLIT_N},
    {"fc1", SPLIT_N},
    {"w1", SPLIT_N},
    {"w3", SPLIT_N},
    {"wq", SPLIT_N},
    {"wk", SPLIT_N},
    {"wv", SPLIT_N},
    {"intermediate.dense", SPLIT_N},
    {"lm_head", SPLIT_N},
    {"o_proj", SPLIT_K},
    {"down_proj", SPLIT_K},
    {"out_proj", SPLIT_K},
    {"fc2", SPLIT_K},
    {"w2", SPLIT_K},
    {"wo", SPLIT_K},
    {"output.dense", SPLIT_K},
};

/* Whether name is module or ends in ".module", the ".weight" at its end left aside. */
static bool is_module(const char *name, const char *module)
{
    size_t name_bytes = strlen(name) - strlen(".weight"), module_bytes = strlen(module);
    if (name_bytes < module_bytes || strncmp(name + name_bytes - module_bytes, module, module_bytes) != 0)
        return false;
    return name_bytes == module_bytes || name[name_bytes - module_bytes - 1] == '.';
}

static enum split split_of(const char *name)
{
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        if (is_module(name, splits[i].module)) return splits[i].split;
    }
    return SPLIT_NONE;
}

/* "model.layers.17.mlp" -> "model.layers.*.mlp". Never longer than the name. NULL: out of memory. */
static char *pattern_make(const char *name)
{
    char *pattern = malloc(strlen(name) + 1), *to = pattern;
    if (pattern == NULL) return NULL;
    while (*name != '\0') {
        size_t part = strcspn(name, ".");
        if (part > 0 && strspn(name, "0123456789") == part) {
            *to++ = '*';
        } else {
            memcpy(to, name, part);
            to += part;
        }
        name += part;
        if (*name == '.') *to++ = *name++;
    }
    *to = '\0';
    return pattern;
}

static int group_order(const void *left, const void *right)
{
    const struct layer *a = left, *b = right;
    int order = strcmp(a->pattern, b->pattern);
    if (order != 0) return order;
    for (size_t i = 0; i < 2; i++) {
        if (a->tensor->shape[i] != b->tensor->shape[i])
            return a->tensor->shape[i] < b->tensor->shape[i] ? -1 : 1;
    }
    order = strcmp(a->tensor->type->name, b->tensor->type->name);
    if (order != 0) return order;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int place_order(const void *left, const void *right)
{
    const struct layer *a = left, *b = right;
    return a->place < b->place ? -1 : a->place > b->place;
}

static bool is_same_group(const struct layer *a, const struct layer *b)
{
    return strcmp(a->pattern, b->pattern) == 0 && a->tensor->shape[0] == b->tensor->shape[0] &&
           a->tensor->shape[1] == b->tensor->shape[1] && a->tensor->type == b->tensor->type;
}

/* Merges equal neighbours of the sorted layers; returns how many groups are left, in the checkpoint's order.
 */
static size_t layers_group(struct layer *layers, size_t count)
{
    size_t groups = 0;
    qsort(layers, count, sizeof *layers, group_order);
    for (size_t i = 0; i < count; i++) {
        if (groups > 0 && is_same_group(&layers[groups - 1], &layers[i])) {
            layers[groups - 1].count++;
            free(layers[i].pattern);
        } else {
            layers[groups++] = layers[i];
        }
    }
    qsort(layers, groups, sizeof *layers, place_order);
    return groups;
}

static int share_add(const struct layer *layer, int64_t tp, struct fp8r_projection_list *list,
                     struct fp8r_tool_error *error)
{
    struct fp8r_projection row = {.name = layer->pattern,
                                  .type = layer->tensor->type->name,
                                  .tp = tp,
                                  .n = layer->tensor->shape[0],
                                  .k = layer->tensor->shape[1],
                                  .count = layer->count,
                                  .is_lookup = fp8r_tensor_role(layer->tensor) == FP8R_TENSOR_EMBEDDING};
    enum split split = row.is_lookup ? SPLIT_NONE : split_of(layer->tensor->name);
    if (split != SPLIT_NONE) {
        int64_t *extent = split == SPLIT_N ? &row.n : &row.k;
        if (*extent % tp != 0) {
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                       "tp %lld does not divide %s %lld of tensor '%.200s'", (long long)tp,
                                       split == SPLIT_N ? "N" : "K", (long long)*extent, layer->tensor->name);
        }
        *extent /= tp;
    }
    return fp8r_projection_list_add(list, &row, error);
}

static int layers_collect(const struct fp8r_checkpoint *checkpoint, struct layer *layers, size_t *count,
                          struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct fp8r_tensor *tensor = checkpoint->tensors[i].tensor;
        enum fp8r_tensor_role role = fp8r_tensor_role(tensor);
        if (role != FP8R_TENSOR_LINEAR && role != FP8R_TENSOR_EMBEDDING) continue;
        char *pattern = pattern_make(tensor->name);
        if (pattern == NULL) return fp8r_tool_error_memory(error, "a layer's name");
        layers[(*count)++] = (struct layer){.pattern = pattern, .tensor = tensor, .place = i, .count = 1};
    }
    return FP8R_EXIT_GOOD;
}

int fp8r_layer_shapes_list(const struct fp8r_checkpoint *checkpoint, int64_t tp,
                           struct fp8r_projection_list *list, struct fp8r_tool_error *error)
{
    if (tp < 1) {
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "tp %lld: a tensor-parallel degree is at least 1",
                                   (long long)tp);
    }
    size_t count = 0, before = list->count;
    struct layer *layers = calloc(checkpoint->count + 1, sizeof *layers);
    if (layers == NULL) return fp8r_tool_error_memory(error, "the layer list");
    int rc = layers_collect(checkpoint, layers, &count, error);
    if (rc == FP8R_EXIT_GOOD) count = layers_group(layers, count);
    for (size_t i = 0; i < count && rc == FP8R_EXIT_GOOD; i++) {
        rc = share_add(&layers[i], tp, list, error);
    }
    for (size_t i = 0; i < count; i++) {
        free(layers[i].pattern);
    }
    free(layers);
    if (rc != FP8R_EXIT_GOOD) fp8r_projection_list_truncate(list, before);
    return rc;
}
