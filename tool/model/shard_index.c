/* Reads weight_map. File names in it are an outsider's: only plain names are taken, so an index cannot point
 * out of its own folder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/shard_index.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tool_json.h"

static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int map_measure(json_t *map, const char *origin, size_t *text_bytes, struct fp8r_tool_error *error)
{
    const char *tensor = NULL;
    json_t *file = NULL;
    json_object_foreach(map, tensor, file)
    {
        if (!json_is_string(file) || !is_plain_name(json_string_value(file))) {
            return fp8r_tool_error_set(
                error, FP8R_EXIT_BAD_DATA,
                "%.160s: weight_map['%.120s'] is %s; it must be a file name without '/'", origin, tensor,
                json_is_string(file) ? "a path" : fp8r_json_kind(file));
        }
        /* Bounded by the JSON text in memory, so the sum cannot wrap. */
        *text_bytes += strlen(tensor) + 1 + strlen(json_string_value(file)) + 1;
    }
    return FP8R_EXIT_GOOD;
}

static const char *text_append(char **at, const char *text)
{
    char *copy = *at;
    size_t bytes = strlen(text) + 1;
    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

static int entry_order(const void *left, const void *right)
{
    const struct fp8r_shard_entry *a = left, *b = right;
    int order = strcmp(a->file, b->file);
    return order != 0 ? order : strcmp(a->tensor, b->tensor);
}

static int map_read(json_t *map, const char *origin, struct fp8r_shard_index *index,
                    struct fp8r_tool_error *error)
{
    size_t text_bytes = 0;
    int rc = map_measure(map, origin, &text_bytes, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    size_t count = json_object_size(map);
    struct fp8r_shard_entry *entries = calloc(count, sizeof *entries);
    char *text = calloc(text_bytes, 1);
    if (entries == NULL || text == NULL) {
        free(entries);
        free(text);
        return fp8r_tool_error_memory(error, "the shard index");
    }
    const char *tensor = NULL;
    json_t *file = NULL;
    char *at = text;
    *index = (struct fp8r_shard_index){.entries = entries, .text = text};
    json_object_foreach(map, tensor, file)
    {
        struct fp8r_shard_entry *entry = &entries[index->count++];
        entry->tensor = text_append(&at, tensor);
        entry->file = text_append(&at, json_string_value(file));
    }
    qsort(entries, count, sizeof *entries, entry_order);
    return FP8R_EXIT_GOOD;
}

int fp8r_shard_index_parse(const char *text, size_t text_bytes, const char *origin,
                           struct fp8r_shard_index *index, struct fp8r_tool_error *error)
{
    struct fp8r_json json = {0};
    int rc = fp8r_json_open(text, text_bytes, origin, &json, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    json_t *map = json_object_get(json.root, "weight_map");
    if (json_object_size(map) == 0) {
        rc = fp8r_tool_error_set(
            error, FP8R_EXIT_BAD_DATA,
            "%.200s: weight_map is %s; it must be a non-empty object of tensor: file name", origin,
            json_is_object(map) ? "empty" : fp8r_json_kind(map));
    } else {
        rc = map_read(map, origin, index, error);
    }
    fp8r_json_close(&json);
    return rc;
}

void fp8r_shard_index_fini(struct fp8r_shard_index *index)
{
    free(index->entries);
    free(index->text);
    *index = (struct fp8r_shard_index){0};
}
