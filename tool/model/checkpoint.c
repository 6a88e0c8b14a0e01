/* Opens the files of a checkpoint and joins their tensors into one sorted list.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/file_read.h"
#include "model/shard_index.h"

/* An index names a tensor in some hundred bytes of JSON; like a header it has no business being larger. */
#define INDEX_LIMIT_BYTES FP8R_SAFETENSORS_HEADER_LIMIT_BYTES

/* Room for `more` further items of item_bytes each in an array that grows by doubling; NULL when there is
 * none, and the old array stays as it was. */
static void *array_reserve(void *items, size_t count, size_t more, size_t *capacity, size_t item_bytes)
{
    if (items != NULL && *capacity - count >= more) return items;
    size_t want = *capacity * 2;
    if (want < count + more) want = count + more;
    if (want == 0) want = 1;
    if (want > SIZE_MAX / item_bytes) return NULL;
    void *grown = realloc(items, want * item_bytes);
    if (grown != NULL) *capacity = want;
    return grown;
}

/* Takes over path. *file is valid until the next file is added. */
static int file_add(struct fp8r_checkpoint *checkpoint, char *path, struct fp8r_checkpoint_file **file,
                    struct fp8r_tool_error *error)
{
    struct fp8r_checkpoint_file added = {.path = path};
    int rc = fp8r_safetensors_read(path, &added.header, error);
    if (rc == FP8R_EXIT_GOOD) {
        void *files = array_reserve(checkpoint->files, checkpoint->file_count, 1, &checkpoint->file_capacity,
                                    sizeof *checkpoint->files);
        if (files == NULL) rc = fp8r_tool_error_memory(error, "the file list");
        if (files != NULL) checkpoint->files = files;
    }
    if (rc != FP8R_EXIT_GOOD) {
        fp8r_safetensors_fini(&added.header);
        free(path);
        return rc;
    }
    *file = &checkpoint->files[checkpoint->file_count++];
    **file = added;
    return FP8R_EXIT_GOOD;
}

static int tensors_reserve(struct fp8r_checkpoint *checkpoint, size_t more, struct fp8r_tool_error *error)
{
    void *tensors = array_reserve(checkpoint->tensors, checkpoint->count, more, &checkpoint->capacity,
                                  sizeof *checkpoint->tensors);
    if (tensors == NULL) return fp8r_tool_error_memory(error, "the tensor list");
    checkpoint->tensors = tensors;
    return FP8R_EXIT_GOOD;
}

/* The folder of `beside` joined with name, or a copy of name where beside is NULL. NULL: out of memory. */
static char *path_make(const char *beside, const char *name)
{
    const char *slash = beside == NULL ? NULL : strrchr(beside, '/');
    size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - beside) + 1;
    size_t name_bytes = strlen(name) + 1;
    char *path = malloc(folder_bytes + name_bytes);
    if (path == NULL) return NULL;
    if (folder_bytes > 0) memcpy(path, beside, folder_bytes);
    memcpy(path + folder_bytes, name, name_bytes);
    return path;
}

static int single_open(struct fp8r_checkpoint *checkpoint, const char *name, struct fp8r_tool_error *error)
{
    char *path = path_make(NULL, name);
    if (path == NULL) return fp8r_tool_error_memory(error, "a path");
    struct fp8r_checkpoint_file *file = NULL;
    int rc = file_add(checkpoint, path, &file, error);
    if (rc == FP8R_EXIT_GOOD) rc = tensors_reserve(checkpoint, file->header.count, error);
    for (size_t i = 0; rc == FP8R_EXIT_GOOD && i < file->header.count; i++) {
        checkpoint->tensors[checkpoint->count++] =
            (struct fp8r_checkpoint_tensor){.tensor = &file->header.tensors[i], .path = file->path};
    }
    return rc;
}

static int name_order(const void *left, const void *right)
{
    const struct fp8r_checkpoint_tensor *a = left, *b = right;
    return strcmp(a->tensor->name, b->tensor->name);
}

/* The tensors of one shard, sorted, cut down to those that entries (sorted too, all of this file) name. */
static int shard_select(struct fp8r_checkpoint *checkpoint, size_t begin,
                        const struct fp8r_shard_entry *entries, size_t entry_count, const char *index_path,
                        struct fp8r_tool_error *error)
{
    struct fp8r_checkpoint_tensor *tensors = checkpoint->tensors;
    size_t end = checkpoint->count, at = begin, kept = begin;
    qsort(tensors + begin, end - begin, sizeof *tensors, name_order);
    for (size_t i = 0; i < entry_count; i++) {
        while (at < end && strcmp(tensors[at].tensor->name, entries[i].tensor) < 0) {
            at++;
        }
        if (at == end || strcmp(tensors[at].tensor->name, entries[i].tensor) != 0) {
            return fp8r_tool_error_set(
                error, FP8R_EXIT_BAD_DATA,
                "%.150s: weight_map has tensor '%.120s' in %.100s, which does not hold it", index_path,
                entries[i].tensor, entries[i].file);
        }
        tensors[kept++] = tensors[at];
    }
    checkpoint->count = kept;
    return FP8R_EXIT_GOOD;
}

static int shards_open(struct fp8r_checkpoint *checkpoint, const struct fp8r_shard_index *index,
                       const char *index_path, struct fp8r_tool_error *error)
{
    size_t begin = 0, end = 0;
    for (; begin < index->count; begin = end) {
        const struct fp8r_shard_entry *first = &index->entries[begin];
        for (end = begin; end < index->count && strcmp(index->entries[end].file, first->file) == 0; end++) {
        }
        char *path = path_make(index_path, first->file);
        if (path == NULL) return fp8r_tool_error_memory(error, "a path");
        size_t tensors_before = checkpoint->count;
        int rc = single_open(checkpoint, path, error);
        free(path);
        if (rc == FP8R_EXIT_GOOD) {
            rc = shard_select(checkpoint, tensors_before, first, end - begin, index_path, error);
        }
        if (rc != FP8R_EXIT_GOOD) return rc;
    }
    return FP8R_EXIT_GOOD;
}

static int index_open(struct fp8r_checkpoint *checkpoint, const char *path, struct fp8r_tool_error *error)
{
    char *text = NULL;
    size_t text_bytes = 0;
    struct fp8r_shard_index index = {0};
    int rc = fp8r_text_read(path, INDEX_LIMIT_BYTES, &text, &text_bytes, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    rc = fp8r_shard_index_parse(text, text_bytes, path, &index, error);
    free(text);
    if (rc == FP8R_EXIT_GOOD) rc = shards_open(checkpoint, &index, path, error);
    fp8r_shard_index_fini(&index);
    return rc;
}

static bool is_index(const char *path)
{
    size_t bytes = strlen(path);
    return bytes >= 5 && strcmp(path + bytes - 5, ".json") == 0;
}

static int names_join(struct fp8r_checkpoint *checkpoint, struct fp8r_tool_error *error)
{
    const struct fp8r_checkpoint_tensor *tensors = checkpoint->tensors;
    if (checkpoint->count == 0) return FP8R_EXIT_GOOD;
    qsort(checkpoint->tensors, checkpoint->count, sizeof *checkpoint->tensors, name_order);
    for (size_t i = 1; i < checkpoint->count; i++) {
        if (strcmp(tensors[i - 1].tensor->name, tensors[i].tensor->name) == 0) {
            return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.150s: tensor '%.120s' is also in %.150s",
                                       tensors[i].path, tensors[i].tensor->name, tensors[i - 1].path);
        }
    }
    return FP8R_EXIT_GOOD;
}

int fp8r_checkpoint_open(const char *const *paths, size_t path_count, struct fp8r_checkpoint *checkpoint,
                         struct fp8r_tool_error *error)
{
    int rc = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < path_count && rc == FP8R_EXIT_GOOD; i++) {
        rc = is_index(paths[i]) ? index_open(checkpoint, paths[i], error)
                                : single_open(checkpoint, paths[i], error);
    }
    if (rc == FP8R_EXIT_GOOD) rc = names_join(checkpoint, error);
    if (rc != FP8R_EXIT_GOOD) fp8r_checkpoint_fini(checkpoint);
    return rc;
}

const struct fp8r_checkpoint_tensor *fp8r_checkpoint_find(const struct fp8r_checkpoint *checkpoint,
                                                          const char *name)
{
    const struct fp8r_tensor key_tensor = {.name = name};
    const struct fp8r_checkpoint_tensor key = {.tensor = &key_tensor};
    if (checkpoint->count == 0) return NULL;
    return bsearch(&key, checkpoint->tensors, checkpoint->count, sizeof key, name_order);
}

void fp8r_checkpoint_fini(struct fp8r_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->file_count; i++) {
        fp8r_safetensors_fini(&checkpoint->files[i].header);
        free(checkpoint->files[i].path);
    }
    free(checkpoint->files);
    free(checkpoint->tensors);
    *checkpoint = (struct fp8r_checkpoint){0};
}
