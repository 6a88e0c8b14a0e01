/* config.json -> linear layers. One table row a model family says what a missing field means there;
 * everything else is the same dense decoder block.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hf_config.h"

#include <stdlib.h>
#include <string.h>

#include "file_read.h"
#include "tool_json.h"

#define CONFIG_LIMIT_BYTES (16u << 20)
#define FIELD_MAX          INT64_C(2147483647)

enum { FIELD_REQUIRED = 0, FIELD_DERIVED = -1 };

/* What an absent field means. A positive number is the value the family's own definition fills in, listed
 * only where published configurations rely on it (Gemma leaves out head_dim, Gemma 3 also the head counts).
 * DERIVED: num_key_value_heads equals the heads, head_dim is hidden_size / num_attention_heads. */
struct family {
    const char *model_type;
    int64_t heads, kv_heads, head_dim;
};

static const struct family families[] = {
    {.model_type = "llama", .kv_heads = FIELD_DERIVED, .head_dim = FIELD_DERIVED},
    {.model_type = "mistral", .head_dim = FIELD_DERIVED},
    {.model_type = "qwen2", .head_dim = FIELD_DERIVED},
    {.model_type = "qwen3", .head_dim = 128},
    {.model_type = "gemma", .head_dim = 256},
    {.model_type = "gemma2", .head_dim = 256},
    {.model_type = "gemma3_text", .heads = 8, .kv_heads = 4, .head_dim = 256},
};

static const char needed_fields[] =
    "hidden_size, intermediate_size, num_attention_heads, num_key_value_heads, "
    "num_hidden_layers and (unless hidden_size / num_attention_heads) head_dim";

static const struct family *family_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(families[i].model_type, model_type) == 0) return &families[i];
    }
    return NULL;
}

/* A multimodal model keeps its language part in text_config. Gemma 3 publishes that part without a model_type
 * of its own or with gemma3_text; other wrappers are followed when the part names a family from the table. */
static const struct family *family_of(const json_t *root, const json_t **fields, const char *model_type)
{
    const json_t *text = json_object_get(root, "text_config");
    *fields = root;
    const struct family *family = family_find(model_type);
    if (family != NULL || !json_is_object(text)) return family;
    const char *text_type = json_string_value(json_object_get(text, "model_type"));
    if (text_type == NULL && strcmp(model_type, "gemma3") == 0) text_type = "gemma3_text";
    *fields = text;
    return text_type == NULL ? NULL : family_find(text_type);
}

/* One count. absent is what a missing or null field means: a value, FIELD_DERIVED (then *value is left at
 * that), or FIELD_REQUIRED. */
static int count_read(const json_t *fields, const char *name, int64_t absent, const char *origin,
                      int64_t *value, struct fp8r_tool_error *error)
{
    const json_t *field = json_object_get(fields, name);
    if (field == NULL || json_is_null(field)) {
        *value = absent;
        if (absent != FIELD_REQUIRED) return FP8R_EXIT_GOOD;
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: %s is %s; it must be an integer >= 1",
                                   origin, name, fp8r_json_kind(field));
    }
    if (!json_is_integer(field)) {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: %s is %s; it must be an integer >= 1",
                                   origin, name, fp8r_json_kind(field));
    }
    int64_t number = (int64_t)json_integer_value(field);
    if (number < 1 || number > FIELD_MAX) {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: %s is %lld; it must lie in 1..%lld",
                                   origin, name, (long long)number, (long long)FIELD_MAX);
    }
    *value = number;
    return FP8R_EXIT_GOOD;
}

static int heads_settle(struct fp8r_hf_config *config, const char *origin, struct fp8r_tool_error *error)
{
    if (config->kv_heads == FIELD_DERIVED) config->kv_heads = config->heads;
    if (config->heads % config->kv_heads != 0) {
        return fp8r_tool_error_set(
            error, FP8R_EXIT_BAD_DATA,
            "%.200s: num_attention_heads %lld is not a multiple of num_key_value_heads %lld", origin,
            (long long)config->heads, (long long)config->kv_heads);
    }
    if (config->head_dim == FIELD_DERIVED) {
        if (config->hidden % config->heads != 0) {
            return fp8r_tool_error_set(
                error, FP8R_EXIT_BAD_DATA,
                "%.200s: hidden_size %lld is not a multiple of num_attention_heads %lld; "
                "give head_dim",
                origin, (long long)config->hidden, (long long)config->heads);
        }
        config->head_dim = config->hidden / config->heads;
    }
    /* Divided rather than multiplied: 3 * 2^31 * 2^31 would not fit 64 signed bits. */
    if (config->head_dim > FIELD_MAX / (config->heads + 2 * config->kv_heads) ||
        2 * config->intermediate > FIELD_MAX) {
        return fp8r_tool_error_set(
            error, FP8R_EXIT_BAD_DATA,
            "%.200s: num_attention_heads %lld * head_dim %lld or 2 * intermediate_size %lld "
            "does not fit a dimension (at most %lld)",
            origin, (long long)config->heads, (long long)config->head_dim, (long long)config->intermediate,
            (long long)FIELD_MAX);
    }
    return FP8R_EXIT_GOOD;
}

static int fields_read(const json_t *fields, const struct family *family, const char *origin,
                       struct fp8r_hf_config *config, struct fp8r_tool_error *error)
{
    const struct {
        const char *name;
        int64_t absent, *value;
    } counts[] = {
        {"hidden_size", FIELD_REQUIRED, &config->hidden},
        {"intermediate_size", FIELD_REQUIRED, &config->intermediate},
        {"num_hidden_layers", FIELD_REQUIRED, &config->layers},
        {"num_attention_heads", family->heads, &config->heads},
        {"num_key_value_heads", family->kv_heads, &config->kv_heads},
        {"head_dim", family->head_dim, &config->head_dim},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int rc = count_read(fields, counts[i].name, counts[i].absent, origin, counts[i].value, error);
        if (rc != FP8R_EXIT_GOOD) return rc;
    }
    return heads_settle(config, origin, error);
}

static int root_read(const json_t *root, const char *origin, struct fp8r_hf_config *config,
                     struct fp8r_tool_error *error)
{
    const json_t *type_field = json_object_get(root, "model_type");
    const char *model_type = json_string_value(type_field);
    if (model_type == NULL) {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                   "%.200s: model_type is %s; it must be a string such as \"llama\"", origin,
                                   fp8r_json_kind(type_field));
    }
    const json_t *fields = NULL;
    const struct family *family = family_of(root, &fields, model_type);
    if (family == NULL) {
        return fp8r_tool_error_set(
            error, FP8R_EXIT_BAD_DATA,
            "%.120s: model_type \"%.40s\" is unknown (known: llama, mistral, qwen2, qwen3, gemma, gemma2, "
            "gemma3); "
            "a dense decoder needs %s under one of these types, any other model shapes --safetensors",
            origin, model_type, needed_fields);
    }
    strcpy(config->model_type, family->model_type);
    return fields_read(fields, family, origin, config, error);
}

int fp8r_hf_config_parse(const char *text, size_t text_bytes, const char *origin,
                         struct fp8r_hf_config *config, struct fp8r_tool_error *error)
{
    struct fp8r_json json = {0};
    struct fp8r_hf_config read = {0};
    int rc = fp8r_json_open(text, text_bytes, origin, &json, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    rc = root_read(json.root, origin, &read, error);
    fp8r_json_close(&json);
    if (rc == FP8R_EXIT_GOOD) *config = read;
    return rc;
}

int fp8r_hf_config_read(const char *path, struct fp8r_hf_config *config, struct fp8r_tool_error *error)
{
    char *text = NULL;
    size_t text_bytes = 0;
    int rc = fp8r_text_read(path, CONFIG_LIMIT_BYTES, &text, &text_bytes, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    rc = fp8r_hf_config_parse(text, text_bytes, path, config, error);
    free(text);
    return rc;
}

static int degree_check(const struct fp8r_hf_config *config, int64_t tp, struct fp8r_tool_error *error)
{
    if (tp < 1) {
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "tp %lld: a tensor-parallel degree is at least 1",
                                   (long long)tp);
    }
    const char *field = NULL;
    int64_t value = 0;
    if (config->heads % tp != 0) {
        field = "num_attention_heads";
        value = config->heads;
    } else if (config->kv_heads % tp != 0 && tp % config->kv_heads != 0) {
        field = "num_key_value_heads";
        value = config->kv_heads;
    } else if (config->intermediate % tp != 0) {
        field = "intermediate_size";
        value = config->intermediate;
    }
    if (field == NULL) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "tp %lld does not divide %s %lld", (long long)tp,
                               field, (long long)value);
}

int fp8r_hf_config_projections(const struct fp8r_hf_config *config, int64_t tp, bool fused,
                               struct fp8r_projection_list *list, struct fp8r_tool_error *error)
{
    int rc = degree_check(config, tp, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    int64_t q = config->heads / tp * config->head_dim;
    int64_t kv = (tp > config->kv_heads ? 1 : config->kv_heads / tp) * config->head_dim;
    int64_t hidden = config->hidden, inter = config->intermediate / tp;
    const struct {
        const char *name;
        bool in_fused, in_unfused;
        int64_t n, k;
    } rows[] = {
        {"qkv_proj", true, false, q + 2 * kv, hidden},
        {"q_proj", false, true, q, hidden},
        {"k_proj", false, true, kv, hidden},
        {"v_proj", false, true, kv, hidden},
        {"o_proj", true, true, hidden, q},
        {"gate_up_proj", true, false, 2 * inter, hidden},
        {"gate_proj", false, true, inter, hidden},
        {"up_proj", false, true, inter, hidden},
        {"down_proj", true, true, hidden, inter},
    };
    size_t before = list->count;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && rc == FP8R_EXIT_GOOD; i++) {
        if (fused ? !rows[i].in_fused : !rows[i].in_unfused) continue;
        const struct fp8r_projection row = {
            .name = rows[i].name, .n = rows[i].n, .k = rows[i].k, .count = config->layers, .tp = tp};
        rc = fp8r_projection_list_add(list, &row, error);
    }
    if (rc != FP8R_EXIT_GOOD) fp8r_projection_list_truncate(list, before);
    return rc;
}
